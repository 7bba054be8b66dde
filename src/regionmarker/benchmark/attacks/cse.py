"""CSE (Clustering, Selection, Elimination): the attack of WARDEN's paper (ACL 2024) on marks with few targets.

Cluster the served vectors; inside clusters, find pairs that the provider calls more alike than a public encoder does,
for a shared mark makes them so; take the leading directions of the texts in such pairs; remove these directions from
every vector. The published code subtracts one direction after the other and normalises in between. The directions are
orthonormal, so this is one projection, E - (E V') V, and one normalisation.

**Clusters.** k-means, and a mixture of Gaussians with diagonal covariances, are NumPy alone, one thread's arithmetic in
a fixed order: the same rows and seed give the same clusters on every run, which threaded libraries do not promise.

**Pairs.** All pairs inside clusters are ranked twice, by served and by public cosine, and a pair is suspicious where
the first rank is far above the second. For 67,349 texts that is some 10^8 pairs, too many to hold; so two passes over
blocks of Gram matrices: the first counts cosines into a fine histogram, from which ranks are read; the second keeps the
pairs with the largest difference. Ranks are percentiles over all clusters together, as in the published attack. What is
approximate: cosines in one bin share a rank, the middle of the bin's. A percentile is off by at most half the share of
pairs in its bin (:attr:`Ranks.error`), 1e-5 and less on real vectors, where suspicious pairs differ by nearly 1.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from regionmarker.benchmark.attacks.base import WholeDataAttack, check_rows_of, with_directions
from regionmarker.benchmark.attacks.public_map import PublicMap
from regionmarker.benchmark.protocols import StolenData
from regionmarker.errors import InputError
from regionmarker.vectors import AnyArray, Doubles, Floats, Integers, normalised

METHODS = ("kmeans", "gmm")
_BLOCK = 8192  # rows at a time
_PASSES = 50
_FLOOR = 1e-6  # of a variance: a dimension in which a cluster is a point would outweigh all others

BINS = 1 << 20
"""Of the histogram, over cosines -1 to 1: a bin is 2e-6 wide, a little more than float32 is sure of."""

_BLOCK_PAIRS = 1 << 20  # pairs at a time: a few arrays of 4 MB

Gram = tuple[Integers, Integers, Floats, Floats]
_RANK = 1e-5  # singular values below this share of the largest are rounding, as are those below _NOTHING
_NOTHING = 1e-6


@dataclass(frozen=True)
class CSE(WholeDataAttack):
    """Remove the directions that suspiciously similar pairs share (paper: 20 clusters, 50 components).

    Attributes
    ----------
    clusters
        At the most; half as many as there are texts, where these are few.
    components
        How many directions are removed; fewer where the suspicious rows span fewer.
    pairs
        Suspicious pairs to keep, as a share of the number of texts.
    method
        ``kmeans`` or ``gmm``.
    seed
        Of the clustering.
    hidden
        Compare with what a public map of so many hidden units says of the served vectors; 0: with public vectors.

    Examples
    --------
    >>> from regionmarker import load_encoder
    >>> from regionmarker.sample_corpus import python_sentences
    >>> texts, public = python_sentences(200), load_encoder("wordllama")
    >>> rows = public.encode(texts)
    >>> served = rows + rows[0]  # a constant target in every vector
    >>> attacked = CSE(components=2).apply(StolenData(texts, served, public=public)).vectors
    >>> bool((attacked @ rows[0]).mean() < 0.1)
    True
    """

    spec: ClassVar[str] = "cse"

    clusters: int = 20
    components: int = 50
    pairs: float = 0.025
    method: str = "kmeans"
    seed: int = 0
    hidden: int = 0

    def __post_init__(self) -> None:
        self._check(self.clusters >= 1, f"clusters must be at least 1, but is {self.clusters}")
        self._check(self.components >= 1, f"components must be at least 1, but is {self.components}")
        self._check(0 < self.pairs <= 1, f"pairs must be a share above 0 and at most 1, but is {self.pairs}")
        self._check(self.method in METHODS, f"method must be {' or '.join(METHODS)}, but is {self.method!r}")
        self._check(self.seed >= 0, f"the seed must not be negative, but is {self.seed}")
        self._check(self.hidden >= 0, f"hidden must not be negative, but is {self.hidden}")

    def apply(self, stolen: StolenData, /) -> StolenData:
        check_rows_of(stolen, 2, attack=self.name)
        width = stolen.vectors.shape[1]
        if self.components >= width:
            raise InputError(
                f"{self.name} removes {self.components} directions and needs wider vectors, but their width is {width}"
            )
        return self.removed(stolen, self.suspects(stolen))

    def removed(self, stolen: StolenData, suspicion: Suspicion) -> StolenData:
        """Return the stolen data without the leading directions of the suspicious rows."""
        directions = leading_directions(stolen.vectors[suspicion.rows], self.components)
        return with_directions(stolen, without(stolen.vectors, directions), attack=self.name)

    def suspects(self, stolen: StolenData) -> Suspicion:
        """Return the suspicious pairs of the stolen data."""
        served, texts = normalised(stolen.vectors), list(stolen.texts)
        said = PublicMap.of(stolen, self.hidden).unseen if self.hidden else stolen.public_encoder().encode(texts)
        public = normalised(np.asarray(said, dtype=np.float32))
        count = min(self.clusters, max(1, len(stolen) // 2))  # so that there are pairs
        numbers = cluster(served, count, method=self.method, seed=self.seed)
        return suspicious_pairs(served, public, numbers, max(1, round(self.pairs * len(stolen))))


def leading_directions(rows: AnyArray, count: int) -> Doubles:
    """Return the first right singular vectors of rows (m, D), not centred; (k, D), k at most ``count`` and the rank.

    Examples
    --------
    >>> leading_directions(np.array([[3.0, 0.0], [4.0, 0.0]]), 2).tolist()
    [[1.0, 0.0]]
    """
    exact = rows.astype(np.float64)
    _, sizes, directions = np.linalg.svd(exact, full_matrices=False)
    rank = int((sizes > max(_RANK * float(sizes.max(initial=0)), _NOTHING)).sum())
    directions = directions[: min(count, rank)]
    signs = np.sign(directions[np.arange(len(directions)), np.abs(directions).argmax(axis=1)])
    return np.asarray(directions * signs[:, None])


def without(rows: Floats, directions: Doubles) -> Doubles:
    """Project rows (n, D) onto what is orthogonal to orthonormal directions (k, D)."""
    return np.asarray(rows - (rows @ directions.T) @ directions)


# ---- clusters


def cluster(rows: Floats, count: int, *, method: str = "kmeans", seed: int = 0) -> Integers:
    """Return each row's cluster number, (n,), in ``count`` clusters or as many as there are distinct rows.

    Examples
    --------
    >>> rows = np.array([[0.0, 1.0], [0.1, 1.0], [5.0, 0.0], [5.1, 0.0]], dtype=np.float32)
    >>> numbers = cluster(rows, 2)
    >>> bool(numbers[0] == numbers[1] != numbers[2] == numbers[3])
    True
    """
    if method not in METHODS:
        raise InputError(f"there is no clustering {method!r}: give {' or '.join(METHODS)}")
    numbers, centres = kmeans(rows, min(count, len(rows)), seed)
    return mixture(rows, numbers, len(centres)) if method == "gmm" and len(centres) > 1 else numbers


def kmeans(rows: Floats, count: int, seed: int) -> tuple[Integers, Floats]:
    """Lloyd's algorithm from a k-means++ start: numbers (n,) and centres (k, D), where k <= count."""
    centres = _spread_start(rows, count, np.random.default_rng(seed))
    numbers: Integers = np.full(len(rows), -1, dtype=np.int64)
    for _ in range(_PASSES):
        before = numbers
        numbers = _nearest(rows, centres)
        if (numbers == before).all():
            break
        for number in range(len(centres)):
            members = rows[numbers == number]
            if len(members):  # an empty cluster keeps its centre, and may find members again
                centres[number] = members.mean(axis=0)
    return numbers, centres


def _spread_start(rows: Floats, count: int, rng: np.random.Generator) -> Floats:
    """Draw centres one after the other, far rows more likely (k-means++); fewer where the rows do not differ."""
    chosen = [int(rng.integers(len(rows)))]
    far = _distances(rows, rows[chosen])[:, 0]  # (n,) squared distance to the nearest centre
    while len(chosen) < count:
        cumulated = np.cumsum(far, dtype=np.float64)
        if cumulated[-1] <= 1e-9 * len(rows):
            break
        chosen.append(min(int(np.searchsorted(cumulated, rng.random() * cumulated[-1])), len(rows) - 1))
        far = np.minimum(far, _distances(rows, rows[chosen[-1:]])[:, 0])
    return rows[chosen].copy()


def _distances(rows: Floats, centres: Floats) -> Floats:
    sizes = np.einsum("ij,ij->i", rows, rows)[:, None] + np.einsum("ij,ij->i", centres, centres)
    return np.asarray(np.maximum(sizes - 2 * (rows @ centres.T), 0))


def _nearest(rows: Floats, centres: Floats) -> Integers:
    numbers = np.empty(len(rows), dtype=np.int64)
    half = np.einsum("ij,ij->i", centres, centres) / 2
    for block in _blocks(len(rows)):
        numbers[block] = np.argmax(rows[block] @ centres.T - half, axis=1)
    return numbers


def mixture(rows: Floats, numbers: Integers, count: int) -> Integers:
    """Refine k-means clusters by expectation-maximisation; each row goes to its likeliest Gaussian."""
    shares = np.zeros((len(rows), count))  # (n, k) how far each row belongs to each Gaussian
    shares[np.arange(len(rows)), numbers] = 1.0
    last = -np.inf
    for _ in range(_PASSES):
        weights = shares.sum(axis=0) + 1e-9  # (k,)
        means = (shares.T @ rows) / weights[:, None]  # (k, D)
        spread = np.maximum((shares.T @ np.square(rows)) / weights[:, None] - means**2, _FLOOR)
        fit = 0.0
        for block in _blocks(len(rows)):
            logs = _log_densities(rows[block], means, spread) + np.log(weights / len(rows))
            peak = logs.max(axis=1, keepdims=True)
            shares[block] = np.exp(logs - peak)
            total = shares[block].sum(axis=1, keepdims=True)
            shares[block] /= total
            fit += float((peak + np.log(total)).sum())
        if fit - last <= 1e-3 * len(rows):  # as scikit-learn stops: the mean log likelihood has settled
            break
        last = fit
    return np.asarray(np.argmax(shares, axis=1))


def _log_densities(rows: Floats, means: Doubles, spread: Doubles) -> Doubles:
    precise = 1 / spread  # (k, D)
    squares = np.square(rows, dtype=np.float64) @ precise.T - 2 * (rows @ (means * precise).T)
    return np.asarray(-(squares + (means**2 * precise).sum(axis=1) + np.log(2 * np.pi * spread).sum(axis=1)) / 2)


def _blocks(count: int) -> Iterator[slice]:
    return (slice(start, start + _BLOCK) for start in range(0, count, _BLOCK))


# ---- pairs


class Ranks:
    """Percentile ranks, read from counts of a histogram (BINS,)."""

    def __init__(self, counts: Integers) -> None:
        total = max(int(counts.sum()), 1)
        self._middles: Floats = ((np.cumsum(counts) - counts / 2) / total).astype(np.float32)
        self.error = float(counts.max(initial=0)) / total / 2
        """How far a percentile may be from that of an exact ranking, at the most."""

    def __call__(self, cosines: Floats) -> Floats:
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
