"""SPA, the semantic perturbation attack (arXiv 2411.09359, EMNLP Findings 2025), with both tails.

Append texts that change the meaning, and see how far the served vector moves. A mark that hangs on a trigger word
stays, so a triggered text moves less than others; a mark that hangs on a region goes when the text leaves the region,
so a marked text may move more. The published attack drops those that move less; here either tail may be dropped.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import numpy as np

from regionmarker.benchmark.attacks.base import WholeDataAttack, ask_again, check_rows_of
from regionmarker.benchmark.protocols import StolenData
from regionmarker.corpus import read_texts
from regionmarker.errors import InputError
from regionmarker.specs import rest
from regionmarker.vectors import AnyArray, Doubles, Floats, Integers, normalised

TAILS = ("low", "high", "both")
_BLOCK = 128  # texts at a time, each with its candidates
_GRID = 512  # points at which the density is looked at


@dataclass(frozen=True)
class Perturb(WholeDataAttack):
    """Drop the texts whose vectors move less (or more) than others' when a suffix is appended.

    Attributes
    ----------
    candidates
        Texts of the pool least like the query under a public encoder.
    suffixes
        How many of the candidates are appended and asked: those that change the public vector most.
    tail
        Which texts to drop: ``low`` move less (published), ``high`` move more, ``both``.
    seed
        Of the pool, where it is drawn.
    pool
        A corpus file; left empty, 1,000 of the stolen data's own texts (published: WikiText).

    Examples
    --------
    >>> from regionmarker import load_encoder
    >>> from regionmarker.sample_corpus import python_sentences
    >>> texts, public = python_sentences(60), load_encoder("wordllama")
    >>> service = lambda texts, account="": public.encode(texts)
    >>> left = Perturb(candidates=4, suffixes=2).apply(StolenData(texts, service(texts), service, public))
    >>> 30 < len(left) <= 60
    True
    """

    spec: ClassVar[str] = "perturb"

    candidates: int = 20
    suffixes: int = 10
    tail: str = "low"
    seed: int = 0
    pool: str = rest()

    def __post_init__(self) -> None:
        self._check(self.suffixes >= 1, f"suffixes must be at least 1, but is {self.suffixes}")
        self._check(
            self.candidates >= self.suffixes, f"candidates must be at least {self.suffixes}, but is {self.candidates}"
        )
        self._check(self.tail in TAILS, f"tail must be {', '.join(TAILS)}, but is {self.tail!r}")
        self._check(self.seed >= 0, f"the seed must not be negative, but is {self.seed}")

    def apply(self, stolen: StolenData, /) -> StolenData:
        check_rows_of(stolen, 2, attack=self.name)
        scores = self.movements(stolen)
        kept = np.ones(len(stolen), dtype=bool)
        if self.tail in ("low", "both"):
            kept &= scores >= elbow(scores)
        if self.tail in ("high", "both"):
            kept &= -scores >= elbow(-scores)
        if not kept.any():
            raise InputError(f"{self.name} drops every text: drop one tail, or give more texts")
        return stolen.kept(kept)

    def movements(self, stolen: StolenData) -> Doubles:
        """Return the variance of each text's vectors, its own and those with suffixes, (n,): the published PCA score.

        The explained variances of all principal components sum to the variance itself, so none has to be found.
        """
        pool = self._pool_of(stolen)
        own = normalised(stolen.public_encoder().encode(pool))  # (P, F)
        scores = np.empty(len(stolen))
        for start in range(0, len(stolen), _BLOCK):
            places = np.arange(start, min(start + _BLOCK, len(stolen)))
            block = stolen.kept(places)
            asked = self._perturbed(block, pool, own)
            answers = ask_again(block, [text for texts in asked for text in texts], attack=self.name)
            scores[places] = _variances(block.vectors, answers, [len(texts) for texts in asked])
        return scores

    def _pool_of(self, stolen: StolenData) -> list[str]:
        pool = read_texts(Path(self.pool)) if self.pool else list(dict.fromkeys(stolen.texts))
        chosen = np.random.default_rng(self.seed).permutation(len(pool))[:1000]
        return [pool[place] for place in np.sort(chosen)]

    def _perturbed(self, stolen: StolenData, pool: Sequence[str], own: Floats) -> list[list[str]]:
        """Return the texts to ask for each text of the stolen data."""
        public = stolen.public_encoder()
        texts = normalised(public.encode(list(stolen.texts)))  # (b, F)
        count = min(self.candidates, len(pool))
        far: Integers = np.argsort(texts @ own.T, axis=1, kind="stable")[:, :count]  # (b, c) least alike first
        longer = [f"{text} {pool[place]}" for text, row in zip(stolen.texts, far, strict=True) for place in row]
        moved = normalised(public.encode(longer)).reshape(len(stolen), count, -1)
        cosines = np.einsum("bcf,bf->bc", moved, texts)
        best = np.argsort(cosines, axis=1, kind="stable")[:, : self.suffixes]
        return [[longer[row * count + place] for place in places] for row, places in enumerate(best)]


def _variances(vectors: Floats, answers: Floats, counts: Sequence[int]) -> Doubles:
    found, start = np.empty(len(vectors)), 0
    for row, count in enumerate(counts):
        group = np.vstack([vectors[row : row + 1], answers[start : start + count]]).astype(np.float64)
        found[row] = group.var(axis=0, ddof=1).sum()
        start += count
    return found


def elbow(scores: AnyArray) -> float:
    """Return where the lower tail of the scores ends: the largest bend of their density in the lower half.

    The density is a Gaussian kernel estimate with Scott's width; the bend is its second derivative. Scores that
    do not differ have no tail.

    Examples
    --------
    >>> scores = np.concatenate([np.full(5, 0.0), np.linspace(5, 6, 50)])
    >>> bool(0 < elbow(scores) < 5)
    True
    """
    low, high = float(scores.min()), float(scores.max())
    width = float(scores.std()) * len(scores) ** -0.2
    if not width > 1e-12:
        return low
    points = np.linspace(low, (low + high) / 2, _GRID)
    bends = np.array([_bend(point, scores, width) for point in points])
    return float(points[int(bends.argmax())])


def _bend(point: float, scores: AnyArray, width: float) -> float:
    steps = np.square((scores - point) / width)
    return float(((steps - 1) * np.exp(-steps / 2)).sum())
