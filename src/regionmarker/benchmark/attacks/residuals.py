"""Residual regression: aimed at marks that add one constant vector to a whole region (our own attack on ourselves).

Predict the served vectors from a public encoder's by ridge, cluster what is left, and take out the directions in which
the clusters' residuals lie off zero on average: a region's mark is the same in all its rows, and meaning that the
public encoder misses mostly is not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from regionmarker.benchmark.attacks.clusters import kmeans
from regionmarker.benchmark.attacks.cse import leading_directions, without
from regionmarker.benchmark.attacks.publicly import PublicMap
from regionmarker.benchmark.attacks.whole import LootAttack, check_rows_of, with_directions
from regionmarker.benchmark.loot import Loot
from regionmarker.errors import InputError
from regionmarker.protocols import Doubles


@dataclass(frozen=True)
class Residuals(LootAttack):
    """Remove the leading mean residuals of clusters from every vector.

    Attributes
    ----------
    clusters
        Of residuals, by k-means.
    components
        How many directions are removed.
    seed
        Of the clustering.

    Examples
    --------
    >>> from regionmarker import load_encoder
    >>> from regionmarker.standard_library import python_sentences
    >>> texts, public = python_sentences(200), load_encoder("wordllama")
    >>> attacked = Residuals(components=4).apply(Loot(texts, public.encode(texts), public=public))
    >>> attacked.vectors.shape
    (200, 256)
    """

    spec: ClassVar[str] = "residuals"

    clusters: int = 16
    components: int = 16
    seed: int = 0

    def __post_init__(self) -> None:
        self._check(self.clusters >= 1, f"clusters must be at least 1, but is {self.clusters}")
        self._check(self.components >= 1, f"components must be at least 1, but is {self.components}")
        self._check(self.seed >= 0, f"the seed must not be negative, but is {self.seed}")

    def apply(self, loot: Loot, /) -> Loot:
        """Find the directions in the loot and remove them from all of it."""
        check_rows_of(loot, 3, attack=self.name)
        directions = self.directions(loot)
        if len(directions) >= loot.vectors.shape[1]:
            raise InputError(f"{self.name} would remove every direction: vectors must be wider than {len(directions)}")
        return with_directions(loot, without(loot.vectors, directions), attack=self.name)

    def directions(self, loot: Loot) -> Doubles:
        """Return the orthonormal directions to remove, (k, D)."""
        residuals = PublicMap.of(loot).residuals  # (n, D)
        numbers, centres = kmeans(residuals.astype(np.float32), min(self.clusters, len(loot)), self.seed)
        means = np.stack([residuals[numbers == number].sum(axis=0) for number in range(len(centres))])  # (k, D)
        sizes = np.maximum(np.bincount(numbers, minlength=len(centres)), 1)
        # A mean over n rows is known to within 1 / sqrt(n): so weighted, chance has the same size in all of them.
        return leading_directions(means / np.sqrt(sizes)[:, None], self.components)
