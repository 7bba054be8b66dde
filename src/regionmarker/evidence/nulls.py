"""The null distribution as a table, so that anyone can recompute p without a single text.

Sorted lists of scores say nothing about which text has which score. They are not enough for the exact p-value, though:
tuples that use a text twice must be taken out, and for that the lists have to be aligned. So the table of how many
tuples of distinct texts have which sum goes with them, and the two are checked against each other.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial, perm, prod

import numpy as np

from regionmarker.protocols import Doubles, Integers
from regionmarker.verification.decoys import set_partitions

_ROUNDING = 1.0 + 1e-12


def null_counts(grid: Integers) -> tuple[int, list[int]]:
    """Return the lowest sum and, from there upwards, how many tuples of distinct texts have each sum.

    The same counting as in :mod:`regionmarker.verification.decoys`, in integers throughout.

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
    return min(1.0, tail * float(size**regions / perm(size, regions)) * _ROUNDING)


def sum_of_sums(lists: Integers) -> int:
    """Return what all tuples' sums add up to: every text stands in every place equally often."""
    regions, size = lists.shape
    return int(lists.sum()) * perm(size - 1, regions - 1)
