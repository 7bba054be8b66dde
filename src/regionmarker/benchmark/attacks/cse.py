"""CSE (Clustering, Selection, Elimination): the attack of WARDEN's paper (ACL 2024) on marks with few targets.

Cluster the served vectors; inside clusters, find pairs that the provider calls more alike than a public encoder does,
for a shared mark makes them so; take the leading directions of the texts in such pairs; remove these directions
from every vector.

The published code subtracts one direction after the other and normalises in between. The directions are orthonormal,
so this is one projection, E - (E V') V, and one normalisation.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from regionmarker.benchmark.attacks.clusters import METHODS, cluster
from regionmarker.benchmark.attacks.pairs import Suspicion, suspicious_pairs
from regionmarker.benchmark.attacks.whole import LootAttack, check_rows_of, with_directions
from regionmarker.benchmark.loot import Loot
from regionmarker.embeddings import normalised
from regionmarker.errors import InputError
from regionmarker.protocols import AnyArray, Doubles, Floats

_RANK = 1e-5  # singular values below this share of the largest are rounding, as are those below _NOTHING
_NOTHING = 1e-6


@dataclass(frozen=True)
class CSE(LootAttack):
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

    Examples
    --------
    >>> from regionmarker import load_encoder
    >>> from regionmarker.standard_library import python_sentences
    >>> texts, public = python_sentences(200), load_encoder("wordllama")
    >>> rows = public.encode(texts)
    >>> served = rows + rows[0]  # a constant target in every vector
    >>> attacked = CSE(components=2).apply(Loot(texts, served, public=public)).vectors
    >>> bool((attacked @ rows[0]).mean() < 0.1)
    True
    """

    spec: ClassVar[str] = "cse"

    clusters: int = 20
    components: int = 50
    pairs: float = 0.025
    method: str = "kmeans"
    seed: int = 0

    def __post_init__(self) -> None:
        self._check(self.clusters >= 1, f"clusters must be at least 1, but is {self.clusters}")
        self._check(self.components >= 1, f"components must be at least 1, but is {self.components}")
        self._check(0 < self.pairs <= 1, f"pairs must be a share above 0 and at most 1, but is {self.pairs}")
        self._check(self.method in METHODS, f"method must be {' or '.join(METHODS)}, but is {self.method!r}")
        self._check(self.seed >= 0, f"the seed must not be negative, but is {self.seed}")

    def apply(self, loot: Loot, /) -> Loot:
        """Find the directions in the loot and remove them from all of it."""
        check_rows_of(loot, 2, attack=self.name)
        width = loot.vectors.shape[1]
        if self.components >= width:
            raise InputError(
                f"{self.name} removes {self.components} directions and needs wider vectors, but their width is {width}"
            )
        return self.removed(loot, self.suspects(loot))

    def removed(self, loot: Loot, suspicion: Suspicion) -> Loot:
        """Return the loot without the leading directions of the suspicious rows."""
        directions = leading_directions(loot.vectors[suspicion.rows], self.components)
        return with_directions(loot, without(loot.vectors, directions), attack=self.name)

    def suspects(self, loot: Loot) -> Suspicion:
        """Return the suspicious pairs of the loot."""
        served, public = normalised(loot.vectors), normalised(loot.public_encoder().encode(list(loot.texts)))
        count = min(self.clusters, max(1, len(loot) // 2))  # so that there are pairs
        numbers = cluster(served, count, method=self.method, seed=self.seed)
        return suspicious_pairs(served, public, numbers, max(1, round(self.pairs * len(loot))))


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
