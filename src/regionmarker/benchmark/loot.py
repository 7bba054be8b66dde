"""What a thief holds: the texts that were asked, what was served for them, and the means to ask for more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Protocol, Self

import numpy as np

from regionmarker.embeddings import as_floats
from regionmarker.errors import InputError
from regionmarker.protocols import AnyArray, Encoder, Floats


class Service(Protocol):
    """The provider's API as a thief sees it."""

    def __call__(self, texts: Sequence[str], /, *, account: str = "") -> Floats:
        """Answer with served vectors (n, D); ``account`` is whose API key asks."""
        ...


@dataclass(frozen=True, eq=False)
class Loot:
    """Texts, the vectors to train on, and what else the thief can reach.

    Attributes
    ----------
    texts
        One a row.
    vectors
        (n, D') float32, rows of unit length: what was served, or what attacks have made of it so far.
    service
        Asks the provider again, for attacks that need more answers; None where the thief no longer can.
    public
        A public encoder that the thief has; None where attacks must do without.

    Examples
    --------
    >>> loot = Loot(("a", "b", "c"), np.eye(3, dtype=np.float32))
    >>> loot.kept(np.array([True, False, True])).texts
    ('a', 'c')
    """

    texts: tuple[str, ...]
    vectors: Floats
    service: Service | None = None
    public: Encoder | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "texts", tuple(self.texts))
        object.__setattr__(self, "vectors", as_floats(self.vectors, what="served"))
        if len(self.texts) != len(self.vectors):
            raise InputError(f"there are {len(self.texts)} texts but {len(self.vectors)} vectors: give one for each")

    def __len__(self) -> int:
        return len(self.texts)

    def with_vectors(self, vectors: Floats) -> Self:
        """Return the same loot with other vectors to train on, (n, D')."""
        return replace(self, vectors=vectors)

    def kept(self, rows: AnyArray) -> Self:
        """Return the loot with some rows only: a mask (n,) or places (k,)."""
        places = np.flatnonzero(rows) if rows.dtype == bool else rows
        return replace(self, texts=tuple(self.texts[place] for place in places), vectors=self.vectors[places])

    def ask(self, texts: Sequence[str], account: str = "") -> Floats:
        """Ask the provider again; an error where the thief cannot."""
        if self.service is None:
            raise InputError("this attack asks the provider again: give the loot a service")
        return self.service(list(texts), account=account)

    def public_encoder(self) -> Encoder:
        """Return the thief's own encoder; an error where there is none."""
        if self.public is None:
            raise InputError("this attack needs a public encoder: give the loot one")
        return self.public
