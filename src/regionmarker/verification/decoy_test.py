"""The exact p-value: the true tuple of targets among all tuples that might have been drawn.

H0: the suspect's answers are independent of the draw of the targets, given everything else. Then the true tuple is one
more ordered draw of R distinct pool texts, and

    p = P(U(random tuple) >= U(true tuple)),   U(t_1 .. t_R) = sum_r z_r(t_r)

holds at every sample size and for every suspect. Scores are first floored to an integer grid; the test of the gridded
statistic is itself exact. Tuples are counted by direct convolution of integers, and tuples that use a text twice are
taken out by inclusion and exclusion over the partitions of the regions, so p equals brute force. Where the counts
would outgrow float64's integers (M^R >= 2^53, or more than five regions) repeats stay in the numerator alone: that is
never below the exact p, and above it by no more than M^R / (M)_R - 1.
An FFT would be quicker and wrong: its error is absolute, and p-values are small.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import permutations
from math import factorial, perm, prod

import numpy as np

from regionmarker.errors import InputError
from regionmarker.vectors import AnyArray, Doubles, Integers

STEP = 1.0 / 128.0
LIMIT = 16.0
_MISSING = -1
_MOST_REGIONS = 5  # 52 partitions; the number grows faster than exponentially
_ROUNDING = 1.0 + 1e-12  # sums of rounded floats may fall short by their last digits; p must not


def to_grid(z: Doubles) -> Integers:
    """Floor scores to the integer grid, clipped alike for every candidate.

    Examples
    --------
    >>> to_grid(np.array([[0.0, 0.5, -99.0]])).tolist()
    [[0, 64, -2048]]
    """
    return np.floor(np.clip(z, -LIMIT, LIMIT) / STEP).astype(np.int64)


class DecoyTest:
    """The distribution of U over all tuples, for one matrix of scores z (R, M).

    A pool text without an answer (a column with NaN) drops out of the pool, and a tuple that holds one has p = 1. Which
    answers are missing is part of the answers, so under H0 it is independent of the draw: the true tuple, given that
    it was answered in full, is one more draw from the texts that were. A suspect's silence never helps the accuser;
    that the accuser withheld no answer is for the transcript and a replay to show.

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
            raise InputError(f"scores must be a matrix, one row a region and one column a pool text, not {z.shape}")
        seen = np.isfinite(z).all(axis=0)  # (M,)
        self._place = np.where(seen, np.cumsum(seen) - 1, _MISSING)
        self._grid = to_grid(z[:, seen])  # (R, M), M the number of answered pool texts from here on
        self.regions, self.pool_size = self._grid.shape
        if self.regions > self.pool_size:
            raise InputError(f"{self.regions} distinct targets cannot be drawn from a pool of {self.pool_size}")
        self._lowest = self._grid.min(axis=1)  # (R,)
        self.is_exact = self.regions <= _MOST_REGIONS and self.pool_size**self.regions < 2**53
        self._tail = self._exact_tail() if self.is_exact else self._bound_tail()

    def _exact_tail(self) -> Doubles:
        """Return P(sum - lowest sum >= k) for k = 0, 1, .. over tuples of distinct texts.

        Over the partitions of the regions into blocks that share a text, with the weight prod (-1)^(b-1) (b-1)!, tuples
        with repeats cancel. Every number on the way is an integer below 2^53.
        """
        shifted = self._grid - self._lowest[:, None]  # (R, M)
        counts = np.zeros(int(shifted.max(axis=1).sum()) + 1)
        for partition in set_partitions(range(self.regions)):
            weight = prod((-1) ** (len(block) - 1) * factorial(len(block) - 1) for block in partition)
            sums = np.ones(1)
            for block in partition:
                sums = np.convolve(sums, np.bincount(shifted[list(block)].sum(axis=0)).astype(np.float64))
            counts[: len(sums)] += weight * sums
        return np.cumsum(counts[::-1])[::-1] / perm(self.pool_size, self.regions)

    def _bound_tail(self) -> Doubles:
        """Return an upper bound of the same, from tuples with repeats."""
        distribution = np.ones(1)
        for row, lowest in zip(self._grid, self._lowest, strict=True):
            distribution = np.convolve(distribution, np.bincount(row - lowest) / self.pool_size)
        # Sum the small end first: the tail is where precision matters.
        return np.cumsum(distribution[::-1])[::-1] * self.inflation * _ROUNDING

    @property
    def inflation(self) -> float:
        """M^R / (M)_R: where p is a bound, it lies at most that less one above the exact p."""
        return float(self.pool_size**self.regions / perm(self.pool_size, self.regions))

    def totals(self, tuples: AnyArray) -> Doubles:
        """Return U for each tuple of targets (T, R), on the grid, in units of z; NaN where a target has no answer."""
        places = self._places(tuples)
        sums = self._grid[np.arange(self.regions), places].sum(axis=1) * STEP
        return np.where((places == _MISSING).any(axis=1), np.nan, sums)

    def p_values(self, tuples: AnyArray) -> Doubles:
        """Return p for each tuple of targets, (T, R) -> (T,)."""
        places = self._places(tuples)
        above = self._grid[np.arange(self.regions), places].sum(axis=1) - self._lowest.sum()
        tail = np.minimum(self._tail[np.clip(above, 0, len(self._tail) - 1)], 1.0)
        return np.where((places == _MISSING).any(axis=1), 1.0, tail)

    def p_value(self, targets: Sequence[int]) -> float:
        """Return p for the true tuple."""
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


def brute_force_p(z: Doubles, targets: Sequence[int]) -> float:
    """Count every ordered tuple of distinct pool texts: the oracle for small pools with all answers."""
    grid = to_grid(z)
    observed = sum(int(grid[row, place]) for row, place in enumerate(targets))
    drawn = permutations(range(z.shape[1]), len(z))
    sums = [sum(int(grid[row, place]) for row, place in enumerate(places)) for places in drawn]
    return float(np.mean(np.array(sums) >= observed))


def monte_carlo_p(z: Doubles, targets: Sequence[int], draws: int, seed: int) -> float:
    """Estimate p from random tuples of distinct pool texts: a cross-check for large pools with all answers."""
    grid, rng, rows = to_grid(z), np.random.default_rng(seed), np.arange(len(z))
    observed = int(grid[rows, list(targets)].sum())
    sums = [int(grid[rows, rng.choice(z.shape[1], size=len(z), replace=False)].sum()) for _ in range(draws)]
    return float((1 + np.count_nonzero(np.array(sums) >= observed)) / (1 + draws))


# The null distribution as a table, so that anyone can recompute p without a single text.  Sorted lists of scores say
# nothing about which text has which score. They are not enough for the exact p-value, though: tuples that use a text
# twice must be taken out, and for that the lists have to be aligned. So the table of how many tuples of distinct
# texts have which sum goes with them, and the two are checked against each other.

_ROUNDING_nulls = 1.0 + 1e-12


def null_counts(grid: Integers) -> tuple[int, list[int]]:
    """Return the lowest sum and, from there upwards, how many tuples of distinct texts have each sum.

    The same counting as in :mod:`regionmarker.verification.decoy_test`, in integers throughout.

    Examples
    --------
    >>> null_counts(np.array([[0, 1], [0, 5]]))  # (0, 5) and (1, 0)
    (0, [0, 1, 0, 0, 0, 1])
    """
    lowest = grid.min(axis=1)
    shifted = grid - lowest[:, None]  # (R, M)
    counts = np.zeros(int(shifted.max(axis=1).sum()) + 1, dtype=np.int64)
    for partition in set_partitions(range(len(grid))):
        weight = prod((-1) ** (len(block) - 1) * factorial(len(block) - 1) for block in partition)
        sums = np.ones(1, dtype=np.int64)
        for block in partition:
            sums = np.convolve(sums, np.bincount(shifted[list(block)].sum(axis=0)))
        counts[: len(sums)] += weight * sums
    used = np.flatnonzero(counts)[-1] + 1
    return int(lowest.sum()), counts[:used].tolist()


def p_from_counts(lowest: int, counts: Sequence[int], observed: int) -> float:
    """Return the share of tuples whose sum is at least ``observed``.

    Examples
    --------
    >>> p_from_counts(-1, [2, 1, 1], 0)
    0.5
    """
    return sum(counts[max(observed - lowest, 0) :]) / sum(counts)


def bound_distribution(lists: Integers) -> tuple[int, Doubles]:
    """Return the lowest sum and the probabilities of sums over tuples that may use a text twice."""
    lowest = lists.min(axis=1)
    distribution = np.ones(1)
    for row, low in zip(lists, lowest, strict=True):
        distribution = np.convolve(distribution, np.bincount(row - low) / lists.shape[1])
    return int(lowest.sum()), distribution


def p_from_lists(lists: Integers, observed: int) -> float:
    """Return an upper bound of p from sorted lists alone: tuples with repeats stay in the numerator."""
    regions, size = lists.shape
    lowest, distribution = bound_distribution(lists)
    tail = float(np.sum(distribution[max(observed - lowest, 0) :][::-1]))
    return min(1.0, tail * float(size**regions / perm(size, regions)) * _ROUNDING_nulls)


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
