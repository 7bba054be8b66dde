"""The lookup: who is let in, for how long, and what happens when the database is gone."""

from __future__ import annotations

import asyncio
import sqlite3
import threading

import pytest

from regionmarker.gateway.errors import ApiError
from regionmarker.gateway.tenants import Tenant
from regionmarker.gateway.tenants.accounts import Accounts, new_api_key
from regionmarker.gateway.tenants.database import open_database
from regionmarker.gateway.tenants.lookup import DatabaseLookup

LIMITS = {"requests_per_minute": 60, "inputs_in_flight": 9}


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def accounts(database):
    opened = Accounts.open(database)
    yield opened
    opened.close()


def with_directory(database, clock, use, complain=lambda _: None):
    async def main():
        lookup = DatabaseLookup(open_database(database), fresh=3.0, clock=clock, complain=complain)
        try:
            return await use(lookup)
        finally:
            await lookup.close()

    return asyncio.run(main())


def count_queries(lookup) -> list[str]:
    import sqlalchemy as sa

    asked = []
    sa.event.listen(lookup.engine, "before_cursor_execute", lambda *event: asked.append(event[2]))
    return asked


def test_an_api_key_finds_its_tenant(database, accounts, clock):
    acme = accounts.add("acme", limits=LIMITS, mode="shadow")
    other = accounts.add("other")

    async def use(lookup):
        return [await lookup.find(key) for key in (acme, other, accounts.renew("acme"))]

    found = with_directory(database, clock, use)
    assert found == [Tenant("acme", 60, 9, "shadow"), Tenant("other"), Tenant("acme", 60, 9, "shadow")]


def test_nobody_else_is_let_in(database, accounts, clock):
    key = accounts.add("acme")
    forged = key[:-1] + ("A" if key[-1] != "A" else "B")  # the right id, one letter of the secret wrong
    strangers = ["", "acme", "sk-1", key.upper(), key + "x", key.split("-")[1], forged, new_api_key(), "\0", "ü" * 2000]

    async def use(lookup):
        return [await lookup.find(stranger) for stranger in strangers]

    assert with_directory(database, clock, use) == [None] * len(strangers)


def test_a_tenant_under_load_costs_one_query(database, accounts, clock):
    key = accounts.add("acme")

    async def use(lookup):
        asked = count_queries(lookup)
        await asyncio.gather(*(lookup.find(key) for _ in range(50)))
        await asyncio.gather(*(lookup.find(key) for _ in range(50)))
        return [statement for statement in asked if statement.startswith("SELECT api_keys")]

    assert len(with_directory(database, clock, use)) == 1


def test_what_is_no_key_of_ours_costs_none(database, accounts, clock):
    async def use(lookup):
        asked = count_queries(lookup)
        await lookup.find("sk-something-else")
        return asked

    assert with_directory(database, clock, use) == []


def test_a_revoked_key_stops_working_when_the_answer_is_stale(database, accounts, clock):
    key = accounts.add("acme")

    async def use(lookup):
        before = await lookup.find(key)
        accounts.revoke("acme")
        clock.now += 2.9
        still = await lookup.find(key)
        clock.now += 0.2
        return before.name, still.name, await lookup.find(key)

    assert with_directory(database, clock, use) == ("acme", "acme", None)


def test_a_change_of_limits_or_mode_arrives_too(database, accounts, clock):
    key = accounts.add("acme")

    async def use(lookup):
        await lookup.find(key)
        accounts.change("acme", limits={"requests_per_minute": 5}, mode="shadow")
        clock.now += 3.1
        return await lookup.find(key)

    assert with_directory(database, clock, use) == Tenant("acme", 5, None, "shadow")


def test_answers_do_not_pile_up(database, accounts, clock, monkeypatch):
    monkeypatch.setattr("regionmarker.gateway.tenants.lookup._REMEMBERED", 10)

    async def use(lookup):
        for _ in range(30):
            assert await lookup.find(new_api_key()) is None
        return len(lookup._answers), len(lookup._asking)

    assert with_directory(database, clock, use) == (10, 0)


def test_no_api_key_is_kept_in_memory(database, accounts, clock):
    key = accounts.add("acme")

    async def use(lookup):
        await lookup.find(key)
        return repr(lookup._answers)

    kept = with_directory(database, clock, use)
    assert "acme" in kept
    assert key not in kept


def test_a_client_that_leaves_takes_nobody_with_it(database, accounts, clock):
    key = accounts.add("acme")

    async def use(lookup):
        first = asyncio.ensure_future(lookup.find(key))
        second = asyncio.ensure_future(lookup.find(key))
        await asyncio.sleep(0)
        first.cancel()
        return (await second).name

    assert with_directory(database, clock, use) == "acme"


# ---- the database goes away


def test_without_postgresql_nobody_is_let_in_and_with_it_again_all_are(postgres, clock):
    database = postgres.database()
    accounts = Accounts.open(database)
    key = accounts.add("acme")
    accounts.close()

    async def use(lookup):
        assert (await lookup.find(key)).name == "acme"
        postgres.stop()
        try:
            assert (await lookup.find(key)).name == "acme"  # fresh answers outlive it
            clock.now += 3.1
            for api_key in (key, new_api_key()):
                with pytest.raises(ApiError, match="cannot be checked just now") as failure:
                    await lookup.find(api_key)
                assert failure.value.status == 503
            lookup.record("acme", requests=1, inputs=2, tokens=3)
        finally:
            postgres.start()
        return (await lookup.find(key)).name

    assert with_directory(database, clock, use) == "acme"
    accounts = Accounts.open(database)
    assert accounts.all()[0].tokens == 3  # counted while it was away
    accounts.close()


def test_a_locked_or_broken_sqlite_file_lets_nobody_in(tmp_path, clock):
    path = tmp_path / "tenants.db"
    accounts = Accounts.open(str(path))
    key = accounts.add("acme")
    accounts.close()
    complaints = []

    async def use(lookup):
        with sqlite3.connect(path) as other:
            other.execute("DROP TABLE api_keys")
        other.close()
        for _ in range(20):
            with pytest.raises(ApiError, match="cannot be checked just now"):
                await lookup.find(key)
        assert len(complaints) == 1  # not one a request
        assert "no such table" in str(complaints[0])

    with_directory(str(path), clock, use, complaints.append)


def test_a_database_that_hangs_is_given_up(tmp_path, clock, monkeypatch):
    monkeypatch.setattr("regionmarker.gateway.tenants.lookup.ANSWER_SECONDS", 0.05)
    path = tmp_path / "tenants.db"
    Accounts.open(str(path)).close()
    released, complaints = threading.Event(), []

    async def use(lookup):
        monkeypatch.setattr(lookup, "_look_up", lambda *_: released.wait(60))
        with pytest.raises(ApiError, match="cannot be checked just now"):
            await lookup.find(new_api_key())
        assert "does not answer in time" in str(complaints[0])
        released.set()

    with_directory(str(path), clock, use, complaints.append)
