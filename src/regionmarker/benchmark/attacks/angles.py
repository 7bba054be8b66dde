"""Angle search: find the regions from outside, and drop the rows that look marked (our own attack on ourselves).

The reducer is hardly a secret, for anyone can fit principal components on served vectors; the secret is how the normals
lie in their span. This attack searches that, and is why keys draw their normals in a wide span (docs/subspace.md).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from regionmarker.benchmark.attacks.cells import View, ascend, cell_scores, climb, hessian_frame, random_frame
from regionmarker.benchmark.attacks.publicly import public_features
from regionmarker.benchmark.attacks.whole import LootAttack, check_rows_of
from regionmarker.benchmark.loot import Loot
from regionmarker.protocols import Doubles, Floats


@dataclass(frozen=True)
class Angles(LootAttack):
    """Search for the key's hyperplanes, and drop a share of the rows: those that look most marked.

    Attributes
    ----------
    planes
        Of the key, as far as the thief knows.
    span
        How many leading principal components the search is over; 4 fits the paper's keys, 32 our default.
    share
        Of the rows, to drop.
    starts, steps
        The search is begun so often, and climbs so many steps.
    seed
        Of the starts.

    Examples
    --------
    >>> from regionmarker import load_encoder
    >>> from regionmarker.standard_library import python_sentences
    >>> texts, public = python_sentences(100), load_encoder("wordllama")
    >>> len(Angles(span=4, starts=1, steps=5, share=0.25).apply(Loot(texts, public.encode(texts), public=public)))
    75
    """

    spec: ClassVar[str] = "angles"

    planes: int = 4
    span: int = 32
    share: float = 0.2
    starts: int = 3
    steps: int = 100
    seed: int = 0

    def __post_init__(self) -> None:
        self._check(1 <= self.planes <= 8, f"planes must be 1 to 8, but is {self.planes}")
        self._check(self.span >= self.planes, f"the span must hold the {self.planes} planes, but is {self.span}")
        self._check(0 < self.share < 1, f"the share must lie between 0 and 1, but is {self.share}")
        self._check(self.starts >= 1 and self.steps >= 1, "starts and steps must be at least 1")
        self._check(self.seed >= 0, f"the seed must not be negative, but is {self.seed}")

    def apply(self, loot: Loot, /) -> Loot:
        """Drop the rows found."""
        check_rows_of(loot, 3, attack=self.name)
        count = min(round(self.share * len(loot)), len(loot) - 1)
        order = np.argsort(-self.suspicion(loot), kind="stable")
        return loot.kept(np.sort(order[count:]))

    def suspicion(self, loot: Loot) -> Doubles:
        """Return how much each row looks marked, (n,)."""
        span = min(self.span, loot.vectors.shape[1], len(loot) - 1)
        view = View.of(loot.vectors, public_features(loot), span)
        frame = self.search(view)
        return cell_scores(view.cells(frame), view.residuals, 2 ** frame.shape[1])["row"]

    def search(self, view: View) -> Floats:
        """Return the frame (k, d) with the most evidence."""
        rng = np.random.default_rng(self.seed)
        span = view.coordinates.shape[1]
        planes = min(self.planes, span)
        first = hessian_frame(view, planes)
        starts = [first, *(random_frame(span, planes, rng) for _ in range(self.starts - 1))]
        best = max((ascend(view, start, self.steps) for start in starts), key=view.evidence)
        return climb(view, best, rng)[0]
