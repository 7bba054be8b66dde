"""How much is under way at once, counted in inputs and in bytes, and who is next.

A request of 2048 texts is not one of one text, so capacity, queue and tenants' limits are all in inputs. Who does not
fit waits for its turn in a short queue, and the tenant with the least under way is served first; a full queue takes
room from whoever holds most of it, so that one tenant cannot shut another out. All others hear when to come back.

One input may be one word or sixteen megabytes, so bytes are counted as well, from the first that is read to the end of
the answer. Who finds no room for its bytes does not wait: a body that waits is held.
"""

from __future__ import annotations

import asyncio
import random
import sys
import time
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from regionmarker.gateway.errors import ApiError, bad_request, retry_headers
from regionmarker.gateway.tenants import Tenant

_SHORTEST, _LONGEST = 0.05, 10.0  # seconds that clients are asked to wait
_MESSAGE = "the server is busy: come back later"


@dataclass(slots=True, eq=False)
class _Waiter:
    """One who waits. Cancelling a task cancels its turn at once, but wakes the task only in the loop's next turn."""

    inputs: int
    turn: asyncio.Future[None]
    since: float

    @property
    def has_left(self) -> bool:
        """Whether nobody would take the turn: a place that is given to it would never come back."""
        return self.turn.done()


@dataclass(slots=True)
class _Line:
    """One tenant's share of the gateway."""

    limit: int | None
    in_flight: int = 0
    queued: int = 0
    waiters: deque[_Waiter] = field(default_factory=deque)

    def fits(self, inputs: int) -> bool:
        return self.limit is None or self.in_flight + inputs <= self.limit


class BytesHeld:
    """The bytes of one request, counted while the block runs.

    Examples
    --------
    >>> door = Admission(capacity=8, queue=0, patience=1.0, most_bytes=100)
    >>> with door.hold_bytes(Tenant("a")) as held:
    ...     held.grow(40)
    ...     door.bytes_held
    40
    >>> door.bytes_held
    0
    """

    __slots__ = ("_door", "_name", "_size")

    def __init__(self, door: Admission, name: str) -> None:
        self._door, self._name, self._size = door, name, 0

    def __enter__(self) -> BytesHeld:
        return self

    def __exit__(self, *_error: object) -> None:
        self._door._count_bytes(self._name, -self._size)
        self._size = 0

    def expect(self, size: int) -> None:
        """Refuse now what would not fit later; nothing is counted yet, as who promises bytes need not send them."""
        if not self._door._has_room(self._name, size):
            raise self._door.busy("bytes")

    def grow(self, size: int) -> None:
        """Count more bytes, or refuse where there is no room."""
        self.expect(size)
        self._door._count_bytes(self._name, size)
        self._size += size

    def grow_to(self, size: int) -> None:
        """Count as many bytes in all, if that is more."""
        if size > self._size:
            self.grow(size - self._size)


class Admission:
    """The door: lets in what fits, queues a little, refuses the rest.

    Parameters
    ----------
    capacity
        Inputs under way at once.
    queue
        Inputs that may wait.
    patience
        Seconds that one may wait.
    most_bytes
        Bytes that may be held at once; one tenant may hold half of them.
    clock
        Seconds.

    Examples
    --------
    >>> async def two_at_once():
    ...     door = Admission(capacity=8, queue=0, patience=1.0)
    ...     async with door.enter(Tenant("a"), 5):
    ...         async with door.enter(Tenant("b"), 5):
    ...             pass
    >>> asyncio.run(two_at_once())
    Traceback (most recent call last):
    ...
    regionmarker.gateway.errors.ApiError: the server is busy: come back later
    """

    def __init__(
        self,
        capacity: int,
        queue: int,
        patience: float,
        *,
        most_bytes: int = sys.maxsize,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.most_bytes = most_bytes
        self.bytes_held = 0
        self._bytes_by_tenant: dict[str, int] = {}
        self.capacity = capacity
        self.queue = queue
        self.patience = patience
        self.in_flight = 0
        self.queued = 0
        self._clock = clock
        self._lines: dict[str, _Line] = {}
        self._rate = 0.0  # inputs per second that were finished lately
        self._finished, self._since = 0, clock()

    def is_full_for(self, tenant: Tenant) -> bool:
        """Say whether even one input of this tenant would be refused, so that its body need not be read."""
        if self.queued < self.queue or (not self.queued and self.in_flight < self.capacity):
            return False
        line = self._lines.get(tenant.name)
        return self._victim((line.queued if line else 0) + 1) is None

    @asynccontextmanager
    async def enter(self, tenant: Tenant, inputs: int) -> AsyncIterator[None]:
        """Wait for a turn, hold ``inputs`` places while the block runs, and give them back."""
        line = self._lines.get(tenant.name)
        if line is None:
            line = self._lines[tenant.name] = _Line(tenant.inputs_in_flight)
        line.limit = tenant.inputs_in_flight
        if line.limit is not None and inputs > line.limit:
            self._forget(tenant.name, line)
            raise bad_request(f"'input' must hold at most {line.limit} inputs for this account", "input")
        try:
            if not self.queued and line.fits(inputs) and self.in_flight + inputs <= self.capacity:
                self._grant(line, inputs)
            else:
                await self._wait(line, inputs)
        except BaseException:
            self._forget(tenant.name, line)
            raise
        try:
            yield
        finally:
            self.in_flight -= inputs
            line.in_flight -= inputs
            self._note(inputs)
            self._forget(tenant.name, line)
            if self.queued:
                self._dispatch()

    def hold_bytes(self, tenant: Tenant) -> BytesHeld:
        """Begin to count the bytes of one request; use it as a context."""
        return BytesHeld(self, tenant.name)

    def _has_room(self, name: str, size: int) -> bool:
        own = self._bytes_by_tenant.get(name, 0)
        return self.bytes_held + size <= self.most_bytes and own + size <= self.most_bytes // 2

    def _count_bytes(self, name: str, size: int) -> None:
        self.bytes_held += size
        own = self._bytes_by_tenant.get(name, 0) + size
        if own:
            self._bytes_by_tenant[name] = own
        else:
            self._bytes_by_tenant.pop(name, None)

    def busy(self, kind: str = "busy") -> ApiError:
        """Return the refusal of one who comes while everything is full."""
        return ApiError(429, "rate_limit_exceeded", _MESSAGE, headers=retry_headers(self.seconds_to_wait()), kind=kind)

    def seconds_to_wait(self) -> float:
        """Guess when there will be room; spread, so that not everybody comes back at once."""
        ahead = self.in_flight + self.queued
        guess = ahead / self._rate if self._rate > 0 else 1.0
        return min(max(guess, _SHORTEST), _LONGEST) * random.uniform(0.75, 1.25)  # noqa: S311 - no secret

    async def _wait(self, line: _Line, inputs: int) -> None:
        while self.queued + inputs > self.queue:
            victim = self._victim(line.queued + inputs)
            if victim is None:
                raise self.busy()
            self._turn_out(victim, victim.waiters[-1], "pushed_out")
        waiter = _Waiter(inputs, asyncio.get_running_loop().create_future(), self._clock())
        line.waiters.append(waiter)
        line.queued += inputs
        self.queued += inputs
        self._dispatch()
        timer = asyncio.get_running_loop().call_later(self.patience, self._give_up, line, waiter)
        try:
            await waiter.turn
        except asyncio.CancelledError:
            if waiter.turn.done() and not waiter.turn.cancelled() and waiter.turn.exception() is None:
                self.in_flight -= inputs  # its turn had come, but nobody was there to take it
                line.in_flight -= inputs
                self._dispatch()
            elif waiter in line.waiters:
                self._leave(line, waiter)
                self._dispatch()  # it may have stood before others that fit
            raise
        finally:
            timer.cancel()

    def _give_up(self, line: _Line, waiter: _Waiter) -> None:
        if not waiter.has_left:
            self._turn_out(line, waiter, "patience")
            self._dispatch()

    def _turn_out(self, line: _Line, waiter: _Waiter, kind: str) -> None:
        self._leave(line, waiter)
        if not waiter.has_left:
            waiter.turn.set_exception(self.busy(kind))

    def _victim(self, share: int) -> _Line | None:
        """Return the line that holds most of the queue, if that is more than ``share``."""
        longest = max(self._lines.values(), key=lambda line: line.queued, default=None)
        return longest if longest is not None and longest.queued > share else None

    def _leave(self, line: _Line, waiter: _Waiter) -> None:
        line.waiters.remove(waiter)
        line.queued -= waiter.inputs
        self.queued -= waiter.inputs

    def _grant(self, line: _Line, inputs: int) -> None:
        self.in_flight += inputs
        line.in_flight += inputs

    def _dispatch(self) -> None:
        """Let in whoever fits: the tenant with the least under way first, and among equals the one that came first."""
        while True:
            for line in self._lines.values():
                while line.waiters and line.waiters[0].has_left:
                    self._leave(line, line.waiters[0])
            ready = [line for line in self._lines.values() if line.waiters and line.fits(line.waiters[0].inputs)]
            if not ready:
                return
            line = min(ready, key=lambda line: (line.in_flight, line.waiters[0].since))
            waiter = line.waiters[0]
            if self.in_flight + waiter.inputs > self.capacity:
                return  # the next one is large: it gets the next room there is, or it would wait for ever
            self._leave(line, waiter)
            self._grant(line, waiter.inputs)
            waiter.turn.set_result(None)

    def _forget(self, name: str, line: _Line) -> None:
        if not line.in_flight and not line.waiters and self._lines.get(name) is line:
            del self._lines[name]

    def _note(self, inputs: int) -> None:
        """Keep the rate at which inputs are finished, over about a second."""
        self._finished += inputs
        elapsed = self._clock() - self._since
        if elapsed >= 0.25:
            self._rate += (self._finished / elapsed - self._rate) * min(1.0, elapsed if self._rate else 1.0)
            self._finished, self._since = 0, self._clock()
