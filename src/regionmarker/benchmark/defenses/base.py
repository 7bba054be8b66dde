"""What all defenses have in common: a spec, a secret, a checked corpus, and the way to a finding."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from regionmarker.benchmark.settings import parse_settings, settings_spec
from regionmarker.embeddings import as_floats, check_rows
from regionmarker.errors import InputError, NotFittedError
from regionmarker.keys.derive import draw_distinct, subkey
from regionmarker.keys.key import TextSet
from regionmarker.keys.secret import Sealed
from regionmarker.marking.keymaking import new_master
from regionmarker.protocols import Doubles, Encoder, Floats
from regionmarker.verification.answers import Answers
from regionmarker.verification.decoys import DecoyTest
from regionmarker.verification.paper import PaperStatistics

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

    from regionmarker.benchmark.defenses.words import TokenCounts

SINGLE_TARGET_POOL = 4096
"""Candidates of a scheme with one secret choice: its p-value can be no smaller than one in so many."""


@dataclass(frozen=True)
class DefenseFinding:
    """What a verification says; a :class:`~regionmarker.benchmark.protocols.Finding`.

    The scores and the choice print as nothing: they are the secret.
    """

    p_value: float
    published: PaperStatistics
    scores: Doubles = field(repr=False, compare=False)  # z (R, M)
    chosen: tuple[int, ...] = field(repr=False)

    @classmethod
    def of(cls, scores: Doubles, chosen: tuple[int, ...], published: PaperStatistics) -> DefenseFinding:
        """Compare the secret choice with all that might have been drawn; scores that are NaN throughout give NaN."""
        applies = bool(np.isfinite(scores).any())
        return cls(DecoyTest(scores).p_value(chosen) if applies else np.nan, published, scores, chosen)


class BaseDefense(Sealed, ABC):
    """Base of the built-in defenses; a subclass marks and verifies.

    A defense holds a secret: it prints as its spec, and cannot be copied or pickled. Make it again from its spec, its
    seed and the corpus.

    Parameters
    ----------
    settings
        The open choices; the defaults where none are given.
    seed
        Fixes the secret, for experiments; None draws a real one.
    """

    scheme: ClassVar[str]
    Settings: ClassVar[type[Any]]

    def __init__(self, settings: DataclassInstance | None = None, *, seed: int | None = None) -> None:
        if seed is not None and seed < 0:
            raise InputError(f"the seed of {self.scheme} must not be negative, but is {seed}")
        self.settings: Any = self.Settings() if settings is None else settings
        self._master = new_master(seed)

    @classmethod
    def from_spec(cls, rest: str, *, seed: int | None = None, counts: TokenCounts | str | Path | None = None) -> Self:
        """Make the defense from what stands after the colon of a spec; only trigger words need ``counts``."""
        del counts
        return cls(parse_settings(cls.Settings, cls.scheme, rest), seed=seed)

    @property
    def name(self) -> str:
        """The spec that loads it again."""
        return settings_spec(self.scheme, self.settings)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.name}, {'fitted' if self._is_fitted() else 'not fitted'}>"

    __str__ = __repr__

    # ---- the contract

    @abstractmethod
    def fit(self, texts: Sequence[str], embeddings: Floats, /) -> Self:
        """Make the secret from a corpus and its clean embeddings (n, D)."""

    @abstractmethod
    def transform(self, embeddings: Floats, texts: Sequence[str], /, *, account: str = "") -> Floats:
        """Return what is served for these texts, (n, D') float32, rows of unit length."""

    @abstractmethod
    def probes(self) -> tuple[str, ...]:
        """Return every text that :meth:`verify` needs an answer to, each once."""

    def verify(self, suspect: Encoder, /) -> DefenseFinding:
        """Ask the suspect, and say whether it was trained on marked vectors."""
        texts = self.probes()
        return self.judge(Answers(suspect.name, texts, suspect.encode(list(texts))))

    @abstractmethod
    def judge(self, answers: Answers, /) -> DefenseFinding:
        """Judge answers that are there already."""

    # ---- for subclasses

    def _is_fitted(self) -> bool:
        return "_width" in vars(self)

    def _check_fitted(self) -> None:
        if not self._is_fitted():
            raise NotFittedError(f"this {self.scheme} defense has no secret yet: call fit() first")

    def _rng(self, *label: str) -> np.random.Generator:
        """Return the random stream of one label of the secret."""
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
            raise InputError(f"there are {len(texts)} texts but {len(rows)} embeddings: give one row a text")
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
            raise InputError(f"there are {len(texts)} texts but {len(rows)} embeddings: give one row a text")
        check_rows(rows)
        return rows
