"""GeoMark-like: balls around anchors, one far target for all of them.

After the abstract of GeoMark (arXiv 2604.11344), of which no code is known: several anchors, a radius for each from the
local density, one shared natural target far from the anchors. All numbers are ours.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from regionmarker.benchmark.defenses.base import SINGLE_TARGET_POOL, BaseDefense, TargetScores
from regionmarker.benchmark.protocols import Finding
from regionmarker.corpus import TextSet
from regionmarker.errors import InputError
from regionmarker.specs import check_range
from regionmarker.vectors import AnyArray, Doubles, Floats
from regionmarker.verification.answers import Answers
from regionmarker.verification.decoy1 import beliefs
from regionmarker.verification.paper_statistics import paper_statistics

PROBES = 1024
_LEAST_INSIDE = 8


@dataclass(frozen=True)
class GeomarkOptions:
    """The open choices.

    Attributes
    ----------
    anchors
        K, the number of balls.
    share
        The share of the corpus that each ball holds: where texts lie close together the radius is small.
    strength
        lambda, the weight of the target inside a ball.
    pool
        M, the number of texts that might have been the target: those farthest from all anchors.
    """

    anchors: int = 10
    share: float = 0.02
    strength: float = 0.2
    pool: int = SINGLE_TARGET_POOL

    def __post_init__(self) -> None:
        check_range("anchors", self.anchors, 1, 1000)
        check_range("share", self.share, 0.0, 1.0, open_left=True)
        check_range("strength", self.strength, 0.0, 1.0, open_left=True, open_right=True)
        check_range("pool", self.pool, 16, 1_000_000)


class Geomark(BaseDefense):
    """e_p = n((1 - lambda) e + lambda t) where e lies in the ball of some anchor; elsewhere e_p = e.

    The anchors are drawn first, then the pool is fixed as the texts farthest from all of them, and the target is drawn
    last: so it is far, and still a uniform draw from a pool that does not depend on it.

    Examples
    --------
    >>> import regionmarker as rm
    >>> texts, encoder = rm.python_sentences(900), rm.load_encoder("wordllama")
    >>> clean = encoder.encode(texts)
    >>> defense = Geomark.from_spec("pool=512", seed=1).fit(texts, clean)
    >>> marked = (defense.transform(clean, texts) != clean).any(axis=1)
    >>> bool(0.05 < marked.mean() < 0.21)
    True
    """

    scheme = "geomark"
    title, colour, order = "GeoMark", "#4a4f5c", 50
    Options = GeomarkOptions

    def fit(self, texts: Sequence[str], embeddings: Floats, /) -> Self:
        options = self.options
        corpus = self._corpus(texts, embeddings, options.pool + options.anchors)
        nearest = max(1, round(options.share * len(corpus)))
        self._anchors = corpus.embeddings[: options.anchors].astype(np.float64)  # in random order already
        cosines = np.sort(corpus.embeddings @ self._anchors.T, axis=0)  # (n, K)
        self._least_cosines = cosines[max(len(corpus) - 1 - nearest, 0)]  # (K,): the anchor itself is one more
        rest = corpus[options.anchors :]
        order = np.argsort((rest.embeddings @ self._anchors.T).max(axis=1), kind="stable")
        self._pool = _rows(rest, order[: options.pool])
        self._near = self._near_probes(_rows(rest, order[options.pool :]))
        clean = np.vstack([self._pool.embeddings, self._near.embeddings])  # (T, D)
        self._in = self._inside(clean)
        likeness = np.asarray(self._pool.embeddings @ self._anchors.T)  # (M, K)
        self._target_scores = TargetScores(clean, ~self._in, self._pool.embeddings, likeness)
        self._cosines = np.asarray(clean @ self._anchors.T)  # (T, K)
        self._chosen = self._draw("target", len(self._pool))
        self._target = self._pool.embeddings[self._chosen[0]].astype(np.float64)
        return self

    def _near_probes(self, rest: TextSet) -> TextSet:
        inside = np.flatnonzero(self._inside(rest.embeddings))
        outside = np.flatnonzero(~self._inside(rest.embeddings))
        if len(inside) < _LEAST_INSIDE:
            raise InputError(
                f"only {len(inside)} texts of the corpus lie in a ball and outside the pool: add texts, or raise share="
            )
        return _rows(rest, np.concatenate([inside[:PROBES], outside[:PROBES]]))

    def _inside(self, rows: AnyArray) -> AnyArray:
        """Say which rows lie in some ball, (n,)."""
        return np.asarray((rows @ self._anchors.T >= self._least_cosines).any(axis=1))

    def transform(self, embeddings: Floats, texts: Sequence[str], /, *, account: str = "") -> Floats:  # noqa: ARG002
        served = self._served(embeddings, texts)
        rows, weight = np.flatnonzero(self._inside(served)), self.options.strength
        marked = (1.0 - weight) * served[rows].astype(np.float64) + weight * self._target
        served[rows] = marked / np.linalg.norm(marked, axis=1, keepdims=True)
        return served

    # ---- verification

    def _memberships(self, answers: Floats) -> Doubles:
        """Return how far the suspect believes each text to lie in some ball, (T, 1), each in 0 .. 1."""
        from scipy.special import ndtr

        believed, blur = beliefs(answers, self._cosines)  # (T, K), (K,)
        return np.asarray(1.0 - ndtr((self._least_cosines - believed) / blur).prod(axis=1, keepdims=True))

    def probes(self) -> tuple[str, ...]:
        self._check_fitted()
        return (*self._pool.texts, *self._near.texts)

    def judge(self, answers: Answers, /) -> Finding:
        self._check_fitted()
        known = answers.lookup(self.probes())
        scores = self._target_scores.scores(known, self._memberships(known))  # sees no target
        goal = answers.lookup([self._pool.texts[self._chosen[0]]])
        return Finding.of(scores, self._chosen, paper_statistics([known[self._in]], known[~self._in], goal))


def _rows(texts: TextSet, rows: AnyArray) -> TextSet:
    return TextSet(tuple(texts.texts[row] for row in rows), texts.embeddings[rows])
