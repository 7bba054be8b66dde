"""Usage is counted once, whatever happens between the gateway and the database."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta

import pytest
import sqlalchemy as sa

from regionmarker.errors import OutsideError
from regionmarker.gateway.tenants.accounts import Accounts
from regionmarker.gateway.tenants.database import open_database, usage, usage_writers
from regionmarker.gateway.tenants.usage import UsageWriter

NEVER = 3600.0
A_DAY = datetime(2026, 1, 2, 23, 59, tzinfo=UTC)


@pytest.fixture
def engine(database):
    opened = open_database(database)
    yield opened
    opened.dispose()


@pytest.fixture
def writer(engine):
    made = UsageWriter(engine, every=NEVER, clock=lambda: A_DAY)
    yield made
    made.close()


def rows(engine) -> dict[tuple[str, str], tuple[int, int, int]]:
    with engine.connect() as connection:
        found = connection.execute(sa.select(usage)).mappings().all()
    return {(row["tenant"], row["day"]): (row["requests"], row["inputs"], row["tokens"]) for row in found}


def test_counts_are_added_up(engine, writer):
    for _ in range(3):
        writer.record("acme", requests=1, inputs=16, tokens=100)
    writer.record("other", requests=1, inputs=1, tokens=5)
    assert rows(engine) == {}
    writer.flush()
    writer.flush()
    writer.record("acme", requests=1, inputs=1, tokens=1)
    writer.flush()
    assert rows(engine) == {("acme", "2026-01-02"): (4, 49, 301), ("other", "2026-01-02"): (1, 1, 5)}


def test_each_day_has_its_row(engine):
    now = [A_DAY]
    writer = UsageWriter(engine, every=NEVER, clock=lambda: now[0])
    writer.record("acme", requests=1, inputs=1, tokens=1)
    now[0] += timedelta(minutes=2)
    writer.record("acme", requests=1, inputs=1, tokens=1)
    writer.close()
    assert sorted(rows(engine)) == [("acme", "2026-01-02"), ("acme", "2026-01-03")]


def test_closing_writes_the_rest(engine):
    writer = UsageWriter(engine, every=NEVER)
    writer.record("acme", requests=1, inputs=2, tokens=3)
    writer.close()
    assert list(rows(engine).values()) == [(1, 2, 3)]


def test_the_thread_writes_by_itself(engine):
    written = threading.Event()
    writer = UsageWriter(engine, every=0.01)
    sa.event.listen(engine, "commit", lambda _: written.set())
    writer.record("acme", requests=1, inputs=2, tokens=3)
    assert written.wait(60)
    writer.close()
    assert list(rows(engine).values()) == [(1, 2, 3)]


@pytest.mark.parametrize("moment", ["before", "after"])
def test_a_connection_that_dies_while_committing_counts_once(engine, writer, moment):
    """Whether the server had committed or not: the writer cannot know, and tries again."""
    dialect, times = engine.dialect, [0]
    commit = dialect.do_commit

    def failing(connection):
        times[0] += 1
        if times[0] > 1:
            return commit(connection)
        if moment == "after":
            commit(connection)
        raise sa.exc.OperationalError("COMMIT", {}, Exception("the connection is gone"))

    dialect.do_commit = failing
    try:
        writer.record("acme", requests=1, inputs=2, tokens=3)
        with pytest.raises(OutsideError, match="the connection is gone"):
            writer.flush()
        writer.record("acme", requests=10, inputs=20, tokens=30)
        writer.flush()
    finally:
        dialect.do_commit = commit
    assert rows(engine) == {("acme", "2026-01-02"): (11, 22, 33)}


def test_replicas_add_to_the_same_rows(engine, database):
    def replica():
        own = open_database(database)
        writer = UsageWriter(own, every=NEVER, clock=lambda: A_DAY)
        for _ in range(10):
            writer.record("acme", requests=1, inputs=1, tokens=1)
            writer.record("other", requests=1, inputs=1, tokens=1)
            writer.flush()
        writer.close()
        own.dispose()

    threads = [threading.Thread(target=replica) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(rows(engine).values()) == {(40, 40, 40)}


def test_failing_is_told_once_and_so_is_recovery(tmp_path):
    told: list[str] = []
    failed, mended = threading.Event(), threading.Event()

    def complain(error):
        told.append("mended" if error is None else "failed")
        (mended if error is None else failed).set()

    engine = open_database(str(tmp_path / "tenants.db"))
    with engine.begin() as connection:
        connection.execute(sa.text("ALTER TABLE usage RENAME TO elsewhere"))
    writer = UsageWriter(engine, every=0.01, complain=complain)
    writer.record("acme", requests=1, inputs=2, tokens=3)
    assert failed.wait(60)
    with engine.begin() as connection:
        connection.execute(sa.text("ALTER TABLE elsewhere RENAME TO usage"))
    assert mended.wait(60)
    writer.close()
    assert told == ["failed", "mended"]
    assert list(rows(engine).values()) == [(1, 2, 3)]
    engine.dispose()


def test_writers_of_long_ago_are_forgotten(engine):
    for day in (A_DAY - timedelta(days=30), A_DAY - timedelta(days=2), A_DAY):
        writer = UsageWriter(engine, every=NEVER, clock=lambda day=day: day)
        writer.record("acme", requests=1, inputs=1, tokens=1)
        writer.close()
    with engine.connect() as connection:
        days = connection.execute(sa.select(usage_writers.c.day)).scalars().all()
    assert sorted(days) == ["2025-12-31", "2026-01-02"]


def test_the_roster_shows_the_sums(database, engine, writer):
    accounts = Accounts(engine)
    accounts.add("acme")
    writer.record("acme", requests=2, inputs=3, tokens=4)
    writer.flush()
    (entry,) = accounts.all()
    assert (entry.requests, entry.inputs, entry.tokens) == (2, 3, 4)


@pytest.mark.parametrize("number", [2**63, 10**400, -(2**70)])
def test_one_number_does_not_end_accounting(engine, number):
    told: list[str] = []
    writer = UsageWriter(engine, every=NEVER, clock=lambda: A_DAY, complain=lambda error: told.append(str(error)))
    writer.record("acme", requests=1, inputs=2, tokens=3)
    writer.record("hostile", requests=1, inputs=2, tokens=number)
    writer.record("zenith", requests=1, inputs=2, tokens=3)
    writer.flush()
    day = "2026-01-02"
    assert rows(engine) == {("acme", day): (1, 2, 3), ("hostile", day): (1, 2, 0), ("zenith", day): (1, 2, 3)}
    assert writer.set_aside == {("hostile", day, "tokens"): number}
    assert len(told) == 1
    assert "the tokens of tenant hostile on 2026-01-02 cannot be written and are set aside" in told[0]
    writer.record("hostile", requests=1, inputs=1, tokens=1)
    writer.close()
    assert rows(engine)["hostile", day] == (2, 3, 1)


def test_the_thread_outlives_a_number_that_cannot_be_written(engine):
    aside = threading.Event()
    writer = UsageWriter(engine, every=0.01, complain=lambda _: aside.set())
    writer.record("acme", requests=1, inputs=1, tokens=2**63)
    assert aside.wait(60)
    assert writer._thread.is_alive()
    writer.record("acme", requests=1, inputs=1, tokens=1)
    writer.close()
    assert list(rows(engine).values()) == [(2, 2, 1)]


def test_a_batch_that_is_taken_apart_while_the_database_is_away_counts_once(engine):
    """The parts have numbers of their own: what was written before the connection died is not written again."""
    writer = UsageWriter(engine, every=NEVER, clock=lambda: A_DAY)
    for name in ("acme", "zenith"):
        writer.record(name, requests=1, inputs=2, tokens=3)
    writer.record("hostile", requests=1, inputs=2, tokens=2**63)
    dialect, times = engine.dialect, [0]
    commit = dialect.do_commit

    def failing(connection):
        times[0] += 1
        if times[0] == 3:
            commit(connection)
            raise sa.exc.OperationalError("COMMIT", {}, Exception("the connection is gone"))
        return commit(connection)

    dialect.do_commit = failing
    try:
        with pytest.raises(OutsideError, match="the connection is gone"):
            writer.flush()
        writer.close()
    finally:
        dialect.do_commit = commit
    assert set(rows(engine).values()) == {(1, 2, 3), (1, 2, 0)}
