"""How often a tenant may ask, and when those who ask too often hear so.

A tenant has a bucket of requests that refills by the minute. A refused client that asks again at once costs the gateway
the time to refuse it again, and enough of them leave no time to serve anybody. So a tenant that comes back before the
time it was given gets its next refusal only at that time: its connection waits, unread, and costs nothing meanwhile.
Clients that wait as they are asked to never notice.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from regionmarker.gateway.errors import ApiError, Headers, retry_headers
from regionmarker.gateway.tenants import Tenant

_KEPT = 10_000  # tenants; those who may ask again at once are forgotten beyond that
_LONGEST = 1.0  # seconds that one refusal is held back


def duration(seconds: float) -> str:
    """Write a time as OpenAI's headers do.

    Examples
    --------
    >>> duration(0.25), duration(90)
    ('250ms', '1m30s')
    """
    if seconds < 1:
        return f"{max(0, round(seconds * 1000))}ms"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes}m{rest}s" if minutes else f"{rest}s"


class Quotas:
    """A token bucket per tenant: a minute's requests may come at once, then they come at the rate they refill.

    Examples
    --------
    >>> quotas = Quotas(clock=lambda: 0.0)
    >>> dict(quotas.spend(Tenant("acme", requests_per_minute=2)))[b"x-ratelimit-remaining-requests"]
    b'1'
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._buckets: dict[str, tuple[float, float]] = {}  # tenant -> requests left, at what time

    def spend(self, tenant: Tenant) -> Headers:
        """Take one request from the bucket and return the headers that say how much is left; refuse if none is."""
        limit = tenant.requests_per_minute
        if limit is None:
            return []
        now = self._clock()
        left, then = self._buckets.get(tenant.name, (float(limit), now))
        left = min(float(limit), left + (now - then) * limit / 60.0)
        if left >= 1.0:
            self._keep(tenant.name, left - 1.0, now)
            return _headers(limit, left - 1.0)
        self._keep(tenant.name, left, now)
        wait = (1.0 - left) * 60.0 / limit if limit else 60.0
        message = f"rate limit reached: {limit} requests per minute; come back in {duration(wait)}"
        headers = [*retry_headers(wait), *_headers(limit, left)]
        raise ApiError(429, "rate_limit_exceeded", message, headers=headers, kind="rate")

    def _keep(self, name: str, left: float, now: float) -> None:
        if len(self._buckets) >= _KEPT and name not in self._buckets:
            horizon = now - 60.0  # a bucket that old is full again
            self._buckets = {key: pair for key, pair in self._buckets.items() if pair[1] > horizon}
        self._buckets[name] = (left, now)


def _headers(limit: int, left: float) -> Headers:
    full_in = (limit - left) * 60.0 / limit if limit else 60.0
    return [
        (b"x-ratelimit-limit-requests", b"%d" % limit),
        (b"x-ratelimit-remaining-requests", b"%d" % int(left)),
        (b"x-ratelimit-reset-requests", duration(full_in).encode()),
    ]


class HeldRefusals:
    """Holds back refusals, a bounded number of them.

    Examples
    --------
    >>> async def come_twice():
    ...     refusals, started = HeldRefusals(room=1), time.monotonic()
    ...     await refusals.hold("acme", 0.01)  # the first refusal comes at once
    ...     await refusals.hold("acme", 0.01)  # the second one when the client may come back
    ...     return time.monotonic() - started > 0.005
    >>> asyncio.run(come_twice())
    True
    """

    def __init__(self, room: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._room = room
        self._clock = clock
        self._back_at: dict[str, float] = {}  # tenant -> when it may come back
        self.waiting = 0

    async def hold(self, tenant: str, wait: float) -> None:
        """Note that ``tenant`` is asked to wait ``wait`` seconds; return when it may hear so."""
        now = self._clock()
        early = self._back_at.get(tenant, 0.0) - now
        if early <= 0.0 or self.waiting >= self._room:
            if len(self._back_at) >= _KEPT:
                self._back_at = {name: until for name, until in self._back_at.items() if until > now}
            self._back_at[tenant] = now + wait
            return
        self.waiting += 1
        try:
            await asyncio.sleep(min(early, _LONGEST))
        finally:
            self.waiting -= 1
