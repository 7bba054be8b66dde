"""Does the traffic still look like the corpus that the key was fitted on.

Trigger regions were drawn from those that the corpus filled. When traffic moves elsewhere, fewer vectors carry a mark,
or more than the provider wanted, and the key should be fitted again. A sample of the rows that pass is counted by
region, and each full window is compared with the fit: the total variation distance, half the sum of absolute
differences of shares. Texts like the corpus lie at 0.03 to 0.06 from it, other corpora at 0.08 to 0.42
(docs/how-to/roll-out.md).

Only the alarm leaves this file, never a count: counts by region would be the key by instalments.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from regionmarker.gateway.keyhold import Snapshot
from regionmarker.marking.regions import region_shares
from regionmarker.protocols import Doubles, Floats

WINDOW = 2048
LIMIT = 0.1
_ROWS_AT_ONCE = 8  # of one block: a large batch is often many pieces of one document
_BLOCK = 256

Alarm = Callable[[bool], None]


class RegionWatch:
    """Raises an alarm when traffic leaves the fitted regions, and takes it back when it returns.

    Parameters
    ----------
    alarm
        Told True when a window lies beyond the limit and the one before did not, and False the other way round.
    window
        Rows that are counted before they are compared.
    limit
        Total variation distance at which there is an alarm.

    Examples
    --------
    >>> watch = RegionWatch(print)
    >>> watch.state
    'not enough traffic yet'
    """

    def __init__(self, alarm: Alarm, *, window: int = WINDOW, limit: float = LIMIT) -> None:
        self._alarm, self._window, self._limit = alarm, window, limit
        self._version = 0
        self._expected: Doubles | None = None
        self._learned = False
        self._regions: list[int] = []
        self._waiting: list[Floats] = []
        self._rows_waiting = 0
        self.drifting: bool | None = None  # None until the first window is full

    @property
    def state(self) -> str:
        """What the operator is told: one of four sentences, and no number."""
        if self.drifting is None:
            return "not enough traffic yet"
        where = "traffic has left" if self.drifting else "traffic lies in"
        return f"{where} the regions of {'the first traffic seen' if self._learned else 'the corpus'}"

    def see(self, snapshot: Snapshot, clean: Floats) -> None:
        """Take a few rows of a block (n, D)."""
        if snapshot.version != self._version:
            self._begin(snapshot)
        step = -(-len(clean) // _ROWS_AT_ONCE)
        rows = clean[::step].copy() if step else clean
        self._waiting.append(rows)
        self._rows_waiting += len(rows)
        if self._rows_waiting >= min(_BLOCK, self._window):
            self._count(snapshot)

    def _begin(self, snapshot: Snapshot) -> None:
        shares = snapshot.marker.serving_.shares
        self._version = snapshot.version
        self._expected, self._learned = shares, shares is None
        self._regions, self._waiting, self._rows_waiting = [], [], 0
        self._settle(None)

    def _count(self, snapshot: Snapshot) -> None:
        self._regions += snapshot.marker.regions(np.concatenate(self._waiting)).tolist()
        self._waiting, self._rows_waiting = [], 0
        if len(self._regions) >= self._window:
            found = region_shares(np.asarray(self._regions), snapshot.marker.dimension)
            self._regions = []
            if self._expected is None:  # the serving key is an old one and does not say: take the first window for it
                self._expected = found
            self._settle(bool(total_variation(found, self._expected) > self._limit))

    def _settle(self, drifting: bool | None) -> None:
        before, self.drifting = self.drifting, drifting
        if bool(drifting) != bool(before):
            self._alarm(bool(drifting))


def total_variation(left: Doubles, right: Doubles) -> float:
    """Return the total variation distance of two distributions over the same regions.

    Examples
    --------
    >>> total_variation(np.array([0.5, 0.5]), np.array([0.25, 0.75]))
    0.25
    """
    return float(np.abs(left - right).sum() / 2)
