"""The exact p-value where every carrier has a list of candidates of its own.

H0: the suspect's answers are independent of the draw of the targets, given everything else. Carrier j's target is a
uniform draw from list j, independently of the others, so under H0

    p = P(|U(random tuple)| >= |U(true tuple)|),   U(t_1 .. t_J) = sum_j w_j z_j(t_j)

holds at every sample size and for every suspect, and the distribution of U is one convolution of J short histograms: no
tuple uses a text twice, so nothing has to be taken out, for any J. The test has two sides, because a removal may turn a
mark round. Weighted scores are first rounded to whole steps, alike for every candidate; the test of the rounded
statistic is itself exact. Probabilities are convolved directly: an FFT's error is absolute, and p-values are small.

With the lists of scores, in whatever order each is, anyone recomputes p without a single text.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from regionmarker.errors import InputError
from regionmarker.vectors import AnyArray, Doubles, Integers

STEP = 1.0 / 256.0
LIMIT = 16.0
_ROUNDING = 1.0 + 1e-12  # sums of rounded floats may fall short by their last digits; p must not


def in_steps(weighted: Doubles) -> Integers:
    """Round weighted scores to whole steps, clipped alike for every candidate.

    Examples
    --------
    >>> in_steps(np.array([0.5, -99.0])).tolist()
    [128, -4096]
    """
    return np.rint(np.clip(weighted, -LIMIT, LIMIT) / STEP).astype(np.int64)


class ListTest:
    """The distribution of U over all tuples, for the scores z (J, L) of every carrier's own list.

    A target is named by its place in the pool: list j holds the places j L .. (j + 1) L - 1.

    Examples
    --------
    >>> z = np.zeros((2, 4))
    >>> z[0, 1], z[1, 2] = 5.0, 5.0
    >>> test = ListTest(z, np.ones(2))
    >>> [round(test.p_value(targets), 4) for targets in ((1, 6), (0, 6), (0, 5))]
    [0.0625, 0.4375, 1.0]
    """

    def __init__(self, z: Doubles, weights: Doubles) -> None:
        if z.ndim != 2 or z.shape[1] < 2 or not np.isfinite(z).all():
            raise InputError("scores must be a matrix of finite numbers, one row per carrier, one column per candidate")
        if weights.shape != (len(z),):
            raise InputError(f"there are {len(z)} carriers, but weights of shape {weights.shape}")
        self.weights = weights
        self.steps: Integers = in_steps(weights[:, None] * z)  # (J, L)
        self.carriers, self.list_size = self.steps.shape

    def totals(self, tuples: AnyArray) -> Doubles:
        """Return U for each tuple of targets (T, J), in units of z."""
        return np.asarray(self._sums(tuples) * STEP, dtype=np.float64)

    def p_values(self, tuples: AnyArray) -> Doubles:
        """Return p for each tuple of targets, (T, J) -> (T,)."""
        return p_from_lists(self.steps, self._sums(tuples))

    def p_value(self, targets: Sequence[int]) -> float:
        return float(self.p_values(np.array([targets]))[0])

    def observed(self, targets: Sequence[int]) -> list[int]:
        """Return the score of every carrier's target, in whole steps."""
        return [int(score) for score in self._scores(np.array([targets]))[0]]

    @property
    def floor(self) -> float:
        """The smallest p that these lists can give: a tuple counts with its mirror image, if there is one."""
        return float(float(self.list_size) ** -self.carriers)

    def _sums(self, tuples: AnyArray) -> Integers:
        return np.asarray(self._scores(np.atleast_2d(tuples)).sum(axis=1))

    def _scores(self, tuples: AnyArray) -> Integers:
        if tuples.shape[1] != self.carriers:
            raise InputError(f"a tuple of {tuples.shape[1]} targets does not fit {self.carriers} carriers")
        places = tuples - self.list_size * np.arange(self.carriers)
        if ((places < 0) | (places >= self.list_size)).any():
            raise InputError("a target does not come from its carrier's list")
        return np.asarray(self.steps[np.arange(self.carriers), places])


def p_from_lists(lists: Integers, sums: AnyArray) -> Doubles:
    """Return P(|U'| >= |U|) for each sum U of observed scores (T,), from lists of scores (J, L) in any order.

    Examples
    --------
    >>> p_from_lists(np.array([[0, 3], [0, -3]]), np.array([0, 3])).round(3).tolist()
    [1.0, 0.5]
    """
    lowest, chances = distribution(lists)
    sizes = np.abs(np.arange(len(chances)) + lowest)
    order = np.argsort(-sizes, kind="stable")
    tail = np.cumsum(chances[order])  # P(|U'| among the largest), largest first
    places = np.searchsorted(-sizes[order], -np.abs(sums), side="right") - 1
    return np.where(places < 0, 0.0, np.minimum(tail[np.maximum(places, 0)] * _ROUNDING, 1.0))


def distribution(lists: Integers) -> tuple[int, Doubles]:
    """Return the lowest sum and, from there upwards, the probability of each, over one uniform draw from each list."""
    chances = np.ones(1)
    for scores in lists:
        chances = np.convolve(chances, np.bincount(scores - scores.min()) / len(scores))
    return int(lists.min(axis=1).sum()), chances
