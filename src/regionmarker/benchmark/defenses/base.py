"""What all defenses have in common: a spec, a secret, a checked corpus, a title, and the way to a finding."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from regionmarker.benchmark.protocols import Finding
from regionmarker.corpus import TextSet
from regionmarker.crypto.derive import draw_distinct, subkey
from regionmarker.crypto.secret import Sealed
from regionmarker.errors import InputError, NotFittedError
from regionmarker.keys.key import new_master
from regionmarker.specs import parse, write
from regionmarker.vectors import AnyArray, Doubles, Encoder, Floats, as_floats, check_rows
from regionmarker.verification.answers import Answers
from regionmarker.verification.clean_space import CleanSpace, Unmarked, to_clean_space
from regionmarker.verification.decoy1 import displacements, standardised

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from regionmarker.benchmark.defenses.words import Counts

_LEAST_UNMARKED = 64

SINGLE_TARGET_POOL = 4096
"""Candidates of a scheme with one secret choice: its p-value can be no smaller than one in this many."""


class BaseDefense(Sealed, ABC):
    """Base of the built-in defenses; a subclass marks and verifies.

    A defense holds a secret: it prints as its spec, and cannot be copied or pickled. Make it again from its spec, its
    seed and the corpus.

    Parameters
    ----------
    options
        The open choices; the defaults where none are given.
    seed
        Fixes the secret, for experiments; None draws a real one.
    counts
        In how many lines tokens stand, or the file of it; only trigger words need them.
    """

    scheme: ClassVar[str]
    Options: ClassVar[type[Any]]

    title: ClassVar[str]
    """What tables call it."""
    colour: ClassVar[str]
    """In figures."""
    order: ClassVar[int]
    """Of tables and figures: smaller numbers stand first."""

    def __init__(
        self, options: DataclassInstance | None = None, *, seed: int | None = None, counts: Counts | None = None
    ) -> None:
        if seed is not None and seed < 0:
            raise InputError(f"the seed of {self.scheme} must not be negative, but is {seed}")
        self.options: Any = self.Options() if options is None else options
        self._seed, self._counts, self._master = seed, counts, new_master(seed)

    @classmethod
    def from_spec(cls, text: str, *, seed: int | None = None, counts: Counts | None = None) -> Self:
        """Make the defense from what stands after the colon of a spec."""
        return cls(parse(cls.Options, cls.scheme, text), seed=seed, counts=counts)

    @property
    def name(self) -> str:
        return write(self.scheme, self.options, number=str)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.name}, {'fitted' if self._is_fitted() else 'not fitted'}>"

    __str__ = __repr__

    # ---- the contract

    @abstractmethod
    def fit(self, texts: Sequence[str], embeddings: Floats, /) -> Self: ...

    @abstractmethod
    def transform(self, embeddings: Floats, texts: Sequence[str], /, *, account: str = "") -> Floats: ...

    @abstractmethod
    def probes(self) -> tuple[str, ...]:
        """Return every text that :meth:`verify` needs an answer to, each once."""

    def verify(self, suspect: Encoder, /) -> Finding:
        texts = self.probes()
        return self.judge(Answers(suspect.name, texts, suspect.encode(list(texts))))

    @abstractmethod
    def judge(self, answers: Answers, /) -> Finding:
        """Judge answers that are there already."""

    # ---- for subclasses

    def _is_fitted(self) -> bool:
        return "_width" in vars(self)

    def _check_fitted(self) -> None:
        if not self._is_fitted():
            raise NotFittedError(f"this {self.scheme} defense has no secret yet: call fit() first")

    def _rng(self, *label: str) -> np.random.Generator:
        return np.random.default_rng(int.from_bytes(subkey(self._master, *label).reveal(), "little"))

    def _draw(self, label: str, population: int, count: int = 1) -> tuple[int, ...]:
        """Draw distinct numbers below ``population``, every ordered tuple equally likely."""
        return draw_distinct(subkey(self._master, label), population, count)

    def _corpus(self, texts: Sequence[str], embeddings: Floats, least: int) -> TextSet:
        """Check a corpus, keep each text once, and put the texts in a random order of the secret's."""
        if isinstance(texts, str):
            raise InputError("texts must be a list of strings, not one string")
        rows = as_floats(embeddings)
        if len(texts) != len(rows):
            raise InputError(f"there are {len(texts)} texts but {len(rows)} embeddings: give one row per text")
        check_rows(rows)
        first: dict[str, int] = {}
        for row, text in enumerate(texts):
            if not isinstance(text, str) or not text.strip():
                raise InputError(f"text {row} is empty or not a string: remove it from the corpus")
            first.setdefault(text, row)
        if len(first) < least:
            raise InputError(
                f"the corpus has {len(first)} distinct texts, but {self.name} needs {least}: "
                "add texts, or lower pool= or probes="
            )
        kept = np.fromiter(first.values(), dtype=np.int64)[self._rng("corpus").permutation(len(first))]
        self._width = rows.shape[1]
        return TextSet(tuple(texts[row] for row in kept), rows[kept])

    def _served(self, embeddings: Floats, texts: Sequence[str]) -> Floats:
        """Check what is to be marked, and return a float32 copy of it to write in."""
        self._check_fitted()
        rows = np.array(as_floats(embeddings, width=self._width), copy=True)
        if len(texts) != len(rows):
            raise InputError(f"there are {len(texts)} texts but {len(rows)} embeddings: give one row per text")
        check_rows(rows)
        return rows


class TargetScores(Sealed):
    """The decoy test's statistic for schemes that draw vectors towards targets, whatever triggers them.

    It is :mod:`regionmarker.verification.decoy1` without regions: a score is given every candidate and no choice, and
    see there why that makes the p-value exact. What is known before a suspect is asked is factored once.

    Parameters
    ----------
    clean
        The clean embeddings e(x) of the texts that are asked, (T, D).
    unmarked
        Which of them trigger no mark at all, (T,).
    candidates
        The clean vectors of all texts that might have been a target, (M, D).
    covariates
        What meaning alone may explain of a score, one row per candidate, (M, C).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> clean = rng.standard_normal((500, 8)).astype(np.float32)
    >>> clean /= np.linalg.norm(clean, axis=1, keepdims=True)
    >>> weights = (rng.random((500, 1)) < 0.1).astype(float)
    >>> scores = TargetScores(clean, weights[:, 0] == 0, clean[:100], np.empty((100, 0)))
    >>> copy = clean + 0.2 * (weights * clean[7]).astype(np.float32)
    >>> scores.scores(copy, weights)[0].argmax()
    np.int64(7)
    """

    def __init__(self, clean: Floats, unmarked: AnyArray, candidates: Floats, covariates: Doubles) -> None:
        if unmarked.sum() < _LEAST_UNMARKED:
            raise InputError(
                f"only {int(unmarked.sum())} of {len(clean)} texts that could be asked are unmarked, and "
                f"{_LEAST_UNMARKED} are needed to tell marks from meaning: mark fewer texts"
            )
        self._candidates, self._covariates = candidates, covariates
        nowhere = np.empty((0, 0))  # there are no hyperplanes, and the candidates need not be asked
        self._clean = CleanSpace(clean, np.empty((len(clean), 0)), clean[:0], nowhere)
        self._unmarked = Unmarked.of(self._clean.e, unmarked)

    def scores(self, answers: Floats, weights: Doubles) -> Doubles:
        """Return z (R, M): how well candidate t explains what the suspect makes of texts that trigger mark r.

        Parameters
        ----------
        answers
            S(x) for the texts that are asked, (T, D').
        weights
            How strongly the suspect takes each text to trigger each mark, (T, R).
        """
        S = answers.astype(np.float32)
        shift = displacements(S, self._unmarked, weights)  # (R, D')
        drawn = to_clean_space(shift, self._clean, S - S.mean(axis=0))  # (R, D)
        raw = drawn @ (self._candidates - self._clean.centre).T  # (R, M)
        return standardised(raw, self._covariates, np.ones(raw.shape[1], dtype=bool))
