"""RegionMarker as a defense among others, with the paper's ablations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Self

import numpy as np

from regionmarker.benchmark.defenses.base import SINGLE_TARGET_POOL, BaseDefense
from regionmarker.benchmark.protocols import Finding
from regionmarker.keys.key import Key
from regionmarker.marking.marker import RegionMarker
from regionmarker.specs import check_range
from regionmarker.vectors import Doubles, Floats
from regionmarker.verification.answers import Answers
from regionmarker.verification.decoy1 import standardised
from regionmarker.verification.examination import Examination
from regionmarker.verification.judging import judge
from regionmarker.verification.paper_statistics import paper_statistics
from regionmarker.verification.questions import DEFAULT_BUDGET, plan_questions

POOL = 1024
RESERVOIR = 4096


@dataclass(frozen=True)
class RegionOptions:
    """The open choices.

    Attributes
    ----------
    dimension, ratio, strength, reducer
        As :class:`regionmarker.RegionMarker` has them; ``reducer=none`` is the paper's ablation without reduction.
    subspace
        How many components the hyperplanes are drawn in; 0 for the default, ``subspace=4`` (the dimension) for the
        paper's.
    tenants
        The share of regions that carry a mark of the account's own, for which the product's default is 0.2; with 0, the
        paper, all accounts are served alike.
    pool
        M; 0 for the default, 1024, or 4096 where one watermark is shared.
    shared
        The paper's ablation: one watermark for all trigger regions.
    """

    dimension: int = 4
    ratio: float = 0.2
    strength: float = 0.2
    reducer: str = "pca"
    subspace: int = 0
    tenants: float = 0.0
    pool: int = 0
    shared: bool = False

    def __post_init__(self) -> None:
        check_range("subspace", self.subspace, 0, 1_000_000)
        check_range("pool", self.pool, 0, 1_000_000)


class RegionDefense(BaseDefense):
    """:class:`regionmarker.RegionMarker` and its verdict, behind the protocol of all defenses.

    Examples
    --------
    >>> import regionmarker as rm
    >>> texts, encoder = rm.python_sentences(900), rm.load_encoder("wordllama")
    >>> clean = encoder.encode(texts)
    >>> defense = RegionDefense.from_spec("pool=128,strength=0.3", seed=1).fit(texts, clean)
    >>> defense.transform(clean, texts).shape, defense.verify(encoder).scores.shape
    ((900, 256), (3, 128))
    """

    scheme = "regionmarker"
    title, colour, order = "RegionMarker", "#d1495b", 60
    Options = RegionOptions

    def fit(self, texts: Sequence[str], embeddings: Floats, /) -> Self:
        """Make a key; the reservoir takes what the pool leaves of a small corpus."""
        options = self.options
        pool = options.pool or (SINGLE_TARGET_POOL if options.shared else POOL)
        corpus = self._corpus(texts, embeddings, pool + 64)
        marker = RegionMarker(
            dimension=options.dimension,
            ratio=options.ratio,
            strength=options.strength,
            reducer=options.reducer,
            subspace=options.subspace or None,
            seed=self._seed,
            tenant_ratio=options.tenants,
            pool=pool,
            reservoir=min(RESERVOIR, len(corpus) - pool),
        ).fit(corpus.texts, embeddings=corpus.embeddings)
        self._marker = RegionMarker.from_key(SharedKey.of(marker.key_)) if options.shared else marker
        self._questions = plan_questions(marker.key_, pool + DEFAULT_BUDGET - POOL, seed=0)
        return self

    def transform(self, embeddings: Floats, texts: Sequence[str], /, *, account: str = "") -> Floats:
        rows = self._served(embeddings, texts)
        return self._marker.transform(rows, tenant=account if self.options.tenants else "", out=rows)

    def probes(self) -> tuple[str, ...]:
        self._check_fitted()
        return self._questions.texts

    def judge(self, answers: Answers, /) -> Finding:
        self._check_fitted()
        key = self._marker.key_
        if not self.options.shared:
            verdict = judge(key, answers, power=False)
            return Finding(verdict.p_value, verdict.paper, verdict.scores, key.provider_targets())
        examination = Examination.of(key, answers)
        scores = _shared_scores(examination.scores())  # sees no target
        target = key.provider_targets()[0]
        inside = np.vstack([examination.inside(region) for region in key.mark.regions])
        published = paper_statistics([inside], examination.outside(), examination.pool_answers[[target]])
        return Finding.of(scores, (target,), published)


class SharedKey(Key):
    """A key that marks all its trigger regions with one target, uniformly drawn."""

    @classmethod
    def of(cls, key: Key) -> Self:
        return cls(**{field.name: getattr(key, field.name) for field in fields(Key)})

    def provider_targets(self) -> tuple[int, ...]:
        """Return the first draw, for every region."""
        return super().provider_targets()[:1] * len(self.mark.regions)


def _shared_scores(z: Doubles) -> Doubles:
    """Add the scores of all regions (R, M), for they share their target: (1, M)."""
    total = z.sum(axis=0, keepdims=True)
    return standardised(total, np.empty((z.shape[1], 0)), np.isfinite(total[0]))
