"""Tenants and their API keys, in SQLite and in PostgreSQL."""

from __future__ import annotations

import hashlib
import hmac
import stat
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import sqlalchemy as sa

from regionmarker.errors import InputError, OutsideError
from regionmarker.gateway.tenants import accounts as apikeys
from regionmarker.gateway.tenants.accounts import Accounts, api_key_id, digest_of, matches, new_api_key
from regionmarker.gateway.tenants.database import VERSION, open_database, schema_version


def test_keys_are_new_each_time_and_carry_256_bits():
    keys = {new_api_key() for _ in range(100)}
    assert len(keys) == len({api_key_id(key) for key in keys}) == 100
    assert {len(key.split("-", 2)[2]) for key in keys} == {43}


def test_only_a_digest_is_stored():
    key = new_api_key()
    assert digest_of(key) == hashlib.sha256(key.encode()).hexdigest()
    assert matches(key, digest_of(key))
    assert not matches(key, digest_of(new_api_key()))
    assert not matches(key, None)


@pytest.mark.parametrize(
    "text",
    ["", "rm-", "sk-0123", "rm-0123456789abcdef-", "RM-0123456789abcdef-" + 43 * "x", "rm-0123456789ABCDEF-" + 43 * "x",
     "rm-0123456789abcdef-" + 44 * "x", "rm-0123456789abcdef-" + 42 * "x" + "\n", "rm-0123456789abcdef-" + 43 * "é"],
)  # fmt: skip
def test_what_is_not_shaped_like_a_key_has_no_id(text):
    assert api_key_id(text) is None


@pytest.mark.parametrize("stored", [None, 64 * "0", 64 * "f"])
def test_digests_are_compared_in_constant_time_whether_or_not_the_key_is_known(monkeypatch, stored):
    compared = []

    def compare(left, right):
        compared.append((len(left), len(right)))
        return hmac.compare_digest(left, right)

    monkeypatch.setattr(apikeys, "hmac", type("Spy", (), {"compare_digest": staticmethod(compare)}))
    assert not matches(new_api_key(), stored)
    assert compared == [(64, 64)]


LIMITS = {"requests_per_minute": 60, "inputs_in_flight": 9}


@pytest.fixture
def accounts(database):
    opened = Accounts.open(database)
    yield opened
    opened.close()


def entry(accounts, name):
    return next(found for found in accounts.all() if found.name == name)


def test_a_tenant_is_added_with_its_limits(accounts):
    key = accounts.add("acme", limits=LIMITS, mode="shadow")
    found = entry(accounts, "acme")
    assert (found.requests_per_minute, found.inputs_in_flight, found.mode) == (60, 9, "shadow")
    assert found.api_key_ids == (key.split("-")[1],)
    assert found.active


def test_the_key_itself_is_not_in_the_database(accounts):
    key = accounts.add("acme")
    with accounts.engine.connect() as connection:
        rows = [
            str(row)
            for table in sa.inspect(accounts.engine).get_table_names()
            for row in connection.execute(sa.text(f'SELECT * FROM "{table}"'))
        ]
    assert not any(key in row or key.split("-", 2)[2] in row for row in rows)
    assert any(key.split("-")[1] in row for row in rows)  # the public id is: so rows were really read


def test_a_tenant_is_added_once(accounts):
    accounts.add("acme")
    with pytest.raises(InputError, match=r"acme exists already: .* tenants renew acme"):
        accounts.add("acme")
    with pytest.raises(InputError, match="ACME differs from acme by case alone"):
        accounts.add("ACME")
    assert len(accounts.all()) == 1


def test_keys_are_renewed_and_revoked_one_by_one(accounts):
    first, second = accounts.add("acme"), accounts.renew("acme")
    first_id, second_id = first.split("-")[1], second.split("-")[1]
    assert accounts.revoke("acme", first_id) == 1
    assert entry(accounts, "acme").api_key_ids == (second_id,)
    assert entry(accounts, "acme").revoked_key_ids == (first_id,)
    with pytest.raises(InputError, match="no working API key"):
        accounts.revoke("acme", first_id)
    assert accounts.revoke("acme") == 1
    assert accounts.revoke("acme") == 0
    assert not entry(accounts, "acme").active


def test_limits_and_mode_change_and_the_rest_stays(accounts):
    accounts.add("acme", limits=LIMITS)
    accounts.change("acme", limits={"requests_per_minute": None}, mode="shadow")
    found = entry(accounts, "acme")
    assert (found.requests_per_minute, found.inputs_in_flight, found.mode) == (None, 9, "shadow")


@pytest.mark.parametrize("name", ["", " ", "a b", "-a", "é", "a" * 65, "a/b", "<b>", "a\n", "'; drop table x; --"])
def test_bad_names_are_refused(tmp_path, name):
    accounts = Accounts.open(str(tmp_path / "t.db"))
    with pytest.raises(InputError, match="a tenant's name has"):
        accounts.add(name)
    accounts.close()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda accounts: accounts.add("a", mode="off"), "mode 'off' is not known: use mark or shadow"),
        (lambda accounts: accounts.add("a", limits={"inputs_in_flight": -1}), "inputs_in_flight must be at least 1"),
        (lambda accounts: accounts.change("ghost", mode="mark"), "there is no tenant 'ghost'"),
        (lambda accounts: accounts.revoke("ghost"), "there is no tenant 'ghost'"),
        (lambda accounts: accounts.renew("ghost"), "there is no tenant 'ghost'"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path, call, message):
    accounts = Accounts.open(str(tmp_path / "t.db"))
    with pytest.raises(InputError, match=message):
        call(accounts)
    assert accounts.all() == []
    accounts.close()


# ---- the database itself


def test_replicas_may_start_at_once_on_an_empty_database(database):
    """Each with connections of its own, as processes have."""
    barrier = threading.Barrier(6)

    def start(_):
        barrier.wait()
        open_database(database).dispose()

    with ThreadPoolExecutor(6) as replicas:
        list(replicas.map(start, range(6)))
    engine = open_database(database)
    with engine.connect() as connection:
        assert connection.execute(sa.select(schema_version.c.version)).scalars().all() == [VERSION]
    engine.dispose()


def test_tables_of_another_version_are_refused(database):
    engine = open_database(database)
    with engine.begin() as connection:
        connection.execute(sa.update(schema_version).values(version=99))
    engine.dispose()
    with pytest.raises(InputError, match="tables of version 99, and this regionmarker knows version 2"):
        open_database(database)


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("", "has no address"),
        ("mysql://host/db", "SQLite or PostgreSQL, not in mysql"),
        ("sqlite://", "must be a file"),
        ("sqlite:///:memory:", "must be a file"),
        ("no/such/folder/t.db", "the folder no/such/folder does not exist"),
        ("postgresql://host:port/name", "cannot be read"),
    ],
)
def test_addresses_that_lead_nowhere(address, message):
    with pytest.raises(InputError, match=message):
        open_database(address)


def test_a_server_that_is_not_there_is_named_without_its_password(tmp_path):
    with pytest.raises(OutsideError, match=r"postgresql://gate:\*\*\*@/t.* does not answer") as failure:
        open_database(f"postgresql://gate:canary-5f3@/t?host={tmp_path}&port=5999")
    assert "canary-5f3" not in str(failure.value)


def test_a_file_that_is_no_database_is_named(tmp_path):
    path = tmp_path / "t.db"
    path.write_text("not a database, whatever its name says" * 100)
    with pytest.raises(OutsideError, match=f"{path} does not answer: file is not a database"):
        open_database(str(path))


def test_only_the_owner_reads_a_new_file(tmp_path):
    path = tmp_path / "t.db"
    open_database(f"sqlite:///{path}").dispose()
    assert stat.S_IMODE(Path(path).stat().st_mode) == 0o600
