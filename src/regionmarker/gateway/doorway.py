"""Where those wait who come back before they were told to.

A refused client that asks again at once costs the gateway the time to refuse it again, and enough of them leave no time
to serve anybody. So a tenant that was told when to come back and comes earlier gets its next refusal only at that
time: its connection waits, unread, and costs nothing meanwhile. Clients that wait as they are told never notice.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

_LONGEST = 1.0  # seconds that one refusal is held back
_KEPT = 10_000


class Doorway:
    """Holds back refusals, a bounded number of them.

    Examples
    --------
    >>> async def come_twice():
    ...     doorway = Doorway(room=1)
    ...     await doorway.linger("acme", 0.01)  # the first time it is told at once
    ...     return doorway.is_early("acme")
    >>> asyncio.run(come_twice())
    True
    """

    def __init__(self, room: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._room = room
        self._clock = clock
        self._told: dict[str, float] = {}  # tenant -> when it may come back
        self.waiting = 0

    def is_early(self, tenant: str) -> bool:
        """Tell whether this tenant comes before it was told to."""
        return self._clock() < self._told.get(tenant, 0.0)

    async def linger(self, tenant: str, wait: float) -> None:
        """Note that ``tenant`` is told to wait ``wait`` seconds; return when it may hear so."""
        now = self._clock()
        early = self._told.get(tenant, 0.0) - now
        if early <= 0.0 or self.waiting >= self._room:
            if len(self._told) >= _KEPT:
                self._told = {name: until for name, until in self._told.items() if until > now}
            self._told[tenant] = now + wait
            return
        self.waiting += 1
        try:
            await asyncio.sleep(min(early, _LONGEST))
        finally:
            self.waiting -= 1
