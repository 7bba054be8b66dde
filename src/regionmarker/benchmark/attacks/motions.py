"""Attacks on the place of the vectors: rotation, scaling, translation (POSTER, arXiv 2510.16706).

Rotation holds shift and permutation as special cases and keeps the cosines; scaling is undone by normalising;
translation alone changes what the vectors say about each other.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import isfinite
from typing import Self

import numpy as np

from regionmarker.benchmark.attacks.rows import RowAttack, SeededAttack, integer, number
from regionmarker.errors import InputError
from regionmarker.protocols import Doubles


@dataclass(frozen=True)
class Rotate(SeededAttack):
    """Turn the space by an orthogonal matrix drawn uniformly (Haar).

    Examples
    --------
    >>> turned = Rotate(3)(np.eye(4, dtype=np.float32))
    >>> bool(np.allclose(turned @ turned.T, np.eye(4), atol=1e-6))
    True
    """

    def _apply(self, rows: Doubles) -> Doubles:
        return np.asarray(rows @ _haar(rows.shape[1], self.seed))


@dataclass(frozen=True)
class Scale(RowAttack):
    """Multiply all vectors by one factor, or each by its own; normalising undoes either, which is the point of it.

    Examples
    --------
    >>> Scale(7.0)(np.array([[0.6, 0.8]], dtype=np.float32))
    array([[0.6, 0.8]], dtype=float32)
    """

    factor: float | None = 2.0
    """None draws a factor for each vector, log-normal."""

    def __post_init__(self) -> None:
        if self.factor is not None and not (isfinite(self.factor) and self.factor > 0):
            raise InputError(f"the factor of scale must be positive, but is {self.factor}")

    @property
    def name(self) -> str:
        """``scale:FACTOR``, or ``scale:rows``."""
        return "scale:rows" if self.factor is None else f"scale:{self.factor:g}"

    @classmethod
    def from_spec(cls, rest: str) -> Self:
        """Load ``scale``, ``scale:FACTOR`` or ``scale:rows``."""
        return cls(None) if rest == "rows" else cls(number("scale", rest)) if rest else cls()

    def _apply(self, rows: Doubles) -> Doubles:
        if self.factor is None:
            return np.asarray(rows * np.exp(np.random.default_rng(0).standard_normal((len(rows), 1))))
        return rows * self.factor


@dataclass(frozen=True)
class Translate(SeededAttack):
    """Add one random vector of length ``length`` to all, then normalise: unlike the isometries it moves the cosines.

    Examples
    --------
    >>> moved = Translate(0, length=0.5)(np.eye(3, dtype=np.float32))
    >>> bool(moved[0] @ moved[1] > 0)
    True
    """

    length: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (isfinite(self.length) and self.length > 0):
            raise InputError(f"the length of translate must be positive, but is {self.length}")

    @property
    def name(self) -> str:
        """``translate:SEED:LENGTH``."""
        return f"translate:{self.seed}:{self.length:g}"

    @classmethod
    def from_spec(cls, rest: str) -> Self:
        """Load ``translate``, ``translate:SEED`` or ``translate:SEED:LENGTH``."""
        seed, _, length = rest.partition(":")
        return cls(integer("translate", seed) if seed else 0, number("translate", length) if length else 0.5)

    def _apply(self, rows: Doubles) -> Doubles:
        step = np.random.default_rng(self.seed).standard_normal(rows.shape[1])
        return np.asarray(rows + self.length * step / np.linalg.norm(step))


@lru_cache(maxsize=4)  # one block after another asks for the same matrix, and QR of a wide one takes a second
def _haar(width: int, seed: int) -> Doubles:
    q, r = np.linalg.qr(np.random.default_rng(seed).standard_normal((width, width)))
    q *= np.sign(np.diag(r))  # without the signs, Q would not be uniform
    q.setflags(write=False)
    return q
