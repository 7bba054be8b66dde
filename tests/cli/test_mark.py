"""mark: one Parquet file in, one marked file out, everything else as it was."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.support.shards import matrix

from regionmarker import RegionMarker


def test_the_column_is_marked_and_all_else_is_kept(run, key, corpus, tmp_path):
    done = run("mark", "--key", key, corpus, "served.parquet", "--json")
    assert json.loads(done.stdout)["rows"] == 1500
    before, after = pq.read_table(corpus), pq.read_table(tmp_path / "served.parquet")
    assert after.schema.equals(before.schema, check_metadata=True)
    for name in ("id", "text", "note"):
        assert after.column(name).equals(before.column(name))
    assert np.array_equal(matrix(after), RegionMarker.load(key).transform(matrix(before)))
    assert pq.ParquetFile(tmp_path / "served.parquet").metadata.row_group(0).column(0).compression == "ZSTD"


def test_a_tenant_gets_its_own_mark(run, key, corpus, tmp_path):
    run("mark", "--key", key, corpus, "acme.parquet", "--tenant", "acme")
    expected = RegionMarker.load(key).transform(matrix(pq.read_table(corpus)), tenant="acme")
    assert np.array_equal(matrix(pq.read_table(tmp_path / "acme.parquet")), expected)


@pytest.fixture
def database(run, key):
    """A gateway's tenants: acme has a place, zenith a mark by its name."""
    run("key", "export-serving", key, "--out", "serving.rmkey", "--places", 2, "--tenant", "zenith")
    run("tenants", "add", "acme", "--database", "t.db", "--key", "serving.rmkey")
    run("tenants", "add", "zenith", "--database", "t.db", "--by-name")
    return "t.db"


def test_with_the_database_a_tenant_gets_the_mark_that_the_gateway_gives_it(run, key, corpus, tmp_path, database):
    rows, marker = matrix(pq.read_table(corpus)), RegionMarker.load(key)
    for name, label in (("acme", "place-0001"), ("zenith", "zenith")):
        options = ("--tenant", name, "--database", database, "--json")
        said = json.loads(run("mark", "--key", "serving.rmkey", corpus, f"{name}.parquet", *options).stdout)
        assert (said["tenant"], said["label"]) == (name, label)
        served = matrix(pq.read_table(tmp_path / f"{name}.parquet"))
        assert np.array_equal(served, marker.transform(rows, tenant=label))
    assert json.loads((tmp_path / "acme.parquet.manifest.json").read_text())["settings"]["tenant"] == "place-0001"


def test_a_database_that_cannot_say_the_label_is_one_sentence(run, key, corpus, tmp_path, database):
    cases = {
        ("--tenant", "globex", "--database", database): "tenant globex is not in the tenants database",
        ("--tenant", "acme", "--database", "typo.db"): "tenants add makes it",
        ("--database", database): "--database goes with --tenant",
        ("--database", database, "--tenant-column", "note"): "--database goes with --tenant",
    }
    for options, message in cases.items():
        done = run("mark", "--key", key, corpus, "out.parquet", *options, code=2)
        assert message in " ".join(done.stderr.split())
    assert not (tmp_path / "out.parquet").exists()
    assert not (tmp_path / "typo.db").exists()


def test_bad_input_gets_one_sentence_and_no_output(run, key, corpus, tmp_path):
    table = pq.read_table(corpus)
    rows = matrix(table).copy()
    rows[1234, 5] = np.nan
    values = pa.FixedSizeListArray.from_arrays(pa.array(rows.reshape(-1)), rows.shape[1])
    pq.write_table(table.set_column(2, "embedding", values), tmp_path / "nan.parquet")
    pq.write_table(table.set_column(2, "embedding", pa.array(range(1500))), tmp_path / "scalar.parquet")
    (tmp_path / "torn.parquet").write_bytes(corpus.read_bytes()[:-100])
    cases = {
        "nan.parquet": "row 1234 holds NaN",
        "scalar.parquet": "is int64, not a list of floats",
        "torn.parquet": "cannot read",
        "absent.parquet": "does not exist",
    }
    for name, message in cases.items():
        done = run("mark", "--key", key, name, "out.parquet", code=2)
        assert message in done.stderr
        assert len(done.stderr.strip().splitlines()) == 1
    assert (
        "has no column vector; it has id"
        in run("mark", "--key", key, corpus, "out.parquet", "--column", "vector", code=2).stderr
    )
    assert not [path for path in tmp_path.iterdir() if "out.parquet" in path.name]


def test_the_input_and_existing_outputs_are_safe(run, key, corpus, tmp_path):
    before = corpus.read_bytes()
    assert "is the input itself" in run("mark", "--key", key, corpus, corpus, "--force", code=2).stderr
    assert corpus.read_bytes() == before
    (tmp_path / "out.parquet").write_text("precious")
    assert "exists already" in run("mark", "--key", key, corpus, "out.parquet", code=2).stderr
    assert (tmp_path / "out.parquet").read_text() == "precious"


def test_a_folder_resumes_and_says_what_was_refused(run, key, corpus, tmp_path):
    (tmp_path / "in").mkdir()
    for part in ("a", "b"):
        (tmp_path / "in" / f"{part}.parquet").write_bytes(corpus.read_bytes())
    (tmp_path / "in" / "c.parquet").write_bytes(b"torn")
    done = run("mark", "--key", key, "in", "out", "--json", code=2)
    facts = json.loads(done.stdout)
    assert (facts["shards"], facts["rows"], facts["refused"], facts["already_done"]) == (3, 3000, 1, 0)
    assert list(facts["refused_shards"]) == ["c.parquet"]
    (tmp_path / "in" / "c.parquet").unlink()
    assert "c.parquet was marked before" not in run("mark", "--key", key, "in", "out").stdout
    shown = run("mark", "--key", key, "in", "out").stdout
    assert "already done" in shown
    assert [line.split()[:-1] for line in shown.splitlines() if line.startswith("refused")] == [["refused", "shards"]]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--engine", "spark"), "--engine is 'spark', but must be local or ray"),
        (("--address", "x:1"), "--address goes with --engine ray"),
        (("--engine", "ray", "--passphrase"), "a passphrase typed here does not reach Ray's workers"),
        (("--on-bad-row", "mend"), "--on-bad-row is 'mend', but must be refuse or set-aside"),
        (("--tenant", "a", "--tenant-column", "b"), "give --tenant or --tenant-column, not both"),
    ],
)
def test_options_that_do_not_go_together(run, tmp_path, options, message):
    done = run("mark", "--key", "k", "in", "out", *options, code=2)
    assert message in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_the_output_of_a_file_is_parquet_and_no_folder_with_a_files_name(run, key, corpus, tmp_path):
    told = run("mark", "--key", key, corpus, "out.npy", code=2).stderr
    assert "out.npy: marked vectors are written as Parquet: name the output out.parquet" in told
    assert not (tmp_path / "out.npy").exists()
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.parquet").write_bytes(corpus.read_bytes())
    assert "is a folder, so the output is one, too" in run("mark", "--key", key, "in", "out.parquet", code=2).stderr


def test_what_is_marked_is_not_marked_again(run, key, corpus, tmp_path):
    run("mark", "--key", key, corpus, "served.parquet")
    told = run("mark", "--key", key, "served.parquet", "twice.parquet", code=2).stderr
    assert "served.parquet carries the mark of key" in told
    assert not (tmp_path / "twice.parquet").exists()
    run("mark", "--key", key, "served.parquet", "twice.parquet", "--again")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.parquet").write_bytes(corpus.read_bytes())
    run("mark", "--key", key, "in", "served")
    assert "carries the mark of key" in run("mark", "--key", key, "served", "twice", code=2).stderr
    (tmp_path / "served.parquet").write_bytes(corpus.read_bytes())  # clean again: the old manifest tells nothing
    run("mark", "--key", key, "served.parquet", "once.parquet")


def test_the_job_records_whether_rows_were_scaled_whoever_said_so(run, corpus, tmp_path):
    run("keygen", "--corpus", corpus, "--out", "n.rmkey", "--pool", 64, "--reservoir", 512, "--normalise")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.parquet").write_bytes(corpus.read_bytes())
    run("mark", "--key", "n.rmkey", "in", "served")
    job = json.loads((tmp_path / "served" / "_regionmarker" / "job.json").read_text())
    assert job["settings"]["normalise"] is True
