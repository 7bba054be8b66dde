"""A labelled corpus with the clean provider's vectors: what every cell of a grid starts from."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from regionmarker.benchmark.corpora.providers import StoredProvider
from regionmarker.errors import InputError
from regionmarker.vectors import AnyArray, Floats, Integers, as_floats


@dataclass(frozen=True, eq=False)
class Labelled:
    """Distinct texts, their labels, and which of them are for testing.

    Examples
    --------
    >>> Labelled.of(["a", "b", "a"], [0, 1, 1], [False, True, True]).texts
    ('a', 'b')
    """

    texts: tuple[str, ...]
    labels: Integers  # (n,)
    test: AnyArray  # (n,) bool

    @classmethod
    def of(cls, texts: Sequence[str], labels: Sequence[int], test: Sequence[bool]) -> Labelled:
        """Keep the first of equal texts, so that no text is bought and asked about under two numbers."""
        places: dict[str, int] = {}
        for place, text in enumerate(texts):
            places.setdefault(text, place)
        kept = np.fromiter(places.values(), dtype=np.int64, count=len(places))
        return cls(tuple(places), np.asarray(labels, dtype=np.int64)[kept], np.asarray(test, dtype=bool)[kept])

    def __len__(self) -> int:
        return len(self.texts)

    def some(self, limit: int | None) -> Labelled:
        """Return at most ``limit`` texts, the same ones every time, training and test texts in their proportion."""
        if limit is None or limit >= len(self):
            return self
        places = np.sort(np.random.default_rng(20).permutation(len(self))[:limit])
        return Labelled(tuple(self.texts[place] for place in places), self.labels[places], self.test[places])


@dataclass(frozen=True, eq=False)
class Corpus:
    """What every cell starts from.

    Attributes
    ----------
    name, provider
        As the grid calls them.
    data
        Texts, labels and split.
    clean
        (n, D) float32, rows of unit length: what the provider answers without any mark.
    paraphrases
        Text to its paraphrases, where such are stored.
    other
        Further texts whose clean vectors are known (the paraphrases), and these vectors.
    stored
        How the vectors were made of stored ones; None where an encoder made them.
    """

    name: str
    provider: str
    data: Labelled
    clean: Floats
    paraphrases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    other: tuple[tuple[str, ...], Floats] | None = None
    stored: StoredProvider | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "clean", as_floats(self.clean, what=f"the vectors of {self.name}"))
        if len(self.data) != len(self.clean):
            raise InputError(f"{self.name}: there are {len(self.data)} texts but {len(self.clean)} vectors")
        self.clean.setflags(write=False)

    @property
    def texts(self) -> tuple[str, ...]:
        return self.data.texts

    @property
    def all_texts(self) -> tuple[str, ...]:
        """The texts of the corpus, then the other ones."""
        return self.texts + (self.other[0] if self.other else ())

    @property
    def all_clean(self) -> Floats:
        return np.concatenate([self.clean, self.other[1]]) if self.other else self.clean

    @cached_property
    def digest(self) -> str:
        """SHA-256 over texts, labels, split, paraphrases and clean vectors: what a result depends on."""
        found = hashlib.sha256(f"{self.provider} {self.clean.shape}\n".encode())
        for text in self.all_texts:
            found.update(f"{len(text)} {text}\n".encode())
        for text, others in self.paraphrases.items():
            found.update("\n".join((text, *others)).encode())
        for array in (self.data.labels, self.data.test, self.clean, *((self.other[1],) if self.other else ())):
            found.update(np.ascontiguousarray(array).tobytes())
        return found.hexdigest()
