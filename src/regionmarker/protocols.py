"""What the parts expect of each other: structural types, so that any object with the right methods will do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float32]
"""A float32 array: embeddings are (n, D), one row a text."""

Doubles: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
AnyArray: TypeAlias = NDArray[Any]


@runtime_checkable
class Encoder(Protocol):
    """Text in, embeddings out.

    Examples
    --------
    >>> class Lengths:
    ...     name = "lengths"
    ...     def encode(self, texts):
    ...         return np.array([[len(text), 1.0] for text in texts], dtype=np.float32)
    >>> isinstance(Lengths(), Encoder)
    True
    """

    @property
    def name(self) -> str:
        """What the key remembers this encoder by."""
        ...

    def encode(self, texts: Sequence[str], /) -> Floats:
        """Embed ``texts`` in order: (len(texts), D) float32, rows of unit length."""
        ...
