"""The exact p-value where every carrier has a list of candidates of its own.

H0: the suspect's answers are independent of the draw of the targets, given everything else. Carrier j's target is a
uniform draw from list j, independently of the others, so under H0

    p = P(|U(random tuple)| >= |U(true tuple)|),   U(t_1 .. t_J) = sum_j w_j z_j(t_j)

holds at every sample size and for every suspect, and the distribution of U is one convolution of J short histograms: no
tuple uses a text twice, so nothing has to be taken out, for any J. The test has two sides, because a removal may turn a
mark round. Weighted scores are first rounded to whole steps, alike for every candidate; the test of the rounded
statistic is itself exact. Probabilities are convolved directly: an FFT's error is absolute, and p-values are small.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from regionmarker.errors import InputError
from regionmarker.vectors import AnyArray, Doubles, Integers

STEP = 1.0 / 256.0
LIMIT = 16.0
_ROUNDING = 1.0 + 1e-12  # sums of rounded floats may fall short by their last digits; p must not


class ListTest:
    """The distribution of U over all tuples, for scores z (J, M) of which list j holds the places j L .. (j + 1) L - 1.

    Examples
    --------
    >>> z = np.zeros((2, 8))
    >>> z[0, 1], z[1, 6] = 5.0, 5.0
    >>> test = ListTest(z, np.ones(2))
    >>> [round(test.p_value(targets), 4) for targets in ((1, 6), (0, 6), (0, 5))]
    [0.0625, 0.4375, 1.0]
    """

    def __init__(self, z: Doubles, weights: Doubles) -> None:
        if z.ndim != 2 or not z.size or not np.isfinite(z).all():
            raise InputError(
                "scores must be a matrix of finite numbers, one row per carrier and one column per candidate"
            )
        if weights.shape != (len(z),):
            raise InputError(f"there are {len(z)} carriers, but weights of shape {weights.shape}")
        self.carriers, self.list_size = len(z), z.shape[1] // len(z)
        if self.list_size < 2:
            raise InputError(f"{z.shape[1]} candidates make no lists for {len(z)} carriers")
        whole = np.rint(np.clip(weights[:, None] * z, -LIMIT, LIMIT) / STEP).astype(np.int64)
        used = self.carriers * self.list_size
        self.steps: Integers = whole[:, :used]
        lists = self.steps.reshape(self.carriers, self.carriers, self.list_size)
        self.own: Integers = lists[np.arange(self.carriers), np.arange(self.carriers)]  # (J, L)
        self._lowest = int(self.own.min(axis=1).sum())
        self._chances = _convolved(self.own)

    def totals(self, tuples: AnyArray) -> Doubles:
        """Return U for each tuple of targets (T, J), in units of z."""
        return np.asarray(self._sums(tuples) * STEP, dtype=np.float64)

    def p_values(self, tuples: AnyArray) -> Doubles:
        """Return p for each tuple of targets, (T, J) -> (T,)."""
        sums = np.abs(np.arange(len(self._chances)) + self._lowest)
        order = np.argsort(-sums, kind="stable")
        tail = np.cumsum(self._chances[order])  # P(|U| among the largest), largest first
        largest_first = sums[order]
        wanted = np.abs(self._sums(tuples))
        places = np.searchsorted(-largest_first, -wanted, side="right") - 1
        return np.minimum(tail[places] * _ROUNDING, 1.0)

    def p_value(self, targets: Sequence[int]) -> float:
        """Return p for the true tuple."""
        return float(self.p_values(np.array([targets]))[0])

    @property
    def floor(self) -> float:
        """The smallest p that these lists can give."""
        return float(self.list_size) ** -self.carriers

    def _sums(self, tuples: AnyArray) -> Integers:
        tuples = np.atleast_2d(tuples)
        if tuples.shape[1] != self.carriers:
            raise InputError(f"a tuple of {tuples.shape[1]} targets does not fit {self.carriers} carriers")
        if (tuples // self.list_size != np.arange(self.carriers)).any():
            raise InputError("a target does not come from its carrier's list")
        return np.asarray(self.steps[np.arange(self.carriers), tuples].sum(axis=1))


def _convolved(own: Integers) -> Doubles:
    """Return P(sum - lowest sum = k) for k = 0, 1, .. over one uniform draw from each list (J, L)."""
    chances = np.ones(1)
    for scores in own:
        chances = np.convolve(chances, np.bincount(scores - scores.min()) / len(scores))
    return chances
