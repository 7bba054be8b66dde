"""``regionmarker tenants``: a database shared with gateways, an API key shown once."""

from __future__ import annotations

import asyncio
import contextlib
import json
import sqlite3
from typing import NamedTuple

import pytest

from regionmarker import RegionMarker
from regionmarker.cli import main
from regionmarker.cli.options import read_tenants
from regionmarker.errors import InputError
from regionmarker.gateway.tenants.lookup import DatabaseLookup
from regionmarker.keys.files import save_serving
from regionmarker.keys.places import place_labels


def who(database, key):
    async def ask():
        lookup = DatabaseLookup.open(str(database))
        found = await lookup.find(key)
        await lookup.close()
        return found

    return asyncio.run(ask())


class Done(NamedTuple):
    stdout: str
    stderr: str


@pytest.fixture
def tenants(tmp_path, monkeypatch, capsys):
    """The verb in this process: what it costs to start Python is not what is tested."""
    monkeypatch.chdir(tmp_path)

    def call(*arguments, code=0, database="t.db") -> Done:
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            main(["tenants", *map(str, arguments), *(("--database", database) if database else ())])
        assert (left.value.code or 0) == code
        return Done(*capsys.readouterr())

    return call


def test_the_life_of_a_tenant(tenants, tmp_path):
    database = tmp_path / "t.db"
    limits = ("--requests-per-minute", 60, "--inputs-in-flight", 512)
    made = json.loads(tenants("add", "acme", *limits, "--json").stdout)
    assert made["tenant"] == "acme"
    assert vars(who(database, made["api_key"])) == {
        "name": "acme", "requests_per_minute": 60, "inputs_in_flight": 512, "mode": "mark", "place": None,
    }  # fmt: skip
    second = json.loads(tenants("renew", "acme", "--json").stdout)["api_key"]
    changed = json.loads(tenants("change", "acme", "--requests-per-minute", 0, "--mode", "shadow", "--json").stdout)
    assert (changed["requests_per_minute"], changed["inputs_in_flight"], changed["mode"]) == (None, 512, "shadow")
    listed = tenants("list", "--json").stdout
    assert made["api_key"] not in listed
    assert second not in listed
    first_id = made["api_key"].split("-")[1]
    assert json.loads(tenants("revoke", "acme", "--api-key-id", first_id, "--json").stdout)["revoked_keys"] == 1
    assert who(database, made["api_key"]) is None
    assert who(database, second).mode == "shadow"
    assert json.loads(tenants("revoke", "acme", "--json").stdout)["revoked_keys"] == 1
    assert who(database, second) is None


def test_people_are_told_what_matters(tenants, monkeypatch):
    done = tenants("add", "acme", "--mode", "shadow")
    assert "only time the API key is shown" in done.stderr
    assert "export-serving" in done.stderr
    assert "unmarked vectors" in " ".join(done.stderr.split())
    tenants("add", "zenith")
    monkeypatch.setenv("COLUMNS", "80")
    table = tenants("list").stdout
    assert max(map(len, table.splitlines())) <= 80
    ids = [one for account in json.loads(tenants("list", "--json").stdout)["tenants"] for one in account["api_key_ids"]]
    assert len(ids) == 2
    assert all(one in table.split() for one in ids)  # whole, for revoke --api-key-id
    assert "acme" in table
    assert "no limit" in table
    assert tenants("list", "--names").stdout == "acme\nzenith\n"
    assert tenants("list", "--labels").stdout == "acme\nzenith\n"


def test_a_mistyped_database_is_no_empty_one(tenants, tmp_path):
    for verb in (("list",), ("places",), ("renew", "acme"), ("change", "acme", "--mode", "mark"), ("revoke", "acme")):
        assert "tenants add makes it" in tenants(*verb, database="typo.db", code=2).stderr
    with pytest.raises(InputError, match=r"typo\.db does not exist"):
        read_tenants(None, None, "typo.db")  # verify, trace
    assert not (tmp_path / "typo.db").exists()


def test_mistakes_are_one_sentence(tenants):
    tenants("add", "acme")
    for arguments, message in (
        (("add", "acme"), "acme exists already"),
        (("add", "two words"), "a tenant's name has 1 to 64 letters"),
        (("add", "b", "--mode", "loud"), "mode 'loud' is not known"),
        (("add", "b", "--inputs-in-flight", -3), "inputs_in_flight must be at least 1"),
        (("change", "acme"), "nothing to change"),
        (("revoke", "ghost"), "there is no tenant 'ghost'"),
    ):
        assert message in tenants(*arguments, code=2).stderr
    address = "postgresql://gate:canary-71@localhost:1/t"
    done = tenants("list", database=address, code=3)
    assert "does not answer" in done.stderr
    assert "canary-71" not in done.stderr


def test_the_database_may_come_from_the_environment(tenants, tmp_path, monkeypatch):
    monkeypatch.setenv("REGIONMARKER_DATABASE", str(tmp_path / "x.db"))
    tenants("add", "acme", database=None)
    assert tenants("list", "--names", database=None).stdout == "acme\n"


def test_a_place_of_the_serving_key_is_given_out(tenants, tmp_path, real_marker):
    save_serving(tmp_path / "serving.rmkey", real_marker.key_.serving(place_labels(1)), None)
    made = json.loads(tenants("add", "acme", "--key", "serving.rmkey", "--json").stdout)
    assert made["place"] == "place-0001"
    assert who(tmp_path / "t.db", made["api_key"]).label == "place-0001"
    assert "no place is left" in tenants("add", "zenith", code=2).stderr
    tenants("revoke", "acme")
    assert "no place is left" in tenants("add", "zenith", code=2).stderr
    assert "run regionmarker key" in " ".join(tenants("add", "zenith", "--by-name").stderr.split())
    shown = json.loads(tenants("places", "--json").stdout)
    assert (shown["assigned"], shown["places"], shown["free"], shown["next"]) == (2, 1, 0, None)
    assert [row["label"] for row in shown["assignments"]] == ["place-0001", "zenith"]
    assert shown["digest"] == shown["assignments"][-1]["digest"]
    assert shown["digest"] in tenants("places").stdout
    assert tenants("list", "--labels").stdout == "place-0001\nzenith\n"


def test_a_key_without_marks_for_tenants_says_so(tenants, tmp_path, sentences, embeddings):
    marker = RegionMarker(tenants=False, reservoir=256).fit(sentences[:900], embeddings=embeddings[:900])
    save_serving(tmp_path / "plain.rmkey", marker.key_.serving(), None)
    said = " ".join(tenants("add", "acme", "--key", "plain.rmkey", code=2).stderr.split())
    assert "plain.rmkey has no marks for tenants (it was made with --no-tenants)" in said
    assert tenants("list", "--names").stdout == ""


def test_a_published_digest_is_compared(tenants):
    tenants("add", "acme")
    published = json.loads(tenants("places", "--json").stdout)["digest"]
    tenants("add", "zenith")
    assert json.loads(tenants("places", "--published", published, "--json").stdout)["assigned_since_published"] == 1
    tenants("add", "initech", database="other.db")
    error = tenants("places", "--published", published, database="other.db", code=2).stderr
    assert f"the digest {published} is none that these assignments ever had" in " ".join(error.split())


def test_no_api_key_is_made_that_nobody_sees(tenants, tmp_path):
    """Places are looked at first: an error after the key was made would keep it from its owner."""
    tenants("add", "acme")
    tenants("add", "zenith")
    with contextlib.closing(sqlite3.connect(tmp_path / "t.db")) as database, database:
        database.execute("DELETE FROM assignments WHERE tenant = 'zenith'")
    for verb, name in (("renew", "zenith"), ("renew", "acme"), ("add", "third")):
        assert "tenant zenith has no assignment" in " ".join(tenants(verb, name, code=2).stderr.split())
    with contextlib.closing(sqlite3.connect(tmp_path / "t.db")) as database:
        assert database.execute("SELECT count(*) FROM api_keys").fetchone() == (2,)
