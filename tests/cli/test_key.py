"""key info, commit, salt, rotate, export-serving."""

from __future__ import annotations

import json
import os

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from regionmarker import RegionMarker

SALT = "00112233445566778899aabbccddeeff"


def test_info_shows_what_is_not_secret(run, key):
    facts = json.loads(run("key", "info", key, "--json").stdout)
    assert facts["kind"] == "key"
    assert (facts["pool"], facts["reservoir"], facts["level"]) == (64, 512, 0.001)
    assert "regions" not in facts
    assert "strength" in run("key", "info", key).stdout


def test_the_commitment_stays_while_the_salt_comes_and_can_come_once(run, key):
    before = json.loads(run("key", "commit", key, "--json").stdout)["commitment"]
    run("key", "salt", key, SALT)
    assert json.loads(run("key", "commit", key, "--json").stdout)["commitment"] == before
    assert json.loads(run("key", "info", key, "--json").stdout)["public_salt"] == SALT
    assert "already has a public salt" in run("key", "salt", key, SALT, code=2).stderr
    assert "must be hexadecimal digits" in run("key", "salt", key, "xyz", code=2).stderr


def test_rotation_keeps_the_old_key_in_the_ring(run, key):
    old = json.loads(run("key", "info", key, "--json").stdout)["key_id"]
    run("key", "rotate", key)
    facts = json.loads(run("key", "info", key, "--json").stdout)
    assert facts["older_keys"] == [old]
    assert facts["key_id"] != old


def test_a_test_key_is_not_committed_to(run, corpus):
    run("keygen", "--corpus", corpus, "--out", "t.rmkey", "--seed", 1, "--pool", 64, "--reservoir", 512)
    assert "TEST" in run("key", "info", "t.rmkey").stdout
    assert "TEST key" in run("key", "commit", "t.rmkey", code=2).stderr
    assert "TEST key" in run("key", "rotate", "t.rmkey", code=2).stderr


def test_a_serving_key_can_be_exported_and_looked_at(run, key, tmp_path):
    (tmp_path / "tenants.txt").write_text("zenith\nnova\n")
    run("key", "export-serving", key, "--out", "s.rmkey", "--tenant", "acme", "--tenants-file", "tenants.txt")
    facts = json.loads(run("key", "info", "s.rmkey", "--json").stdout)
    assert (facts["kind"], facts["tenants"]) == ("serving key", 3)
    assert "is a serving key, which can only mark" in run("key", "commit", "s.rmkey", code=2).stderr


def test_passphrases_come_from_the_environment(run, corpus):
    environment = {**os.environ, "REGIONMARKER_PASSPHRASE": "correct horse"}
    options = ("--corpus", corpus, "--out", "p.rmkey", "--pool", 64, "--reservoir", 512)
    made = json.loads(run("keygen", *options, "--json", env=environment).stdout)
    assert made["secret_file"] is None
    run("key", "info", "p.rmkey", env=environment)
    assert "locked with a passphrase" in run("key", "info", "p.rmkey", code=2).stderr


def test_bad_keys_get_one_sentence(run, key, tmp_path):
    (tmp_path / "link.rmkey").symlink_to(key)
    assert "is a symbolic link" in run("key", "info", "link.rmkey", code=2).stderr
    key.chmod(0o644)
    assert "can be read by others" in run("key", "info", key, code=2).stderr
    key.chmod(0o600)
    key.write_bytes(key.read_bytes()[:-5])
    assert "it is damaged" in run("key", "info", key, code=2).stderr


def test_a_graded_key_is_rotated_only_by_who_accepts_removal(run, corpus):
    run("keygen", "--corpus", corpus, "--out", "g.rmkey", "--kept", 0.9)
    refused = run("key", "rotate", "g.rmkey", code=2).stderr
    assert "stays with its version of the model" in refused
    run("key", "rotate", "g.rmkey", "--accept-removal")
    facts = json.loads(run("key", "info", "g.rmkey", "--json").stdout)
    assert (facts["mark"], facts["kept"], len(facts["older_keys"])) == ("graded", 0.9, 1)


def test_places_are_derived_ahead_and_are_what_the_key_derives(run, corpus, tmp_path):
    run("keygen", "--corpus", corpus, "--out", "g.rmkey")
    run("key", "export-serving", "g.rmkey", "--out", "s.rmkey", "--places", 256, "--tenant", "acme")
    assert json.loads(run("key", "info", "s.rmkey", "--json").stdout)["tenants"] == 257
    whole, served = RegionMarker.load(tmp_path / "g.rmkey"), RegionMarker.load(tmp_path / "s.rmkey")
    rows = np.eye(whole.n_features_in_, dtype=np.float32)[:8]
    for name in ("", "acme", "place-0001", "place-0256"):
        assert np.array_equal(served.transform(rows, tenant=name), whole.transform(rows, tenant=name))


def test_a_key_of_another_file_joins_the_ring(run, key, corpus, tmp_path):
    run("keygen", "--corpus", corpus, "--out", "new.rmkey", "--pool", 64, "--reservoir", 512)
    new, old = (json.loads(run("key", "info", name, "--json").stdout)["key_id"] for name in ("new.rmkey", key))
    made = json.loads(run("key", "add", key, "new.rmkey", "--json").stdout)
    assert (made["key_id"], made["older_keys"]) == (new, [old])
    assert json.loads(run("key", "info", key, "--json").stdout)["older_keys"] == [old]
    assert "already" in run("key", "add", key, "new.rmkey", code=2).stderr
    run("keygen", "--corpus", corpus, "--out", "test.rmkey", "--pool", 64, "--reservoir", 512, "--seed", 1)
    assert "test.rmkey holds a TEST key" in run("key", "add", key, "test.rmkey", code=2).stderr
    run("key", "export-serving", key, "--out", "serving.rmkey")
    assert "is a serving key" in run("key", "add", key, "serving.rmkey", code=2).stderr


def test_a_second_graded_key_of_the_same_model_is_no_next_version(run, corpus, tmp_path):
    """Else two keygens and an add would be the rotation that is refused."""
    for name in ("old.rmkey", "new.rmkey"):
        run("keygen", "--corpus", corpus, "--out", name)
    assert "subtract them and remove both marks" in run("key", "add", "old.rmkey", "new.rmkey", code=2).stderr.replace(
        "\n", " "
    )
    table = pq.read_table(corpus)
    rows = np.array(table["embedding"].to_pylist(), dtype=np.float32)
    mixed = rows + 0.03 * np.random.default_rng(0).standard_normal(rows.shape).astype(np.float32)
    mixed = (mixed / np.linalg.norm(mixed, axis=1, keepdims=True)).astype(np.float32)
    place = table.schema.get_field_index("embedding")
    table = table.set_column(place, "embedding", pa.array(list(mixed), type=table.schema.field(place).type))
    pq.write_table(table, tmp_path / "next.parquet")
    run("keygen", "--corpus", "next.parquet", "--out", "next.rmkey")
    run("key", "add", "old.rmkey", "next.rmkey")  # the next version of the model
    run("key", "add", "old.rmkey", "new.rmkey", "--accept-removal")
