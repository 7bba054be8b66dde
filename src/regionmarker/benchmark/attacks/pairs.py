"""Pairs of texts that the provider calls more alike than a public encoder does: what CSE suspects.

All pairs inside clusters are ranked twice, by served and by public cosine, and a pair is suspicious where the first
rank is far above the second. For 67,349 texts that is some 10^8 pairs, too many to hold; so two passes over blocks of
Gram matrices: the first counts cosines into a fine histogram, from which ranks are read; the second keeps the
pairs with the largest difference. Ranks are percentiles over all clusters together, as in the published attack.

What is approximate: cosines in one bin share a rank, the middle of the bin's. A percentile is off by at most half the
share of pairs in its bin (:attr:`Ranks.error`), 1e-5 and less on real vectors, where the percentiles of suspicious
pairs differ by nearly 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from regionmarker.protocols import AnyArray, Doubles, Floats, Integers

BINS = 1 << 20
"""Of the histogram, over cosines -1 to 1: a bin is 2e-6 wide, a little more than float32 is sure of."""

_BLOCK_PAIRS = 1 << 20  # pairs at a time: a few arrays of 4 MB

Gram = tuple[Integers, Integers, Floats, Floats]


class Ranks:
    """Percentile ranks, read from counts of a histogram (BINS,)."""

    def __init__(self, counts: Integers) -> None:
        total = max(int(counts.sum()), 1)
        self._middles: Floats = ((np.cumsum(counts) - counts / 2) / total).astype(np.float32)
        self.error = float(counts.max(initial=0)) / total / 2
        """How far a percentile may be from that of an exact ranking, at the most."""

    def __call__(self, cosines: Floats) -> Floats:
        """Return the percentiles of cosines of any shape."""
        return np.asarray(self._middles[bins(cosines)])


@dataclass(frozen=True)
class Suspicion:
    """The pairs with the largest difference of ranks."""

    first: Integers  # (k,) rows
    second: Integers  # (k,) rows
    differences: Floats  # (k,) served percentile less public percentile, largest first
    pairs: int  # how many pairs were ranked
    error: float  # how far a difference may be from the exact one

    @property
    def rows(self) -> Integers:
        """The members of the pairs, each once, in order."""
        return np.union1d(self.first, self.second)


def bins(cosines: Floats) -> AnyArray:
    """Return the bin of each cosine."""
    scaled = (cosines + np.float32(1)) * np.float32(BINS / 2)
    return np.asarray(np.clip(scaled, 0, BINS - 1).astype(np.int32))


def suspicious_pairs(served: Floats, public: Floats, clusters: Integers, keep: int) -> Suspicion:
    """Return the ``keep`` most suspicious pairs inside clusters.

    Parameters
    ----------
    served, public
        Unit rows (n, D) and (n, F) of the same texts.
    clusters
        The rows' cluster numbers, (n,).
    keep
        How many pairs; all of them where there are no more.

    Examples
    --------
    >>> served = np.array([[1, 0], [1, 0], [0, 1]], dtype=np.float32)
    >>> public = np.array([[1, 0], [0, 1], [0, 1]], dtype=np.float32)
    >>> suspicious_pairs(served, public, np.zeros(3, dtype=np.int64), 1).rows.tolist()
    [0, 1]
    """
    counts = np.zeros((2, BINS), dtype=np.int64)
    for _, _, ours, theirs in gram_blocks(served, public, clusters):
        counts[0] += np.bincount(bins(ours), minlength=BINS)
        counts[1] += np.bincount(bins(theirs), minlength=BINS)
    rank, public_rank = Ranks(counts[0]), Ranks(counts[1])
    best = _Best(keep)
    for first, second, ours, theirs in gram_blocks(served, public, clusters):
        best.offer(first, second, rank(ours) - public_rank(theirs))
    return best.suspicion(int(counts[0].sum()), rank.error + public_rank.error)


def gram_blocks(served: Floats, public: Floats, clusters: Integers) -> Iterator[Gram]:
    """Yield every pair inside a cluster once: rows, rows, served cosines and public cosines, each (b,)."""
    for number in np.unique(clusters):
        members: Integers = np.flatnonzero(clusters == number)
        ours, theirs = served[members], public[members]
        start = 0
        while start < len(members) - 1:
            height = max(1, min(_BLOCK_PAIRS // (len(members) - start), len(members) - start))
            block, others = slice(start, start + height), slice(start, None)
            # (h, m) places of pairs, each row with those after it
            rows, columns = np.nonzero(np.tri(height, len(members) - start, dtype=bool) == 0)
            left = ours[block] @ ours[others].T
            right = theirs[block] @ theirs[others].T
            yield members[start + rows], members[start + columns], left[rows, columns], right[rows, columns]
            start += height


class _Best:
    """The pairs with the largest differences so far."""

    def __init__(self, keep: int) -> None:
        self.keep, self._floor = keep, -np.inf
        self._parts: list[tuple[Integers, Integers, Floats]] = []

    def offer(self, first: Integers, second: Integers, differences: Floats) -> None:
        chosen = np.flatnonzero(differences >= self._floor)  # equal ones too: the order of blocks must not decide
        self._parts.append((first[chosen], second[chosen], differences[chosen]))
        if sum(len(part[0]) for part in self._parts) > 4 * self.keep + _BLOCK_PAIRS:
            self._shrink()

    def _shrink(self) -> None:
        first, second, differences = self._joined()
        # Ties are broken by row number, so that the result does not depend on the blocks.
        order = np.lexsort((second, first, -differences))[: self.keep]
        self._parts = [(first[order], second[order], differences[order])]
        if len(order) == self.keep and self.keep:
            self._floor = float(differences[order[-1]])

    def _joined(self) -> tuple[Integers, Integers, Floats]:
        nothing = (np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32))
        first, second, differences = zip(*(self._parts or [nothing]), strict=True)
        return np.concatenate(first), np.concatenate(second), np.concatenate(differences)

    def suspicion(self, pairs: int, error: float) -> Suspicion:
        self._shrink()
        return Suspicion(*self._parts[0], pairs, error)


def exact_differences(served: Doubles, public: Doubles) -> Doubles:
    """Return rank differences by sorting all cosines (P,): the oracle that the histogram is held against.

    Examples
    --------
    >>> exact_differences(np.array([0.1, 0.9]), np.array([0.9, 0.1])).tolist()
    [-0.5, 0.5]
    """
    from scipy.stats import rankdata

    return np.asarray((rankdata(served) - rankdata(public)) / len(served))
