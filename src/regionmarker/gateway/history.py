"""The last hour, minute by minute: what was answered and how long it took, for the charts of the console.

It counts in this process alone and forgets with it; who wants months keeps ``/metrics``.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import accumulate

MINUTES = 60
_MINUTE = 60.0  # seconds
_RATIO = 1.15  # of two neighbouring bounds: a quantile is off by at most so much
_BOUNDS = tuple(0.0001 * _RATIO**step for step in range(100))  # seconds, to a hundred


@dataclass
class Minute:
    """What was answered in one minute.

    Attributes
    ----------
    number
        Minutes since the epoch.
    served, refused, failed
        Answers of status below 400, below 500, and the rest.
    """

    number: int
    served: int = 0
    refused: int = 0
    failed: int = 0
    _times: list[int] = field(default_factory=lambda: [0] * (len(_BOUNDS) + 1), repr=False)

    def see(self, status: int, seconds: float) -> None:
        """Count one answer; only served ones have a time worth knowing, as refusals wait on purpose."""
        if status >= 500:
            self.failed += 1
        elif status >= 400:
            self.refused += 1
        else:
            self.served += 1
            self._times[bisect_left(_BOUNDS, seconds)] += 1

    @property
    def answered(self) -> int:
        return self.served + self.refused + self.failed

    def within(self, share: float) -> float | None:
        """Return the seconds within which a share of the minute was served; None where nothing was.

        Examples
        --------
        >>> minute = Minute(0)
        >>> for seconds in (0.01, 0.01, 0.01, 2.0):
        ...     minute.see(200, seconds)
        >>> round(minute.within(0.5), 3), round(minute.within(0.95), 1)
        (0.01, 2.0)
        """
        if not self.served:
            return None
        place = bisect_left(list(accumulate(self._times)), share * self.served)
        return _BOUNDS[min(place, len(_BOUNDS) - 1)]


class History:
    """The last minutes, oldest first, with empty ones where nothing was asked.

    Parameters
    ----------
    clock
        The time in seconds since the epoch.

    Examples
    --------
    >>> history = History(clock=lambda: 120.0)
    >>> history.see(200, 0.004)
    >>> [minute.served for minute in history.minutes()[-2:]]
    [0, 1]
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._ring = [Minute(-1) for _ in range(MINUTES)]

    def see(self, status: int, seconds: float) -> None:
        number = int(self._clock() // _MINUTE)
        place = number % MINUTES
        minute = self._ring[place]
        if minute.number != number:
            minute = self._ring[place] = Minute(number)
        minute.see(status, seconds)

    def minutes(self) -> list[Minute]:
        now = int(self._clock() // _MINUTE)
        kept = {minute.number: minute for minute in self._ring}
        return [kept.get(number) or Minute(number) for number in range(now - MINUTES + 1, now + 1)]
