"""A whole gateway with tenants, from its key file and its database, over real sockets."""

from __future__ import annotations

import numpy as np
import pytest
from tests.support.gateways import eventually
from tests.support.running import running

from regionmarker.errors import InputError, KeyFileError
from regionmarker.gateway.gateway import open_gateway
from regionmarker.gateway.settings import Settings
from regionmarker.gateway.tenants.accounts import Accounts
from regionmarker.keys.files import KeyRing, save_serving


@pytest.fixture
def texts(sentences):
    """So many different ones that every key marks some of them."""
    return sentences[::30]


@pytest.fixture
def key_file(tmp_path, real_marker):
    path = tmp_path / "serving.rmkey"
    save_serving(path, real_marker.key_.serving(["acme", "zenith"]), None)
    return path


@pytest.fixture
def accounts(database):
    opened = Accounts.open(database)
    yield opened
    opened.close()


def test_each_tenant_gets_its_own_mark(texts, key_file, database, accounts, real_marker, wordllama):
    keys = {name: accounts.add(name) for name in ("acme", "zenith")}
    clean = wordllama.encode(texts)
    with running(open_gateway(Settings(key_file, database=database))) as house:
        for name, key in keys.items():
            assert np.array_equal(house.embed(texts, key), real_marker.transform(clean, tenant=name))
        assert house.ask("/v1/embeddings", token="rm-nobody", body={})[0] == 401
        assert house.ask("/v1/embeddings", body={})[0] == 401
    used = {entry.name: (entry.requests, entry.inputs) for entry in accounts.all()}
    assert used == {"acme": (1, len(texts)), "zenith": (1, len(texts))}  # written when the gateway stopped


def test_a_tenant_that_the_key_lacks_is_not_served_without_its_mark(key_file, database, accounts):
    key = accounts.add("newcomer")
    with running(open_gateway(Settings(key_file, database=database))) as house:
        status, _, body = house.ask("/v1/embeddings", token=key, body={"model": "wordllama", "input": "a text"})
    assert status == 503
    assert b"account_not_ready" in body


def test_a_whole_key_is_cut_down_to_the_tenants_of_the_database(texts, tmp_path, real_marker, wordllama):
    database, whole = str(tmp_path / "t.db"), tmp_path / "whole.rmkey"
    KeyRing((real_marker.key_,)).save(whole)
    accounts = Accounts.open(database)
    key = accounts.add("acme")
    gateway = open_gateway(Settings(whole, database=database))
    with running(gateway) as house:
        expected = real_marker.transform(wordllama.encode(texts), tenant="acme")
        assert np.array_equal(house.embed(texts, key), expected)
        assert gateway.served_key.current().labels == {"acme"}
        assert gateway.served_key.current().commitment is not None
    accounts.close()


def test_when_the_database_is_gone_the_answer_is_503(key_file, postgres):
    database = postgres.database()
    accounts = Accounts.open(database)
    key = accounts.add("acme")
    accounts.close()
    with running(open_gateway(Settings(key_file, database=database))) as house:
        postgres.stop()
        try:
            status, headers, body = house.ask("/v1/embeddings", token=key, body={"model": "wordllama", "input": "x"})
        finally:
            postgres.start()
        assert status == 503
        assert b"accounts_unavailable" in body
        assert headers["retry-after"] == "1"
        assert house.embed(["x"], key).shape == (1, 256)


def test_unmarked_vectors_leave_only_where_both_sides_said_so(texts, key_file, tmp_path, wordllama, real_marker):
    database = str(tmp_path / "t.db")
    accounts = Accounts.open(database)
    keys = {name: accounts.add(name, mode=mode) for name, mode in (("acme", "shadow"), ("zenith", "mark"))}
    clean = wordllama.encode(texts)
    for unmarked, plain in (("nobody", set()), ("shadow-tenants", {"acme"}), ("everyone", {"acme", "zenith"})):
        with running(open_gateway(Settings(key_file, database=database, unmarked=unmarked))) as house:
            for name, key in keys.items():
                expected = clean if name in plain else real_marker.transform(clean, tenant=name)
                assert np.array_equal(house.embed(texts, key), expected), (unmarked, name)
    accounts.close()


def test_what_cannot_be_opened_says_why_and_leaves_nothing_open(key_file, tmp_path):
    database = str(tmp_path / "t.db")
    broken = tmp_path / "broken.rmkey"
    broken.write_bytes(b"no key")
    broken.chmod(0o600)
    for settings, error, message in (
        (Settings(key_file, host="0.0.0.0"), InputError, "give a tenants database with --database"),
        (Settings(key_file, admin_token="short"), InputError, "the admin token has 5 letters and needs 16"),
        (Settings(broken, database=database), (KeyFileError, InputError), "broken.rmkey"),
        (Settings(key_file, database=database, unmarked="all"), InputError, "--serve-unmarked takes"),
        (Settings(key_file, database=database, upstream="nothing"), InputError, "unknown encoder"),
    ):
        with pytest.raises(error, match=message):
            open_gateway(settings)


def test_a_background_job_that_fails_begins_again(key_file, monkeypatch):
    monkeypatch.setattr("regionmarker.gateway.gateway._BEGIN_AGAIN", 0.01)
    gateway = open_gateway(Settings(key_file))
    begun = []

    async def failing():
        begun.append(1)
        if len(begun) < 3:
            raise RuntimeError("a bug")

    gateway.key_reloader.run = failing
    with running(gateway):
        eventually(lambda: len(begun) == 3, "the third beginning")
    assert gateway.stop_failures == []


def test_what_cannot_be_ended_well_is_told_and_the_rest_is_ended(key_file, database, accounts):
    gateway = open_gateway(Settings(key_file, database=database))

    async def failing():
        raise RuntimeError("a bug")

    gateway.upstream.close = failing
    with running(gateway):
        pass
    assert gateway.stop_failures == ["RuntimeError"]
    assert not gateway.tenants.usage._thread.is_alive()
