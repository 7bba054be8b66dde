"""When to ask an upstream again, and when to stop: within a deadline, and within a budget over all requests.

Retries help against one lost connection and do harm to a server that is down: then every request asks three times. So
retries are paid from a budget that good answers fill, a tenth of one each; when it is empty, nobody asks again.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from typing import TypeVar

from regionmarker.gateway.errors import ApiError

T = TypeVar("T")
_FIRST_WAIT, _LONGEST_WAIT = 0.05, 2.0


class RetryableError(ApiError):
    """An error that asking again may mend.

    Attributes
    ----------
    wait
        Seconds that the upstream asks to wait; None for what we think right.
    """

    wait: float | None = None


class RetryBudget:
    """Retries that are left, over all requests.

    Examples
    --------
    >>> budget = RetryBudget(most=1.0)
    >>> budget.spend(), budget.spend()
    (True, False)
    """

    def __init__(self, most: float = 20.0, earned: float = 0.1) -> None:
        self._most = most
        self._earned = earned
        self._left = most

    def earn(self) -> None:
        self._left = min(self._most, self._left + self._earned)

    def spend(self) -> bool:
        if self._left < 1.0:
            return False
        self._left -= 1.0
        return True


class Retrier:
    """Asks, and asks again where that may help.

    A loop of our own and not a library's: it has to stop at the request's deadline before it waits, not after, and to
    take what the server asks for; and it costs the many requests that succeed at once nothing.
    """

    def __init__(self, attempts: int, budget: RetryBudget, on_retry: Callable[[], None]) -> None:
        self._attempts = attempts
        self._budget = budget
        self._on_retry = on_retry

    async def run(self, ask: Callable[[], Awaitable[T]], deadline: float) -> T:
        """Await ``ask()`` until it succeeds, fails for good, or there is no time left (``loop.time()``)."""
        now = asyncio.get_running_loop().time
        for attempt in range(1, self._attempts + 1):
            try:
                answer = await ask()
            except RetryableError as error:
                wait = error.wait
                if wait is None:
                    wait = min(_LONGEST_WAIT, _FIRST_WAIT * 2 ** (attempt - 1)) * random.uniform(0.5, 1.5)  # noqa: S311
                if attempt == self._attempts or now() + wait >= deadline or not self._budget.spend():
                    raise
                self._on_retry()
                await asyncio.sleep(wait)
            else:
                self._budget.earn()
                return answer
        raise AssertionError("unreachable")
