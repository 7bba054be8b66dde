"""Usage: counted in memory, written in batches, each batch once.

A gateway must not wait for a database to count. So counts gather in memory, and every few seconds a thread writes what
has gathered as one numbered batch. The number is written in the same transaction: when a connection dies at the moment
of committing, nobody knows whether the batch was written, and writing it again under the same number settles it.
A gateway that is killed loses what gathered since its last batch, a few seconds.

A batch that the database refuses for what is in it would be refused for ever. It is taken apart, every count on its
own, and the one that cannot be written is set aside and complained about; all others are written.
"""

from __future__ import annotations

import secrets
import threading
from collections import Counter, deque
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import sqlalchemy as sa

from regionmarker.errors import OutsideError
from regionmarker.gateway.tenants.database import UNITS, explained, usage, usage_writers, writing

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection, Engine

EVERY_SECONDS = 2.0
_WRITERS_KEPT = timedelta(days=7)

_REFUSED = (sa.exc.DataError, sa.exc.IntegrityError, ArithmeticError, ValueError, TypeError)
"""What is about the counts, whichever driver says so; anything else is about the database."""
Counts = Counter[tuple[str, str, str]]  # (tenant, day, unit) -> count


class UsageWriter:
    """Counts what tenants use and writes it to the database.

    Parameters
    ----------
    engine
        An open tenants database.
    every
        Seconds between batches.
    complain
        Called once when writing begins to fail, and with ``None`` when it works again; and for every count that is set
        aside.
    clock
        Says what day it is.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        every: float = EVERY_SECONDS,
        complain: Callable[[Exception | None], None] = lambda _: None,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._engine, self._every, self._complain, self._clock = engine, every, complain, clock
        self._writer = secrets.token_hex(16)
        self._batch = 0
        self._gathered: Counts = Counter()
        self._pending: Counts = Counter()  # a batch that has its number and may or may not have been written
        self._apart: deque[Counts] = deque()  # parts of a batch that could not be written as a whole
        self.set_aside: Counts = Counter()
        """What cannot be written at all."""
        self._lock = threading.Lock()  # guards what gathers
        self._flushing = threading.Lock()  # one batch at a time
        self._failing = False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="regionmarker-usage", daemon=True)
        self._thread.start()

    def record(self, tenant: str, *, requests: int, inputs: int, tokens: int) -> None:
        """Count; never waits for the database."""
        day = self._clock().date().isoformat()
        with self._lock:
            for unit, count in zip(UNITS, (requests, inputs, tokens), strict=True):
                self._gathered[tenant, day, unit] += int(count)

    def flush(self) -> None:
        """Write what has gathered; what cannot be written now is kept, and counts once however often it is tried."""
        with self._flushing:
            while self._take():
                with explained(self._engine):
                    try:
                        with writing(self._engine) as connection:
                            self._write(connection)
                    except _REFUSED as error:
                        self._take_apart(error)
                self._pending = Counter()

    def close(self) -> None:
        """Write the last batch and stop; an OutsideError says that it could not be written."""
        self._stop.set()
        self._thread.join()
        self.flush()

    def _take(self) -> bool:
        """Give the next batch its number, unless the last one is still open."""
        if not self._pending:
            if self._apart:
                self._pending = self._apart.popleft()
            else:
                with self._lock:
                    self._pending, self._gathered = self._gathered, Counter()
            self._batch += 1
        return bool(self._pending)

    def _take_apart(self, error: Exception) -> None:
        """Try the counts of a batch one by one; set one aside that stands alone already. Nothing of it was written."""
        if len(self._pending) > 1:
            self._apart += [Counter({place: count}) for place, count in sorted(self._pending.items())]
            return
        self.set_aside.update(self._pending)
        for tenant, day, unit in self._pending:
            what = f"the {unit} of tenant {tenant or '(default)'} on {day} cannot be written and are set aside"
            self._complain(OutsideError(f"{what}: {type(error).__name__}"))

    def _write(self, connection: Connection) -> None:
        today = self._clock().date()
        mine = usage_writers.c.writer == self._writer
        written = connection.execute(sa.select(usage_writers.c.batch).where(mine)).scalar()
        if written is not None and written >= self._batch:
            return  # this batch was written after all
        number = _insert(connection, usage_writers).values(writer=self._writer, batch=self._batch, day=str(today))
        fresh = {"batch": number.excluded.batch, "day": number.excluded.day}
        connection.execute(number.on_conflict_do_update(index_elements=["writer"], set_=fresh))
        rows: dict[tuple[str, str], dict[str, int]] = {}
        for (tenant, day, unit), count in sorted(self._pending.items()):  # sorted: replicas lock rows in one order
            rows.setdefault((tenant, day), dict.fromkeys(UNITS, 0))[unit] = count
        for (tenant, day), counts in rows.items():
            add = _insert(connection, usage).values(tenant=tenant, day=day, **counts)
            more = {unit: usage.c[unit] + add.excluded[unit] for unit in UNITS}
            connection.execute(add.on_conflict_do_update(index_elements=["tenant", "day"], set_=more))
        if self._batch == 1:
            oldest = (today - _WRITERS_KEPT).isoformat()
            connection.execute(sa.delete(usage_writers).where(usage_writers.c.day < oldest))

    def _run(self) -> None:
        while not self._stop.wait(self._every):
            try:
                self.flush()
            except Exception as error:  # noqa: BLE001 - a thread that ends would end the accounts
                if not self._failing:
                    self._complain(error if isinstance(error, OutsideError) else OutsideError(type(error).__name__))
                self._failing = True
            else:
                if self._failing:
                    self._complain(None)
                self._failing = False


def _insert(connection: Connection, table: sa.Table) -> sa.dialects.postgresql.Insert:
    """Return an INSERT that can say ON CONFLICT, which both databases spell alike."""
    if connection.dialect.name == "sqlite":
        from sqlalchemy.dialects import sqlite

        return sqlite.insert(table)  # type: ignore[return-value]
    from sqlalchemy.dialects import postgresql

    return postgresql.insert(table)
