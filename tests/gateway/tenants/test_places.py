"""Places in the tenants' database, in SQLite and in PostgreSQL."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import sqlalchemy as sa

from regionmarker.errors import InputError
from regionmarker.gateway.tenants.accounts import Accounts
from regionmarker.gateway.tenants.database import assignments, open_database, places, schema_version
from regionmarker.keys.places import place_labels


@pytest.fixture
def accounts(database):
    opened = Accounts.open(database)
    yield opened
    opened.close()


def test_tenants_get_the_next_free_place(accounts):
    assert accounts.offer(["acme", *place_labels(3)]) == 3
    assert accounts.offer(place_labels(3)) == 0
    for name in ("zenith", "acme"):
        accounts.add(name)
    found = accounts.places()
    assert found.labels == {"zenith": "place-0001", "acme": "place-0002"}
    assert (found.free, found.offered) == (("place-0003",), 3)
    assert {entry.name: entry.label for entry in accounts.all()} == found.labels


def test_a_place_is_never_given_again(accounts):
    accounts.offer(place_labels(2))
    accounts.add("acme")
    accounts.revoke("acme")
    accounts.add("zenith")
    assert accounts.places().labels == {"acme": "place-0001", "zenith": "place-0002"}


def test_when_none_is_left_it_says_so_and_adds_nobody(accounts):
    accounts.offer(place_labels(1))
    accounts.add("acme")
    with pytest.raises(InputError, match=r"no place is left: all 1 are taken. Export .* with more --places"):
        accounts.add("zenith")
    assert [entry.name for entry in accounts.all()] == ["acme"]
    accounts.offer(place_labels(2))
    accounts.add("zenith")
    assert accounts.places().labels["zenith"] == "place-0002"


def test_without_places_a_mark_follows_from_the_name(accounts):
    accounts.add("acme")
    assert accounts.places().labels == {"acme": "acme"}
    accounts.offer(place_labels(1))
    accounts.add("zenith", by_name=True)
    assert accounts.places().labels["zenith"] == "zenith"
    assert accounts.places().free == ("place-0001",)


def test_no_tenant_is_called_like_a_place(accounts):
    with pytest.raises(InputError, match=r"place-0001 is the name of a place"):
        accounts.add("place-0001")


def test_many_places_are_given_out_by_number(accounts):
    assert accounts.offer(place_labels(10_001)) == 10_001
    with accounts.engine.begin() as connection:
        connection.execute(sa.delete(places).where(places.c.label < "place-9999", places.c.label != "place-10000"))
    accounts.add("a")
    accounts.add("b")
    assert accounts.places().labels == {"a": "place-9999", "b": "place-10000"}


def test_two_sign_ups_at_once_get_two_places(database):
    opened = [Accounts.open(database) for _ in range(4)]
    opened[0].offer(place_labels(20))
    with ThreadPoolExecutor(4) as threads:
        list(threads.map(lambda number: opened[number % 4].add(f"t{number}"), range(16)))
    found = opened[0].places()
    for accounts in opened:
        accounts.close()
    assert sorted(found.labels.values()) == place_labels(16)


@pytest.mark.parametrize(("column", "value"), [("label", "place-0009"), ("assigned", "2020-01-01"), ("digest", "0")])
def test_an_assignment_that_was_changed_is_noticed(accounts, column, value):
    accounts.offer(place_labels(9))
    for name in ("acme", "zenith", "third"):
        accounts.add(name)
    with accounts.engine.begin() as connection:
        connection.execute(sa.update(assignments).where(assignments.c.number == 2).values(**{column: value}))
    with pytest.raises(InputError, match=r"assignment 2 of the tenants' places .* Restore the table assignments"):
        accounts.places()


def test_the_last_assignment_is_checked_before_another_follows(accounts):
    accounts.add("acme")
    with accounts.engine.begin() as connection:
        connection.execute(sa.update(assignments).values(label="zenith"))
    with pytest.raises(InputError, match=r"belongs to tenant acme|is not what was written"):
        accounts.add("other")


def test_a_place_whose_assignment_was_taken_out_is_given_to_nobody_else(accounts):
    accounts.offer(place_labels(3))
    for name in ("acme", "zenith"):
        accounts.add(name)
    with accounts.engine.begin() as connection:
        connection.execute(sa.delete(assignments).where(assignments.c.tenant == "zenith"))
    with pytest.raises(InputError, match=r"tenant zenith has no assignment"):
        accounts.add("third")
    with pytest.raises(InputError, match=r"tenant zenith has no assignment.* Restore the table assignments"):
        accounts.places()


def test_a_place_that_is_none_is_refused(accounts):
    accounts.offer(place_labels(1))
    with accounts.engine.begin() as connection:
        connection.execute(sa.insert(places).values(label="mine", offered="2026"))
    for look in (accounts.places, lambda: accounts.add("acme")):
        with pytest.raises(InputError, match=r"holds 'mine', which is no place"):
            look()


def old_database(database) -> None:
    """Make a database as version 1 left it: with tenants, without the tables of places."""
    engine = open_database(database)
    accounts = Accounts(engine)
    for name in ("zenith", "acme"):
        accounts.add(name)
    accounts.revoke("zenith")
    with engine.begin() as connection:
        assignments.drop(connection)
        places.drop(connection)
        connection.execute(sa.update(schema_version).values(version=1))
    engine.dispose()


def test_an_older_database_is_brought_up_to_date(database):
    old_database(database)
    accounts = Accounts.open(database)
    found = accounts.places()
    assert found.labels == {"zenith": "zenith", "acme": "acme"}  # as they were served: by name, the revoked one too
    digest = found.digest
    accounts.close()
    accounts = Accounts.open(database)  # once
    assert accounts.places().digest == digest
    accounts.offer(place_labels(1))
    accounts.add("new")
    assert accounts.places().labels["new"] == "place-0001"
    accounts.close()


def test_gateways_may_bring_it_up_to_date_at_once(database):
    old_database(database)
    with ThreadPoolExecutor(4) as threads:
        opened = list(threads.map(lambda _: Accounts.open(database), range(4)))
    digests = {accounts.places().digest for accounts in opened}
    for accounts in opened:
        accounts.close()
    assert len(digests) == 1
