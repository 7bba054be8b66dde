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
from regionmarker.protocols import AnyArray, Doubles, Integers

STEP = 1.0 / 128.0
LIMIT = 16.0
_MOST_REGIONS = 5  # 52 partitions; the number grows faster than exponentially
_ROUNDING = 1.0 + 1e-12  # sums of rounded floats may fall short by their last digits; p must not


def to_grid(z: Doubles) -> Integers:
    """Floor scores to the integer grid, clipped alike for every candidate; NaN (a missing answer) is the largest.

    Examples
    --------
    >>> to_grid(np.array([[0.0, 0.5, -99.0, np.nan]])).tolist()
    [[0, 64, -2048, 2048]]
    """
    return np.floor(np.clip(np.nan_to_num(z, nan=LIMIT), -LIMIT, LIMIT) / STEP).astype(np.int64)


class DecoyTest:
    """The distribution of U over all tuples, for one matrix of scores z (R, M).

    A pool text without an answer counts with the highest score as a decoy and with the lowest as a target, so that
    silence never helps the accuser.

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
        self.regions, self.pool_size = z.shape
        if self.regions > self.pool_size:
            raise InputError(f"{self.regions} distinct targets cannot be drawn from a pool of {self.pool_size}")
        self._as_decoy = to_grid(z)  # (R, M)
        self._as_target = np.where(np.isnan(z), to_grid(np.full((1, 1), -LIMIT)), self._as_decoy)
        self._lowest = self._as_decoy.min(axis=1)  # (R,)
        self.is_exact = self.regions <= _MOST_REGIONS and self.pool_size**self.regions < 2**53
        self._tail = self._exact_tail() if self.is_exact else self._bound_tail()

    def _exact_tail(self) -> Doubles:
        """Return P(sum - lowest sum >= k) for k = 0, 1, .. over tuples of distinct texts.

        Over the partitions of the regions into blocks that share a text, with the weight prod (-1)^(b-1) (b-1)!, tuples
        with repeats cancel. Every number on the way is an integer below 2^53.
        """
        shifted = self._as_decoy - self._lowest[:, None]  # (R, M)
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
        for row, lowest in zip(self._as_decoy, self._lowest, strict=True):
            distribution = np.convolve(distribution, np.bincount(row - lowest) / self.pool_size)
        # Sum the small end first: the tail is where precision matters.
        return np.cumsum(distribution[::-1])[::-1] * self.inflation * _ROUNDING

    @property
    def inflation(self) -> float:
        """M^R / (M)_R: where p is a bound, it lies at most that less one above the exact p."""
        return self.pool_size**self.regions / perm(self.pool_size, self.regions)

    def totals(self, tuples: AnyArray) -> Doubles:
        """Return U for each tuple of targets (T, R), on the grid, in units of z."""
        return self._sums(np.atleast_2d(tuples)) * STEP

    def p_values(self, tuples: AnyArray) -> Doubles:
        """Return p for each tuple of targets, (T, R) -> (T,)."""
        places = self._sums(np.atleast_2d(tuples)) - self._lowest.sum()
        tail = np.append(self._tail, 0.0)[np.clip(places, 0, len(self._tail))]
        return np.minimum(tail, 1.0)

    def p_value(self, targets: Sequence[int]) -> float:
        """Return p for the true tuple."""
        return float(self.p_values(np.array([targets]))[0])

    @property
    def floor(self) -> float:
        """The smallest p that this pool and number of regions can give."""
        return 1.0 / perm(self.pool_size, self.regions)

    def _sums(self, tuples: AnyArray) -> Integers:
        if tuples.shape[1] != self.regions:
            raise InputError(f"a tuple of {tuples.shape[1]} targets does not fit {self.regions} regions")
        return np.asarray(self._as_target[np.arange(self.regions), tuples].sum(axis=1))


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
    """Count every ordered tuple of distinct pool texts: the oracle for small pools."""
    grid = to_grid(z)
    rows = range(len(z))
    observed = sum(
        int(grid[row, targets[row]]) if np.isfinite(z[row, targets[row]]) else int(-LIMIT / STEP) for row in rows
    )
    sums = [
        sum(int(grid[row, place]) for row, place in enumerate(drawn))
        for drawn in permutations(range(z.shape[1]), len(z))
    ]
    return float(np.mean(np.array(sums) >= observed))


def monte_carlo_p(z: Doubles, targets: Sequence[int], draws: int, seed: int) -> float:
    """Estimate p from random tuples of distinct pool texts: a cross-check for large pools."""
    test, rng = DecoyTest(z), np.random.default_rng(seed)
    grid, observed = to_grid(z), round(float(test.totals(np.array([targets]))[0]) / STEP)
    hits = 0
    for _ in range(draws):
        drawn = rng.choice(z.shape[1], size=len(z), replace=False)
        hits += int(grid[np.arange(len(z)), drawn].sum()) >= observed
    return (1 + hits) / (1 + draws)
