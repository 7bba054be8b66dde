"""The exact p-value: the true tuple of targets among all tuples that might have been drawn.

H0: the suspect's answers are independent of the draw of the targets, given everything else. Then the true tuple is one
more ordered draw of R distinct pool texts, and

    p = P(U(random tuple) >= U(true tuple)),   U(t_1 .. t_R) = sum_r z_r(t_r)

holds at every sample size and for every suspect. Scores are first floored to whole steps; the test of the floored
statistic is itself exact. Tuples are counted by direct convolution of integers, and tuples that use a text twice are
taken out by inclusion and exclusion over the partitions of the regions, so p equals brute force. Where the counts
would outgrow float64's integers (M^R >= 2^53, or more than five regions) repeats stay in the numerator alone: that is
never below the exact p, and above it by no more than M^R / (M)_R - 1.
An FFT would be quicker and wrong: its error is absolute, and p-values are small.

The counts themselves are the null distribution as a table, and with sorted lists of scores anyone recomputes p from it
without a single text: a sorted list does not say which text has which score. The lists alone give a bound only, because
tuples that use a text twice cannot be taken out of lists that are not aligned.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import factorial, perm, prod

import numpy as np

from regionmarker.errors import InputError
from regionmarker.vectors import AnyArray, Doubles, Integers

STEP = 1.0 / 128.0
LIMIT = 16.0
_MISSING = -1
_MOST_REGIONS = 5  # 52 partitions; the number grows faster than exponentially
_ROUNDING = 1.0 + 1e-12  # sums of rounded floats may fall short by their last digits; p must not


def in_steps(z: Doubles) -> Integers:
    """Floor scores to whole steps, clipped alike for every candidate.

    Examples
    --------
    >>> in_steps(np.array([[0.0, 0.5, -99.0]])).tolist()
    [[0, 64, -2048]]
    """
    return np.floor(np.clip(z, -LIMIT, LIMIT) / STEP).astype(np.int64)


class DecoyTest:
    """The distribution of U over all tuples, for one matrix of scores z (R, M).

    A pool text without an answer (a column with NaN) drops out of the pool, and a tuple that holds one has p = 1. Which
    answers are missing is part of the answers, so under H0 it is independent of the draw: the true tuple, given that
    it was answered in full, is one more draw from the texts that were. A suspect's silence never helps the accuser;
    that the accuser withheld no answer is for the transcript and a replay to show.

    Attributes
    ----------
    steps
        The scores of the answered pool texts in whole steps, (R, M).
    is_exact
        Whether p is exact; otherwise it is an upper bound, at most ``inflation`` - 1 above the exact p.

    Examples
    --------
    >>> z = np.zeros((2, 10))
    >>> z[0, 3] = z[1, 7] = 5.0
    >>> test = DecoyTest(z)
    >>> round(test.p_value((3, 7)), 4)
    0.0111
    >>> test.p_value((0, 1))
    1.0
    """

    def __init__(self, z: Doubles) -> None:
        if z.ndim != 2 or not z.size:
            raise InputError(f"scores must be a matrix, one row per region and one column per pool text, not {z.shape}")
        answered = np.isfinite(z).all(axis=0)  # (M,)
        self._place = np.where(answered, np.cumsum(answered) - 1, _MISSING)
        self.steps = in_steps(z[:, answered])  # (R, M), M the number of answered pool texts from here on
        self.regions, self.pool_size = self.steps.shape
        if self.regions > self.pool_size:
            raise InputError(f"{self.regions} distinct targets cannot be drawn from a pool of {self.pool_size}")
        self.inflation = inflation(self.pool_size, self.regions)
        self.is_exact = self.regions <= _MOST_REGIONS and self.pool_size**self.regions < 2**53
        self._lowest = int(self.steps.min(axis=1).sum())
        self._counts = _counts(self.steps) if self.is_exact else None
        self._tail = bound_tail(self.steps) if self._counts is None else self._exact_tail(self._counts)

    def _exact_tail(self, counts: Doubles) -> Doubles:
        """Return P(sum - lowest sum >= k) for k = 0, 1, .. over tuples of distinct texts."""
        return np.cumsum(counts[::-1])[::-1] / perm(self.pool_size, self.regions)

    def null_counts(self) -> tuple[int, list[int]] | None:
        """Return the lowest sum and, from there upwards, how many tuples have each sum; None where p is a bound.

        Examples
        --------
        >>> DecoyTest(np.array([[0.0, STEP], [0.0, 5 * STEP]])).null_counts()  # (0, 5) and (1, 0)
        (0, [0, 1, 0, 0, 0, 1])
        """
        if self._counts is None:
            return None
        used = np.flatnonzero(self._counts)[-1] + 1
        return self._lowest, self._counts[:used].astype(np.int64).tolist()

    def totals(self, tuples: AnyArray) -> Doubles:
        """Return U for each tuple of targets (T, R), floored, in units of z; NaN where a target has no answer."""
        places = self._places(tuples)
        return np.where((places == _MISSING).any(axis=1), np.nan, self._sums(places) * STEP)

    def p_values(self, tuples: AnyArray) -> Doubles:
        """Return p for each tuple of targets, (T, R) -> (T,)."""
        places = self._places(tuples)
        above = self._sums(places) - self._lowest
        tail = np.minimum(self._tail[np.clip(above, 0, len(self._tail) - 1)], 1.0)
        return np.where((places == _MISSING).any(axis=1), 1.0, tail)

    def p_value(self, targets: Sequence[int]) -> float:
        return float(self.p_values(np.array([targets]))[0])

    def attained(self, level: float) -> float:
        """Return P(p <= level) under H0: the largest p-value that is at or below ``level``, 0 where there is none.

        Examples
        --------
        >>> test = DecoyTest(np.arange(8.0).reshape(1, 8))
        >>> test.attained(0.3), test.attained(0.1)
        (0.25, 0.0)
        """
        return float(self._tail[self._tail <= level].max(initial=0.0))

    @property
    def floor(self) -> float:
        """The smallest p that this pool and number of regions can give."""
        return 1.0 / perm(self.pool_size, self.regions)

    def _places(self, tuples: AnyArray) -> Integers:
        tuples = np.atleast_2d(tuples)
        if tuples.shape[1] != self.regions:
            raise InputError(f"a tuple of {tuples.shape[1]} targets does not fit {self.regions} regions")
        return self._place[tuples]

    def _sums(self, places: Integers) -> Integers:
        return np.asarray(self.steps[np.arange(self.regions), places].sum(axis=1))


def _counts(steps: Integers) -> Doubles:
    """Return how many tuples of distinct texts have each sum, from the lowest sum upwards.

    Over the partitions of the regions into blocks that share a text, with the weight prod (-1)^(b-1) (b-1)!, tuples
    with repeats cancel. Every number on the way is an integer below 2^53.
    """
    shifted = steps - steps.min(axis=1)[:, None]  # (R, M)
    counts = np.zeros(int(shifted.max(axis=1).sum()) + 1)
    for partition in set_partitions(range(len(steps))):
        weight = prod((-1) ** (len(block) - 1) * factorial(len(block) - 1) for block in partition)
        sums = np.ones(1)
        for block in partition:
            sums = np.convolve(sums, np.bincount(shifted[list(block)].sum(axis=0)).astype(np.float64))
        counts[: len(sums)] += weight * sums
    return counts


def set_partitions(items: Sequence[int]) -> Iterator[list[tuple[int, ...]]]:
    """Yield every way to cut ``items`` into blocks.

    Examples
    --------
    >>> len(list(set_partitions(range(3)))), len(list(set_partitions(range(5))))
    (5, 52)
    """
    if not len(items):
        yield []
        return
    for partition in set_partitions(items[1:]):
        yield [(items[0],), *partition]
        for place, block in enumerate(partition):
            yield [*partition[:place], (items[0], *block), *partition[place + 1 :]]


def inflation(pool_size: int, regions: int) -> float:
    """Return M^R / (M)_R: a bound of p lies at most that less one above the exact p."""
    return float(pool_size**regions / perm(pool_size, regions))


def bound_distribution(steps: Integers) -> Doubles:
    """Return the probability of each sum, from the lowest upwards, over tuples that may use a text twice."""
    distribution = np.ones(1)
    for row in steps:
        distribution = np.convolve(distribution, np.bincount(row - row.min()) / steps.shape[1])
    return distribution


def bound_tail(steps: Integers) -> Doubles:
    """Return an upper bound of P(sum - lowest sum >= k) for k = 0, 1, .., from tuples with repeats."""
    # Sum the small end first: the tail is where precision matters.
    tail = np.cumsum(bound_distribution(steps)[::-1])[::-1]
    return np.asarray(tail * inflation(steps.shape[1], len(steps)) * _ROUNDING)


def p_from_counts(lowest: int, counts: Sequence[int], observed: int) -> float:
    """Return the share of tuples whose sum is at least ``observed``.

    Examples
    --------
    >>> p_from_counts(-1, [2, 1, 1], 0)
    0.5
    """
    return sum(counts[max(observed - lowest, 0) :]) / sum(counts)


def p_from_lists(lists: Integers, observed: int) -> float:
    """Return an upper bound of p from lists of scores alone, in whatever order each is."""
    above = bound_tail(lists)[max(observed - int(lists.min(axis=1).sum()), 0) :]
    return min(1.0, float(above[0])) if len(above) else 0.0


def sum_of_sums(lists: Integers) -> int:
    """Return what all tuples' sums add up to: every text stands in every place equally often."""
    regions, size = lists.shape
    return int(lists.sum()) * perm(size - 1, regions - 1)


def holm(p_values: Doubles) -> Doubles:
    """Return Holm's step-down correction of many p-values.

    Examples
    --------
    >>> holm(np.array([0.01, 0.04, 0.03])).round(3).tolist()
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p_values, kind="stable")
    steps = np.maximum.accumulate(p_values[order] * np.arange(len(p_values), 0, -1))
    corrected = np.empty(len(p_values))
    corrected[order] = np.minimum(steps, 1.0)
    return corrected
