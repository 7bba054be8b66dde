"""Whose an API key is: tenants looked up in a database, and remembered for a moment.

Answers are remembered for a few seconds, so that a tenant under load costs one query in that time, and a revoked key
works no longer than that. When the database does not answer, nobody is let in: clients get 503. Only an answer
that is younger than those few seconds outlives the database.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

import sqlalchemy as sa

from regionmarker.errors import OutsideError
from regionmarker.gateway.errors import ApiError, retry_headers
from regionmarker.gateway.tenants import Tenant
from regionmarker.gateway.tenants.accounts import api_key_id, digest_of, matches
from regionmarker.gateway.tenants.database import (
    api_keys,
    assignments,
    explained,
    open_database,
    reading,
    shown,
    tenants,
)
from regionmarker.gateway.tenants.usage import UsageWriter

if TYPE_CHECKING:
    from sqlalchemy.engine import Engine

FRESH_SECONDS = 3.0
ANSWER_SECONDS = 8.0  # longer than the database's own patience, which gives the better message
_REMEMBERED = 20_000
_THREADS = 4
_QUIET_SECONDS = 5.0  # between two complaints: a busy gateway would fill its log with them


@dataclass(frozen=True)
class _Answer:
    tenant: Tenant | None
    until: float


class DatabaseLookup:
    """Tenants in a database that several gateways share.

    Parameters
    ----------
    engine
        What :func:`regionmarker.gateway.tenants.database.open_database` returned; the lookup closes it.
    fresh
        Seconds that an answer is remembered: how long a revoked API key may go on working.
    clock
        Seconds that only go forward.
    complain
        Called when the database does not answer, and with ``None`` when usage can be written to it again.

    Examples
    --------
    >>> import tempfile
    >>> from regionmarker.gateway.tenants.accounts import Accounts
    >>> database = tempfile.mkdtemp() + "/tenants.db"
    >>> accounts = Accounts.open(database)
    >>> key = accounts.add("acme")
    >>> accounts.close()
    >>> async def who(*keys):
    ...     tenants = DatabaseLookup.open(database)
    ...     found = [await tenants.find(key) for key in keys]
    ...     await tenants.close()
    ...     return [tenant and tenant.name for tenant in found]
    >>> asyncio.run(who(key, "rm-forged"))
    ['acme', None]
    """

    def __init__(
        self,
        engine: Engine,
        *,
        fresh: float = FRESH_SECONDS,
        clock: Callable[[], float] = time.monotonic,
        complain: Callable[[Exception | None], None] = lambda _: None,
    ) -> None:
        self.engine = engine
        self._fresh, self._clock = fresh, clock
        self._complain = complain
        self._quiet_until = float("-inf")
        self._answers: OrderedDict[str, _Answer] = OrderedDict()  # by digest: a key itself is never kept
        self._asking: dict[str, asyncio.Future[Tenant | None]] = {}
        # Threads of its own: a database that hangs must not hold up others' threads.
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="regionmarker-tenants")
        self.usage = UsageWriter(engine, complain=complain)

    @classmethod
    def open(cls, address: str, *, complain: Callable[[Exception | None], None] = lambda _: None) -> Self:
        return cls(open_database(address), complain=complain)

    async def find(self, api_key: str) -> Tenant | None:
        key_id = api_key_id(api_key)
        if key_id is None:
            return None  # not one of ours: no database is asked
        digest = digest_of(api_key)
        answer = self._answers.get(digest)
        if answer is not None and self._clock() < answer.until:
            return answer.tenant
        asking = self._asking.get(digest)
        if asking is None:  # one question at a time per key, however many requests wait for it
            asking = asyncio.ensure_future(self._ask(api_key, key_id, digest))
            self._asking[digest] = asking
            asking.add_done_callback(lambda done: self._asked(digest, done))
        return await asyncio.shield(asking)  # a client that leaves does not take the answer from the others

    def labels(self) -> tuple[str, ...]:
        """Return the labels that the tenants' marks follow from."""
        with explained(self.engine), reading(self.engine) as connection:
            return tuple(connection.execute(sa.select(assignments.c.label)).scalars())

    def record(self, tenant: str, *, requests: int, inputs: int, tokens: int) -> None:
        self.usage.record(tenant, requests=requests, inputs=inputs, tokens=tokens)

    async def close(self) -> None:
        """Write the last usage and let go of the database; an OutsideError says that the last counts are lost."""
        loop = asyncio.get_running_loop()
        try:
            await loop.run_in_executor(None, self.usage.close)
        except OutsideError as error:
            raise OutsideError(f"the last usage was not written: {error}") from None
        finally:
            self._threads.shutdown(wait=False, cancel_futures=True)
            self.engine.dispose()

    def abandon(self) -> None:
        """Let go of everything where no event loop runs yet; nothing was counted."""
        self.usage.close()
        self._threads.shutdown(wait=False)
        self.engine.dispose()

    async def _ask(self, api_key: str, key_id: str, digest: str) -> Tenant | None:
        asked_at = self._clock()  # the answer is as old as the question
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
                tenant = await loop.run_in_executor(self._threads, self._look_up, api_key, key_id)
        except TimeoutError:
            late = OutsideError(f"the tenants database {shown(self.engine.url)} does not answer in time")
            raise self._closed(late) from None
        except OutsideError as error:
            raise self._closed(error) from None
        self._answers[digest] = _Answer(tenant, asked_at + self._fresh)
        self._answers.move_to_end(digest)
        while len(self._answers) > _REMEMBERED:
            self._answers.popitem(last=False)
        return tenant

    def _closed(self, error: OutsideError) -> ApiError:
        """Complain to the operator, now and then; the client reads no more than that it is not its fault."""
        now = self._clock()
        if now >= self._quiet_until:
            self._quiet_until = now + _QUIET_SECONDS
            self._complain(error)
        message = "accounts cannot be checked just now: try again"
        return ApiError(503, "accounts_unavailable", message, headers=retry_headers(1.0), kind="directory")

    def _asked(self, digest: str, done: asyncio.Future[Tenant | None]) -> None:
        self._asking.pop(digest, None)
        if not done.cancelled():
            done.exception()  # seen: when every client has left, nobody else looks

    def _look_up(self, api_key: str, key_id: str) -> Tenant | None:
        columns = (tenants.c.name, tenants.c.requests_per_minute, tenants.c.inputs_in_flight, tenants.c.mode)
        query = (
            sa.select(api_keys.c.digest, api_keys.c.revoked, assignments.c.label, *columns)
            .join(tenants, tenants.c.name == api_keys.c.tenant)
            .join(assignments, assignments.c.tenant == tenants.c.name)
            .where(api_keys.c.id == key_id)
        )
        with explained(self.engine), reading(self.engine) as connection:
            row = connection.execute(query).mappings().first()
        if not matches(api_key, None if row is None else row["digest"]) or row is None or row["revoked"] is not None:
            return None
        place = None if row["label"] == row["name"] else row["label"]
        return Tenant(**{column.name: row[column.name] for column in columns}, place=place)
