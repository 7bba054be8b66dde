"""Attacks by choice of rows: drop the suspicious ones, ask about less, mix in vectors of one's own.

Detect-and-drop is the detect-sampling attack of SemMark's paper (arXiv 2512.16439), of which the abstract alone was at
hand: how suspicion is raised is our reading. The others are the ways to learn less of a mark by taking less of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from regionmarker.benchmark.attacks.base import WholeDataAttack, check_rows_of
from regionmarker.benchmark.attacks.cse import CSE, kmeans
from regionmarker.benchmark.attacks.directions import principal_axes
from regionmarker.benchmark.attacks.public_map import PublicMap
from regionmarker.benchmark.protocols import StolenData
from regionmarker.vectors import Doubles, Floats, normalised


@dataclass(frozen=True)
class Drop(WholeDataAttack):
    """Detect and drop: leave out the rows that look marked, and train on the rest.

    Attributes
    ----------
    by
        ``residuals``: how far a row lies from what a public encoder predicts of it.
        ``pairs``: rows of the suspicious pairs of CSE, most suspicious pairs first.
    tail
        ``high`` drops the rows that a public encoder predicts worst: a mark is an error, too. ``low`` drops those that
        it predicts best: a target mixed into a vector leaves less of what only the provider knows.
    share
        Of the rows, to drop.
    seed
        Of the clustering of ``pairs``.

    Examples
    --------
    >>> from regionmarker import load_encoder
    >>> texts, public = ["one text", "two texts", "three texts", "four"], load_encoder("wordllama")
    >>> len(Drop(share=0.25).apply(StolenData(texts, public.encode(texts), public=public)))
    3
    """

    spec: ClassVar[str] = "drop"

    by: str = "residuals"
    tail: str = "high"
    share: float = 0.2
    seed: int = 0

    def __post_init__(self) -> None:
        self._check(self.by in ("residuals", "pairs"), f"by must be residuals or pairs, but is {self.by!r}")
        self._check(self.tail in ("high", "low"), f"tail must be high or low, but is {self.tail!r}")
        self._check(0 < self.share < 1, f"the share must lie between 0 and 1, but is {self.share}")
        self._check(self.seed >= 0, f"the seed must not be negative, but is {self.seed}")

    def apply(self, stolen: StolenData, /) -> StolenData:
        check_rows_of(stolen, 2, attack=self.name)
        count = min(round(self.share * len(stolen)), len(stolen) - 1)
        order = np.argsort(-self.suspicion(stolen), kind="stable")
        return stolen.kept(np.sort(order[count:]))

    def suspicion(self, stolen: StolenData) -> Doubles:
        """Return how suspicious each row is, (n,), larger for more."""
        if self.by == "residuals":
            lengths = np.linalg.norm(PublicMap.of(stolen).residuals, axis=1)
            return np.asarray(lengths if self.tail == "high" else -lengths)
        found = CSE(pairs=1.0, seed=self.seed).suspects(stolen)
        scores = np.full(len(stolen), -np.inf)
        np.maximum.at(scores, found.first, found.differences)
        np.maximum.at(scores, found.second, found.differences)
        return scores


@dataclass(frozen=True)
class Avoid(WholeDataAttack):
    """Ask around the regions: guess how space is divided, and leave out every text of some cells.

    The guess is what an outsider can make: random orthogonal planes through the middle of the leading principal
    components of the served vectors. Detection against coverage is the curve over ``cells``.

    Attributes
    ----------
    planes
        2^planes cells.
    cells
        How many of them to leave out.
    seed
        Of the planes and of the choice.

    Examples
    --------
    >>> rows = np.random.default_rng(0).standard_normal((400, 8)).astype(np.float32)
    >>> 150 < len(Avoid(cells=8).apply(StolenData(("a text",) * 400, rows))) < 250
    True
    """

    spec: ClassVar[str] = "avoid"

    planes: int = 4
    cells: int = 3
    seed: int = 0

    def __post_init__(self) -> None:
        self._check(1 <= self.planes <= 16, f"planes must be 1 to 16, but is {self.planes}")
        most = 2**self.planes - 1
        self._check(1 <= self.cells <= most, f"cells must be 1 to {most} of {most + 1}, but is {self.cells}")
        self._check(self.seed >= 0, f"the seed must not be negative, but is {self.seed}")

    def apply(self, stolen: StolenData, /) -> StolenData:
        """Leave out the cells; cells that hold every text are not left out all."""
        check_rows_of(stolen, 2, attack=self.name)
        rng = np.random.default_rng(self.seed)
        centred = stolen.vectors - stolen.vectors.mean(axis=0, dtype=np.float64)
        planes = min(self.planes, stolen.vectors.shape[1])
        axes, _ = principal_axes(centred, planes)
        turn, _ = np.linalg.qr(rng.standard_normal((planes, planes)))
        numbers = (centred @ axes.T @ turn > 0) @ (1 << np.arange(planes))  # (n,)
        populated = rng.permutation(np.unique(numbers))
        left_out = populated[: min(self.cells, len(populated) - 1)]
        return stolen.kept(~np.isin(numbers, left_out))


@dataclass(frozen=True)
class Cover(WholeDataAttack):
    """Ask about some topics alone: keep whole clusters of texts until there is a share of them.

    Attributes
    ----------
    share
        Of the texts to keep, at least.
    clusters
        How many topics there are.
    seed
        Of the clustering and of the order in which topics are taken.

    Examples
    --------
    >>> rows = np.random.default_rng(0).standard_normal((400, 8)).astype(np.float32)
    >>> 200 <= len(Cover(0.5).apply(StolenData(("a text",) * 400, rows))) < 300
    True
    """

    spec: ClassVar[str] = "cover"

    share: float = 0.5
    clusters: int = 20
    seed: int = 0

    def __post_init__(self) -> None:
        self._check(0 < self.share < 1, f"the share must lie between 0 and 1, but is {self.share}")
        self._check(self.clusters >= 1, f"clusters must be at least 1, but is {self.clusters}")
        self._check(self.seed >= 0, f"the seed must not be negative, but is {self.seed}")

    def apply(self, stolen: StolenData, /) -> StolenData:
        check_rows_of(stolen, 1, attack=self.name)
        numbers, centres = kmeans(normalised(stolen.vectors), min(self.clusters, len(stolen)), self.seed)
        order = np.random.default_rng(self.seed).permutation(len(centres))
        reached = np.cumsum(np.bincount(numbers, minlength=len(centres))[order])
        needed = int(np.searchsorted(reached, self.share * len(stolen))) + 1
        return stolen.kept(np.isin(numbers, order[:needed]))


@dataclass(frozen=True)
class Mix(WholeDataAttack):
    """Honest data mixed in: for a share of the texts, train on what a public encoder says instead.

    The thief's own vectors must lie in the served space, so they are the public encoder's, mapped by ridge. The map
    was fitted on served vectors, and so has learnt the mark's mean, but not where it changes.

    Attributes
    ----------
    share
        Of the rows, to replace.
    seed
        Which rows.

    Examples
    --------
    >>> from regionmarker import load_encoder
    >>> texts, public = ["one text", "two texts", "three texts", "four"], load_encoder("wordllama")
    >>> rows = public.encode(texts)
    >>> mixed = Mix(0.5).apply(StolenData(texts, rows, public=public)).vectors
    >>> int((mixed == rows).all(axis=1).sum())
    2
    """

    spec: ClassVar[str] = "mix"

    share: float = 0.5
    seed: int = 0

    def __post_init__(self) -> None:
        self._check(0 < self.share <= 1, f"the share must be above 0 and at most 1, but is {self.share}")
        self._check(self.seed >= 0, f"the seed must not be negative, but is {self.seed}")

    def apply(self, stolen: StolenData, /) -> StolenData:
        check_rows_of(stolen, 2, attack=self.name)
        rows = np.random.default_rng(self.seed).permutation(len(stolen))[: max(1, round(self.share * len(stolen)))]
        honest: Floats = PublicMap.of(stolen).fitted[rows].astype(np.float32)
        mixed = stolen.vectors.copy()
        mixed[rows] = normalised(honest)
        return stolen.with_vectors(mixed)
