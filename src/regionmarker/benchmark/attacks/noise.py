"""Small changes to every number: Gaussian noise, rounding, small entries set to zero.

These are what GuardEmb (EMNLP Findings 2024) trains its mark to survive, with its settings as the defaults.
"""

from __future__ import annotations

from dataclasses import dataclass
from hashlib import blake2b
from math import isfinite
from typing import Self

import numpy as np

from regionmarker.benchmark.attacks.rows import RowAttack, integer, number
from regionmarker.errors import InputError
from regionmarker.protocols import Doubles


@dataclass(frozen=True)
class Noise(RowAttack):
    """Add independent Gaussian noise to every coordinate.

    A row's noise is drawn from the seed and the row itself, so it is the same in every batch, and a model that is
    disguised so answers a repeated question alike.

    Examples
    --------
    >>> row = np.array([[0.6, 0.8]], dtype=np.float32)
    >>> bool(0 < np.abs(Noise()(row) - row).max() < 0.1)
    True
    """

    deviation: float = 0.01
    seed: int = 0

    def __post_init__(self) -> None:
        if not (isfinite(self.deviation) and self.deviation > 0):
            raise InputError(f"the deviation of noise must be positive, but is {self.deviation}")
        if self.seed < 0:
            raise InputError(f"the seed of noise must not be negative, but is {self.seed}")

    @property
    def name(self) -> str:
        """``noise:DEVIATION``, or ``noise:DEVIATION:SEED``."""
        return f"noise:{self.deviation:g}" + (f":{self.seed}" if self.seed else "")

    @classmethod
    def from_spec(cls, rest: str) -> Self:
        """Load ``noise``, ``noise:DEVIATION`` or ``noise:DEVIATION:SEED``."""
        deviation, _, seed = rest.partition(":")
        return cls(number("noise", deviation) if deviation else 0.01, integer("noise", seed) if seed else 0)

    def _apply(self, rows: Doubles) -> Doubles:
        moved = rows.copy()
        for row in moved:
            digest = blake2b(row.astype("<f4").tobytes(), digest_size=8).digest()
            rng = np.random.default_rng([self.seed, int.from_bytes(digest, "little")])
            row += self.deviation * rng.standard_normal(len(row))
        return moved


@dataclass(frozen=True)
class Round(RowAttack):
    """Round every coordinate of the unit vector to so many decimals.

    Examples
    --------
    >>> Round(1)(np.array([[0.62, 0.78]], dtype=np.float32)).round(4)
    array([[0.6, 0.8]], dtype=float32)
    """

    decimals: int = 1

    def __post_init__(self) -> None:
        if not 1 <= self.decimals <= 7:
            raise InputError(f"round must be to 1 to 7 decimals, but is to {self.decimals}")

    @property
    def name(self) -> str:
        """``round:DECIMALS``."""
        return f"round:{self.decimals}"

    @classmethod
    def from_spec(cls, rest: str) -> Self:
        """Load ``round`` or ``round:DECIMALS``."""
        return cls(integer("round", rest)) if rest else cls()

    def _apply(self, rows: Doubles) -> Doubles:
        return _or_the_largest(np.round(rows, self.decimals), rows)


@dataclass(frozen=True)
class Zero(RowAttack):
    """Set coordinates to zero that are not larger than ``below``.

    Examples
    --------
    >>> Zero(0.1)(np.array([[1.0, 0.05]], dtype=np.float32))
    array([[1., 0.]], dtype=float32)
    """

    below: float = 0.005

    def __post_init__(self) -> None:
        if not 0 < self.below < 1:
            raise InputError(f"zero must be below a number between 0 and 1, but is below {self.below}")

    @property
    def name(self) -> str:
        """``zero:BELOW``."""
        return f"zero:{self.below:g}"

    @classmethod
    def from_spec(cls, rest: str) -> Self:
        """Load ``zero`` or ``zero:BELOW``."""
        return cls(number("zero", rest)) if rest else cls()

    def _apply(self, rows: Doubles) -> Doubles:
        return _or_the_largest(np.where(np.abs(rows) > self.below, rows, 0.0), rows)


def _or_the_largest(changed: Doubles, rows: Doubles) -> Doubles:
    """Where nothing of a row is left, keep its largest coordinate: a row without a direction teaches nothing."""
    empty = ~changed.any(axis=1) & rows.any(axis=1)
    largest = np.abs(rows[empty]).argmax(axis=1)
    changed[np.flatnonzero(empty), largest] = rows[empty, largest]
    return changed
