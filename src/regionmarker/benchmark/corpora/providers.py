"""Providers whose vectors are stored: one of them, several side by side, and crowded into one corner as some are.

    stored:NAME                           the vectors of NAME in the data folder
    stored:NAME+NAME                      side by side: of unit length each, then together
    stored:NAME+NAME,crowded=0.75         and one direction added to all, until two different texts have this cosine

The last has the shape of text-embedding-ada-002, which nobody can store here: 1,536 wide where both parts are 768 wide,
and the mean cosine of two texts is about 0.75. The added direction is fixed; how much of it is added is found on all
stored rows of a corpus, so a limit on the texts changes no vector.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from regionmarker.errors import InputError
from regionmarker.specs import split_options
from regionmarker.vectors import Encoder, Floats, normalised

STORED = "stored:"
"""Before the name of a provider whose vectors lie in the data folder."""

_SEED = 1536  # of the direction that crowds
_MOST = 64.0  # of it is never needed: two texts have a cosine of 0.9997 there
_HALVINGS = 50


@dataclass(frozen=True)
class StoredProvider:
    """What stands after ``stored:``.

    Attributes
    ----------
    parts
        Names of stored vectors, in the order in which they stand side by side.
    crowded
        The mean cosine of two different texts; 0 for what it is.
    push
        How much of the fixed direction is added; :meth:`fitted` finds it.

    Examples
    --------
    >>> StoredProvider.parse("stored:mpnet768+nomic768,crowded=0.75").parts
    ('mpnet768', 'nomic768')
    """

    parts: tuple[str, ...]
    crowded: float = 0.0
    push: float = 0.0

    @classmethod
    def parse(cls, spec: str) -> StoredProvider:
        names, options = split_options(spec.removeprefix(STORED))
        crowded = options.pop("crowded", 0.0)
        if options:
            raise InputError(f"the provider {spec!r} has no option {next(iter(options))}: give crowded=COSINE")
        parts = tuple(names.split("+"))
        if not all(re.fullmatch(r"[\w.-]+", part) for part in parts):
            raise InputError(f"the provider {spec!r} is not stored:NAME, stored:NAME+NAME or stored:NAME,crowded=0.75")
        if isinstance(crowded, bool) or not isinstance(crowded, int | float) or not 0 <= crowded < 1:
            raise InputError(f"the provider {spec!r}: crowded takes a mean cosine in [0, 1), not {crowded!r}")
        return cls(parts, float(crowded))

    @property
    def name(self) -> str:
        """The spec, without what is at its default."""
        return f"{STORED}{'+'.join(self.parts)}" + (f",crowded={self.crowded:g}" if self.crowded else "")

    @property
    def plain(self) -> bool:
        """Whether its vectors are those of its one part."""
        return len(self.parts) == 1 and not self.crowded

    def fitted(self, rows: Sequence[Floats]) -> StoredProvider:
        """Find how much of the direction these rows need, one (n, D) of unit rows for each part.

        Examples
        --------
        >>> rows = np.eye(8, dtype=np.float32)
        >>> crowd = StoredProvider(("small",), crowded=0.5)
        >>> vectors = crowd.fitted([rows]).vectors([rows])
        >>> round(mean_cosine(vectors), 3)
        0.5
        """
        if not self.crowded:
            return self
        joined = _side_by_side(rows).astype(np.float64)  # (n, D)
        if len(joined) < 2:
            raise InputError(f"the provider {self.name!r} needs two texts or more, to crowd them")
        along = joined @ _direction(joined.shape[1])  # (n,)

        def crowding(push: float) -> float:
            """Return the mean cosine of two different rows n(e + push u): (|sum of rows|^2 - n) / (n (n - 1))."""
            weights = 1 / np.sqrt(1 + 2 * push * along + push * push)
            total = weights @ joined + push * weights.sum() * _direction(joined.shape[1])
            return float((total @ total - len(joined)) / (len(joined) * (len(joined) - 1)))

        low, high = 0.0, _MOST
        if crowding(low) > self.crowded:
            raise InputError(f"the provider {self.name!r} has a mean cosine of {crowding(low):.2f} by itself: ask more")
        for _ in range(_HALVINGS):
            middle = (low + high) / 2
            low, high = (middle, high) if crowding(middle) < self.crowded else (low, middle)
        return replace(self, push=round((low + high) / 2, 6))  # rounded: the same on every machine

    def vectors(self, rows: Sequence[Floats]) -> Floats:
        """Make the provider's vectors of those of its parts, each (n, D): (n, sum of D), rows of unit length."""
        if self.plain:
            return rows[0]
        joined = _side_by_side(rows)
        if self.push:
            joined = normalised((joined + self.push * _direction(joined.shape[1])).astype(np.float32))
        return joined


class ProviderEncoder:
    """A stored provider for texts that nobody stored: the encoders of its parts, put together as the vectors are.

    Examples
    --------
    >>> from regionmarker import load_encoder
    >>> wordllama = load_encoder("wordllama")
    >>> ProviderEncoder(StoredProvider(("one", "two")), [wordllama, wordllama]).encode(["a text"]).shape
    (1, 512)
    """

    def __init__(self, provider: StoredProvider, encoders: Sequence[Encoder]) -> None:
        self._provider, self._encoders = provider, tuple(encoders)

    @property
    def name(self) -> str:
        return self._provider.name

    def encode(self, texts: Sequence[str], /) -> Floats:
        return self._provider.vectors([normalised(encoder.encode(texts)) for encoder in self._encoders])


def mean_cosine(rows: Floats) -> float:
    """Return the mean cosine of two different rows of unit length, (n, D).

    Examples
    --------
    >>> mean_cosine(np.eye(3, dtype=np.float32))
    0.0
    """
    total = rows.sum(axis=0, dtype=np.float64)
    return float((total @ total - len(rows)) / (len(rows) * (len(rows) - 1)))


def _side_by_side(rows: Sequence[Floats]) -> Floats:
    return rows[0] if len(rows) == 1 else normalised(np.concatenate(list(rows), axis=1))


def _direction(width: int) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    drawn = np.random.default_rng(_SEED).standard_normal(width)  # (D,)
    return np.asarray(drawn / np.sqrt(drawn @ drawn))
