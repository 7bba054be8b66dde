"""RegionMarker as a defense among others: the graded mark, 0.1.0's default, the paper's own setting and ablations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Self

import numpy as np

from regionmarker.benchmark.defenses.base import SINGLE_TARGET_POOL, BaseDefense
from regionmarker.benchmark.protocols import Finding
from regionmarker.keys.key import Key
from regionmarker.marking.marker import RegionMarker
from regionmarker.marks.graded_settings import LEAST_PROBES
from regionmarker.specs import check_range
from regionmarker.vectors import Doubles, Floats
from regionmarker.verification.answers import Answers
from regionmarker.verification.decoy1 import standardised
from regionmarker.verification.examination import examine, laid_out
from regionmarker.verification.judging import judge
from regionmarker.verification.list_test import ListTest
from regionmarker.verification.paper_statistics import paper_statistics
from regionmarker.verification.questions import DEFAULT_BUDGET, plan_all, plan_questions

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
    title, colour, order = "RegionMarker 0.1", "#b86f7a", 61
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
        examination = examine(key, answers)
        scores = _shared_scores(examination.scores())  # sees no target
        target = key.provider_targets()[0]
        inside = np.vstack([examination.inside(place) for place in range(len(key.regions))])
        published = paper_statistics([inside], examination.outside(), examination.goals((target,))[0])
        return Finding.of(scores, (target,), published)


@dataclass(frozen=True)
class GradedOptions:
    """The open choices.

    Attributes
    ----------
    kept
        The share of the ten nearest neighbours that marking leaves.
    tenants
        Give every account a mark of its own beside the provider's; without, all accounts are served alike.
    """

    kept: float = 0.93
    tenants: bool = False


class GradedDefense(BaseDefense):
    """The graded mark and its verdict, behind the protocol of all defenses."""

    scheme = "graded"
    title, colour, order = "RegionMarker", "#d1495b", 60
    Options = GradedOptions

    def fit(self, texts: Sequence[str], embeddings: Floats, /) -> Self:
        corpus = self._corpus(texts, embeddings, LEAST_PROBES)
        marker = RegionMarker(kept=self.options.kept, tenants=self.options.tenants, seed=self._seed)
        self._marker = marker.fit(corpus.texts, embeddings=corpus.embeddings)
        return self

    def transform(self, embeddings: Floats, texts: Sequence[str], /, *, account: str = "") -> Floats:
        rows = self._served(embeddings, texts)
        return self._marker.transform(rows, tenant=account if self.options.tenants else "", out=rows)

    def probes(self) -> tuple[str, ...]:
        """Return the most that is asked: what the rule of asking leaves out is left out when judging."""
        self._check_fitted()
        return plan_all(self._marker.key_, seed=0).texts

    def judge(self, answers: Answers, /) -> Finding:
        """Judge by the answers that would have been asked for."""
        self._check_fitted()
        key = self._marker.key_
        first = plan_questions(key, DEFAULT_BUDGET, seed=0)
        asked = first if laid_out(key, first, answers.lookup).axes == "matched" else plan_all(key, seed=0)
        used = Answers(answers.suspect, asked.texts, answers.lookup(asked.texts))
        verdict = judge(key, used, power=False)
        columns = tuple(place % verdict.scores.shape[1] for place in key.provider_targets())
        test = None if verdict.basis is None else verdict.basis.test
        weights = test.weights if isinstance(test, ListTest) else None
        return Finding(verdict.p_value, verdict.paper, verdict.scores, columns, weights)


@dataclass(frozen=True)
class PublishedOptions(RegionOptions):
    """The paper's own setting: hyperplanes in the top four components."""

    subspace: int = 4


class PublishedDefense(RegionDefense):
    """The mark with the paper's own setting, under a name of its own, so that tables show it beside the others."""

    scheme = "published"
    title, colour, order = "RegionMarker (published)", "#e8a0aa", 62
    Options = PublishedOptions


class SharedKey(Key):
    """A key that marks all its trigger regions with one target, uniformly drawn."""

    @classmethod
    def of(cls, key: Key) -> Self:
        return cls(**{field.name: getattr(key, field.name) for field in fields(Key)})

    def provider_targets(self) -> tuple[int, ...]:
        """Return the first draw, for every region."""
        return super().provider_targets()[:1] * len(self.regions)


def _shared_scores(z: Doubles) -> Doubles:
    """Add the scores of all regions (R, M), for they share their target: (1, M)."""
    total = z.sum(axis=0, keepdims=True)
    return standardised(total, np.empty((z.shape[1], 0)), np.isfinite(total[0]))
