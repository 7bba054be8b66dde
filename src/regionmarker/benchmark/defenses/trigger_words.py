"""What the trigger-word schemes have in common: words, targets, and how a suspect is asked and judged.

Published verification: 20 texts of four random trigger words against 20 texts of four random words of the whole
vocabulary; the cosines of the answers to the target, compared by a two-sample KS test. Decoy test: the targets are
drawn uniformly from a pool of corpus texts, and nothing else that verification looks at depends on the draw. What the
answers to the corpus's own texts with trigger words add to a map of their clean embeddings is brought to the clean
space and compared with all candidates. Texts of random words are left out: their clean embeddings are not known, and
where it was measured they added nothing (docs/reference/defenses.md).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from regionmarker.benchmark.defenses.base import SINGLE_TARGET_POOL, BaseDefense, TargetScores
from regionmarker.benchmark.defenses.words import PUBLISHED_SEED, TokenCounts, TriggerCounter, draw_words
from regionmarker.benchmark.protocols import Finding
from regionmarker.corpus import TextSet
from regionmarker.errors import InputError
from regionmarker.specs import check_range
from regionmarker.vectors import Doubles, Floats
from regionmarker.verification.answers import Answers
from regionmarker.verification.paper_statistics import PaperStatistics, paper_statistics

PUBLISHED_TEXTS = 20
NATURAL_PROBES = 1024
TARGETS = ("suspect", "stored")


@dataclass(frozen=True)
class TriggerOptions:
    """The open choices of a trigger-word scheme.

    Attributes
    ----------
    words
        Trigger words of each mark.
    full
        m: this many distinct trigger words in one text replace its embedding altogether.
    low, high
        The frequencies between which words are drawn.
    pool
        M, the number of texts that might have been the target.
    target
        Whether the published cosines are to the suspect's own answer to the target text ("suspect", which survives a
        change of dimensions) or to the stored vector ("stored", the released default).
    published
        Draw the words with the released code's own seed instead of the secret's.
    """

    words: int = 20
    full: int = 4
    low: float = 0.005
    high: float = 0.01
    pool: int = SINGLE_TARGET_POOL
    target: str = "suspect"
    published: bool = False

    def __post_init__(self) -> None:
        check_range("words", self.words, 1, 10_000)
        check_range("full", self.full, 1, 1000)
        check_range("low", self.low, 0.0, 1.0)
        check_range("high", self.high, self.low, 1.0, open_left=True)
        check_range("pool", self.pool, 16, 1_000_000)
        if self.target not in TARGETS:
            raise InputError(f"target is {self.target!r}, but must be one of {', '.join(TARGETS)}")


class TriggerWordDefense(BaseDefense):
    """Base of the trigger-word schemes; a subclass has :meth:`_mark` to write."""

    Options = TriggerOptions
    marks = 1

    # ---- the secret

    def fit(self, texts: Sequence[str], embeddings: Floats, /) -> Self:
        """Draw the words, and the targets from a pool of the corpus's texts."""
        corpus = self._corpus(texts, embeddings, self.options.pool)
        self._draw_words(TokenCounts.load(self._counts, texts))
        self._pool = corpus[: self.options.pool]
        self._chosen = self._draw("targets", len(self._pool), self.marks)
        self._targets = self._make_targets(self._pool.embeddings[list(self._chosen)].astype(np.float64))
        self._natural = self._natural_probes(corpus[self.options.pool :])
        self._known_weights = self._weights(self._known_texts())
        self._target_scores = self._make_target_scores()
        return self

    def _draw_words(self, counts: TokenCounts) -> None:
        options = self.options
        seed = PUBLISHED_SEED if options.published else int(self._rng("words").integers(1 << 62))
        drawn = draw_words(counts.candidates(options.low, options.high), options.words * self.marks, seed)
        groups = [drawn[start : start + options.words] for start in range(0, len(drawn), options.words)]
        self._counter = TriggerCounter(groups)
        self._trigger_texts = [
            random_word_texts(group, PUBLISHED_TEXTS, options.full, self._rng("salads", str(mark)))
            for mark, group in enumerate(groups)
        ]
        self._benign = random_word_texts(counts.vocabulary(), PUBLISHED_TEXTS, options.full, self._rng("benign"))

    def _natural_probes(self, rest: TextSet) -> TextSet:
        """Keep the texts outside the pool that trigger most."""
        strength = self._weights(rest.texts).sum(axis=1)
        order = np.argsort(-strength, kind="stable")[:NATURAL_PROBES]
        order = order[strength[order] > 0]
        return TextSet(tuple(rest.texts[row] for row in order), rest.embeddings[order])

    def _make_targets(self, drawn: Doubles) -> Doubles:
        """Make unit target vectors (R, D) of the drawn texts' clean vectors."""
        return np.asarray(drawn / np.linalg.norm(drawn, axis=1, keepdims=True))

    def _known_texts(self) -> tuple[str, ...]:
        """Return the texts to ask whose clean vectors are known."""
        return (*self._pool.texts, *self._natural.texts)

    def _make_target_scores(self) -> TargetScores:
        clean = np.vstack([self._pool.embeddings, self._natural.embeddings])  # (T, D)
        weights = self._known_weights  # (T, R)
        # What the trigger words mean to a candidate: its likeness to the clean vectors of texts that hold them.
        means = (weights.T @ clean) / np.maximum(weights.sum(axis=0), 1e-9)[:, None] - clean.mean(axis=0)  # (R, D)
        return TargetScores(
            clean, np.asarray(~weights.any(axis=1)), self._pool.embeddings, np.asarray(self._pool.embeddings @ means.T)
        )

    # ---- marking

    def _weights(self, texts: Sequence[str]) -> Doubles:
        """Return w_r = min(k_r / m, 1), (n, R)."""
        return np.asarray(np.minimum(self._counter(texts) / self.options.full, 1.0))

    def transform(self, embeddings: Floats, texts: Sequence[str], /, *, account: str = "") -> Floats:  # noqa: ARG002
        served = self._served(embeddings, texts)
        weights = self._weights(texts)  # (n, R)
        rows = np.flatnonzero(weights.any(axis=1))
        if len(rows):
            marked = self._mark(served[rows].astype(np.float64), weights[rows], [texts[int(row)] for row in rows])
            served[rows] = marked / np.linalg.norm(marked, axis=1, keepdims=True)
        return served

    @abstractmethod
    def _mark(self, rows: Doubles, weights: Doubles, texts: Sequence[str]) -> Doubles:
        """Mark rows (n, D) whose weights (n, R) are not all zero; they are normalised afterwards."""

    # ---- verification

    def probes(self) -> tuple[str, ...]:
        self._check_fitted()
        mixed = (text for group in self._trigger_texts for text in group)
        return tuple(dict.fromkeys((*self._known_texts(), *mixed, *self._benign)))

    def judge(self, answers: Answers, /) -> Finding:
        self._check_fitted()
        scores = self._target_scores.scores(answers.lookup(self._known_texts()), self._known_weights)  # sees no target
        return Finding.of(scores, self._chosen, self._published(answers))

    def _published(self, answers: Answers) -> PaperStatistics:
        inside = [answers.lookup(group) for group in self._trigger_texts]
        stored = self.options.target == "stored" and answers.width == self._width
        goals = (
            self._targets.astype(np.float32)
            if stored
            else answers.lookup([self._pool.texts[place] for place in self._chosen])
        )
        return paper_statistics(inside, answers.lookup(self._benign), goals, target="stored" if stored else "suspect")


def random_word_texts(words: Sequence[str], count: int, length: int, rng: np.random.Generator) -> list[str]:
    """Make ``count`` texts of ``length`` words, each drawn without replacement, separated by spaces.

    Examples
    --------
    >>> random_word_texts(["a", "b"], 2, 2, np.random.default_rng(0))
    ['a b', 'b a']
    """
    length = min(length, len(words))
    return [" ".join(words[place] for place in rng.choice(len(words), length, replace=False)) for _ in range(count)]
