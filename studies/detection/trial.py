"""A trial: a corpus, a key made on one part of it, and suspects: a thief that bought the rest, and innocents."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import regionmarker as rm
from regionmarker.benchmark.attacks import load_attack
from regionmarker.benchmark.stealers import FrozenHead, HeadModel
from regionmarker.vectors import normalised
from regionmarker.verification.examination import Examination, laid_out
from regionmarker.verification.questions import Questions, plan_questions
from studies._study import encoder_spec, provider_rows

Array = NDArray[np.float32]
ATTACKS = ("none", "shift:100", "truncate:2/3", "permute", "rotate")
INNOCENTS = ("provider", "features", "wordllama", "unmarked copy")
POOL, RESERVOIR = 1024, 4096


@dataclass(frozen=True)
class Corpus:
    """Distinct texts, the provider's clean embeddings of them, and a public encoder's features."""

    texts: tuple[str, ...]
    clean: Array  # (n, D) unit rows
    features: Array  # (n, F) unit rows

    @cached_property
    def place(self) -> dict[str, int]:
        """Where each text stands."""
        return {text: row for row, text in enumerate(self.texts)}

    @cached_property
    def wordllama(self) -> Array:
        """The embedded encoder's vectors, (n, 256) unit rows."""
        return rm.load_encoder("wordllama").encode(list(self.texts))


def load_corpus(name: str, data: Path, model: str | None, cache: Path | None) -> Corpus:
    """Read `NAME.parquet` and `provider_mpnet768_NAME.npz`, and read or make the features."""
    rows, texts, clean = provider_rows(data, name)
    return Corpus(tuple(texts), clean, _features(texts, rows, model, cache))


def _features(texts: list[str], rows: NDArray[np.int32], model: str | None, cache: Path | None) -> Array:
    if cache is not None and cache.exists():
        stored = np.load(cache)
        place = {int(row): number for number, row in enumerate(stored["rows"])}
        absent = sum(int(row) not in place for row in rows)
        if absent:
            raise SystemExit(f"{cache} lacks {absent} of {len(rows)} rows: delete it and give --features")
        return normalised(stored["embeddings"][[place[int(row)] for row in rows]].astype(np.float32))
    if model is None:
        raise SystemExit("give --features, a sentence-transformers name or folder, or a --feature-cache that exists")
    made = np.asarray(rm.load_encoder(encoder_spec(model)).encode(texts), dtype=np.float32)
    if cache is not None:
        cache.parent.mkdir(parents=True, exist_ok=True)
        np.savez(cache, rows=rows, embeddings=made)
    return normalised(made)


@dataclass(frozen=True)
class Setting:
    """What one table holds fixed."""

    corpus: str
    features: str
    queries: int = 5000
    strength: float = 0.2
    subspace: int | None = None
    budget: int = 3000
    ratio: float = 0.2
    hidden: int = 2048  # units of the thief's head
    pool: int = POOL
    projection: int | None = None  # the thief's features are the provider's own clean vectors, cut to this width


def _thiefs_features(corpus: Corpus, projection: int | None) -> Array:
    """Return what the thief's head sees: a public encoder, or a part of the provider that no thief has."""
    if projection is None:
        return corpus.features
    width = corpus.clean.shape[1]
    matrix = np.random.default_rng(0).standard_normal((width, projection)).astype(np.float32)
    return normalised(corpus.clean @ matrix)


class Trial:
    """One key: the texts that it was made from, the thief's texts (no text is in both), and who is asked."""

    def __init__(self, corpus: Corpus, setting: Setting, seed: int) -> None:
        rest = len(corpus.texts) - setting.queries
        if rest < 2 * setting.pool:
            raise SystemExit(f"{len(corpus.texts)} texts leave {rest} for the key after {setting.queries} queries")
        order = np.random.default_rng([seed, 7]).permutation(len(corpus.texts))
        self.corpus, self.seed = corpus, seed
        self.features = _thiefs_features(corpus, setting.projection)
        self.hidden = setting.hidden
        self.bought, own = order[: setting.queries], np.sort(order[setting.queries :])
        self.marker = rm.RegionMarker(
            seed=seed,
            ratio=setting.ratio,
            strength=setting.strength,
            subspace=setting.subspace,
            tenant_ratio=0.0,
            pool=setting.pool,
            reservoir=min(RESERVOIR, rest - setting.pool),
        ).fit([corpus.texts[row] for row in own], embeddings=corpus.clean[own])
        self.questions: Questions = plan_questions(self.marker.key_, setting.budget, seed=seed)

    @cached_property
    def copy(self) -> HeadModel:
        """A head on the features, trained on what was served for the thief's texts."""
        return self._steal(self.marker.transform(self.corpus.clean[self.bought]))

    @cached_property
    def unmarked_copy(self) -> HeadModel:
        """The same head, trained on clean vectors."""
        return self._steal(self.corpus.clean[self.bought])

    def _steal(self, served: Array) -> HeadModel:
        return FrozenHead(hidden=self.hidden, seed=self.seed).steal_from_features(self.features[self.bought], served)

    def ask(self, suspect: str) -> tuple[Examination, float | None]:
        """Return a suspect's answers laid beside the questions, and its fidelity where it is a copy."""
        texts = list(self.questions.asked.texts)
        rows = [self.corpus.place[text] for text in texts]
        learnt: float | None = None
        if suspect == "provider":
            answers = self.corpus.clean[rows]
        elif suspect == "features":
            answers = self.corpus.features[rows]
        elif suspect == "wordllama":
            answers = self.corpus.wordllama[rows]
        else:
            model = self.unmarked_copy if suspect == "unmarked copy" else self.copy
            answers, learnt = model.apply(self.features[rows]), model.fidelity.cosine
            if suspect in ATTACKS:
                answers = load_attack(suspect)(answers, texts)
        key = self.marker.key_
        row_of = {text: row for row, text in enumerate(texts)}
        return laid_out(key, self.questions, lambda asked: answers[[row_of[text] for text in asked]]), learnt
