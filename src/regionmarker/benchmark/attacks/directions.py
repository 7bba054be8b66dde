"""Attacks along directions that the stolen data itself shows: principal components, and what a public encoder misses.

``compress`` is the dimensionality-reduction attack of SemMark's paper (arXiv 2512.16439). ``residuals`` is our own
attack on ourselves, aimed at marks that add one constant vector to a whole region. A mark is not in the text, so
whatever a public encoder predicts of a served vector is mostly meaning, and what it does not predict holds the mark,
beside all that the provider knows and the public encoder does not. Predict the served vectors by ridge, cluster what is
left, and take out the directions in which the clusters' residuals lie off zero on average: a region's mark is the same
in all its rows, and meaning that the public encoder misses mostly is not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from regionmarker.benchmark.attacks.base import WholeDataAttack, check_rows_of, with_directions
from regionmarker.benchmark.attacks.cse import kmeans, leading_directions, without
from regionmarker.benchmark.attacks.public_map import PublicMap
from regionmarker.benchmark.protocols import StolenData
from regionmarker.errors import InputError
from regionmarker.vectors import AnyArray, Doubles


@dataclass(frozen=True)
class Compress(WholeDataAttack):
    """Keep the leading principal components of the served vectors.

    Attributes
    ----------
    keep
        How many components; a number below 1 is a share of the width.
    restore
        Train on the vectors that the components stand for, (n, D), not on the components themselves, (n, keep).

    Examples
    --------
    >>> rows = np.random.default_rng(0).standard_normal((50, 8)).astype(np.float32)
    >>> stolen = StolenData(tuple("abcde" * 10), rows)
    >>> Compress(2).apply(stolen).vectors.shape, Compress(2, restore=True).apply(stolen).vectors.shape
    ((50, 2), (50, 8))
    """

    spec: ClassVar[str] = "compress"

    keep: float = 0.25
    restore: bool = False

    def __post_init__(self) -> None:
        whole = self.keep >= 1 and self.keep == int(self.keep)
        self._check(whole or 0 < self.keep < 1, f"keep a whole number of components or a share of 1, not {self.keep}")

    def apply(self, stolen: StolenData, /) -> StolenData:
        check_rows_of(stolen, 2, attack=self.name)
        width = stolen.vectors.shape[1]
        keep = int(self.keep) if self.keep >= 1 else max(1, round(self.keep * width))
        if keep > min(width, len(stolen) - 1):
            raise InputError(
                f"{self.name} needs vectors of at least {keep} dimensions and more than {keep} of them, "
                f"but there are {len(stolen)} of width {width}"
            )
        rows = stolen.vectors.astype(np.float64)
        centre = rows.mean(axis=0)
        axes = principal_axes(rows - centre, keep)[0]  # (k, D)
        parts = (rows - centre) @ axes.T  # (n, k)
        return with_directions(stolen, parts @ axes + centre if self.restore else parts, attack=self.name)


@dataclass(frozen=True)
class Band(WholeDataAttack):
    """Remove a band of principal components from every vector: the one where a thief expects the targets.

    Attributes
    ----------
    first, last
        The components, counted from 0; both go, and all between them.

    Examples
    --------
    >>> rows = np.random.default_rng(0).standard_normal((50, 8)).astype(np.float32)
    >>> left = Band(2, 5).apply(StolenData(tuple("abcde" * 10), rows)).vectors
    >>> left.shape, int(np.linalg.matrix_rank(left, tol=1e-3))
    ((50, 8), 5)
    """

    spec: ClassVar[str] = "band"

    first: int = 32
    last: int = 255

    def __post_init__(self) -> None:
        self._check(
            0 <= self.first <= self.last, f"the band must not end before it begins: {self.first} to {self.last}"
        )

    def apply(self, stolen: StolenData, /) -> StolenData:
        check_rows_of(stolen, 2, attack=self.name)
        width = stolen.vectors.shape[1]
        if self.first == 0 and self.last >= width - 1:
            raise InputError(f"{self.name} would remove every component of vectors of width {width}")
        centred = stolen.vectors - stolen.vectors.mean(axis=0, dtype=np.float64)
        axes = principal_axes(centred, self.last + 1)[0][self.first :]  # (k, D); none where vectors are narrower
        return with_directions(stolen, stolen.vectors - (centred @ axes.T) @ axes, attack=self.name)


def principal_axes(centred: AnyArray, count: int) -> tuple[Doubles, Doubles]:
    """Return the leading directions (k, D) of centred rows (n, D), and the deviations along them (k,).

    The sign of an axis is free; here its largest coordinate is positive, so that nothing but the rows decides.

    Examples
    --------
    >>> axes, deviations = principal_axes(np.array([[-2.0, 0.0], [2.0, 0.0]]), 1)
    >>> axes.tolist(), deviations.tolist()
    ([[1.0, 0.0]], [2.0])
    """
    exact = centred.astype(np.float64)
    values, vectors = np.linalg.eigh(exact.T @ exact / max(len(exact), 1))
    axes = np.ascontiguousarray(vectors[:, ::-1][:, :count].T)
    signs = np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)])
    return axes * signs[:, None], np.sqrt(np.maximum(values[::-1][:count], 0))


@dataclass(frozen=True)
class Residuals(WholeDataAttack):
    """Remove the leading mean residuals of clusters from every vector.

    Attributes
    ----------
    clusters
        Of residuals, by k-means.
    components
        How many directions are removed.
    seed
        Of the clustering.
    hidden
        Random units beside the public encoder's features: with 0 the public map is linear.

    Examples
    --------
    >>> from regionmarker import load_encoder
    >>> from regionmarker.sample_corpus import python_sentences
    >>> texts, public = python_sentences(200), load_encoder("wordllama")
    >>> attacked = Residuals(components=4).apply(StolenData(texts, public.encode(texts), public=public))
    >>> attacked.vectors.shape
    (200, 256)
    """

    spec: ClassVar[str] = "residuals"

    clusters: int = 16
    components: int = 16
    seed: int = 0
    hidden: int = 0

    def __post_init__(self) -> None:
        self._check(self.clusters >= 1, f"clusters must be at least 1, but is {self.clusters}")
        self._check(self.components >= 1, f"components must be at least 1, but is {self.components}")
        self._check(self.seed >= 0, f"the seed must not be negative, but is {self.seed}")
        self._check(self.hidden >= 0, f"hidden must not be negative, but is {self.hidden}")

    def apply(self, stolen: StolenData, /) -> StolenData:
        check_rows_of(stolen, 3, attack=self.name)
        directions = self.directions(stolen)
        if len(directions) >= stolen.vectors.shape[1]:
            raise InputError(f"{self.name} would remove every direction: vectors must be wider than {len(directions)}")
        return with_directions(stolen, without(stolen.vectors, directions), attack=self.name)

    def directions(self, stolen: StolenData) -> Doubles:
        """Return the orthonormal directions to remove, (k, D)."""
        residuals = PublicMap.of(stolen, self.hidden).residuals  # (n, D)
        numbers, centres = kmeans(residuals.astype(np.float32), min(self.clusters, len(stolen)), self.seed)
        means = np.stack([residuals[numbers == number].sum(axis=0) for number in range(len(centres))])  # (k, D)
        sizes = np.maximum(np.bincount(numbers, minlength=len(centres)), 1)
        # A mean over n rows is known to within 1 / sqrt(n): so weighted, chance has the same size in all of them.
        return leading_directions(means / np.sqrt(sizes)[:, None], self.components)
