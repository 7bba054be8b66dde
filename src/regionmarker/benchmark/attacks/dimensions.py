"""The paper's attacks on the coordinates: maps from R^D to R^D' that a thief applies to every served vector alike.

Shift and permutation keep the cosines exactly, tanh nearly (the coordinates of a unit vector are small), truncation and
projection more or less.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import isfinite
from typing import Self

import numpy as np

from regionmarker.benchmark.attacks.rows import RowAttack, SeededAttack, integer, number
from regionmarker.errors import InputError
from regionmarker.protocols import Doubles, Integers


@dataclass(frozen=True)
class Shift(RowAttack):
    """Circular shift: the last ``places`` coordinates move to the front (paper: 100 of 1536).

    Examples
    --------
    >>> Shift(1)(np.array([[0.6, 0.8, 0.0]], dtype=np.float32))
    array([[0. , 0.6, 0.8]], dtype=float32)
    """

    places: int = 100

    def __post_init__(self) -> None:
        if self.places < 1:
            raise InputError(f"shift must be by at least 1 place, but is by {self.places}")

    @property
    def name(self) -> str:
        """``shift:PLACES``."""
        return f"shift:{self.places}"

    @classmethod
    def from_spec(cls, rest: str) -> Self:
        """Load ``shift`` or ``shift:PLACES``."""
        return cls(integer("shift", rest)) if rest else cls()

    def width_out(self, width: int) -> int:
        """Keep D; a shift by D or more is refused, for at D it would do nothing and nobody would notice."""
        if self.places >= width:
            raise InputError(f"{self.name} needs vectors wider than {self.places}, but these have width {width}")
        return width

    def _apply(self, rows: Doubles) -> Doubles:
        return np.roll(rows, self.places, axis=1)


@dataclass(frozen=True)
class Truncate(RowAttack):
    """Keep the first coordinates: a number of them, or a fraction of the width (paper: 1024 of 1536).

    Examples
    --------
    >>> Truncate(2)(np.array([[0.6, 0.0, 0.8]], dtype=np.float32))
    array([[1., 0.]], dtype=float32)
    >>> Truncate.from_spec("2/3").width_out(1536)
    1024
    """

    keep: int | float | Fraction = Fraction(2, 3)

    def __post_init__(self) -> None:
        whole = isinstance(self.keep, int) and self.keep >= 1
        if not whole and not 0 < self.keep < 1:  # written so that NaN is refused
            raise InputError(f"truncate must keep a whole number of dimensions or a fraction of 1, not {self.keep}")

    @property
    def name(self) -> str:
        """``truncate:KEEP``."""
        return f"truncate:{self.keep}"

    @classmethod
    def from_spec(cls, rest: str) -> Self:
        """Load ``truncate:1024``, ``truncate:0.667`` or ``truncate:2/3``."""
        if not rest:
            return cls()
        try:
            keep = int(rest) if rest.isdecimal() else Fraction(rest) if "/" in rest else float(rest)
        except (ValueError, ZeroDivisionError):
            raise InputError(f"truncate:{rest} must give a number of dimensions or a fraction of them") from None
        return cls(keep)

    def width_out(self, width: int) -> int:
        """Return how many of ``width`` dimensions stay."""
        kept = self.keep if isinstance(self.keep, int) else max(1, round(self.keep * width))
        if kept > width:
            raise InputError(f"{self.name} needs vectors of at least {kept} dimensions, but these have {width}")
        return kept

    def _apply(self, rows: Doubles) -> Doubles:
        return rows[:, : self.width_out(rows.shape[1])]


@dataclass(frozen=True)
class Permute(SeededAttack):
    """Shuffle the coordinates, all vectors alike.

    Examples
    --------
    >>> sorted(Permute(3)(np.array([[0.6, 0.0, 0.8]], dtype=np.float32))[0].round(3).tolist())
    [0.0, 0.6000000238418579, 0.800000011920929]
    """

    def _apply(self, rows: Doubles) -> Doubles:
        order: Integers = np.random.default_rng(self.seed).permutation(rows.shape[1])
        return rows[:, order]


@dataclass(frozen=True)
class Project(RowAttack):
    """Multiply by a D x D' matrix of independent Gaussians: no two of its columns are orthogonal.

    Without a width, D' = D.

    Examples
    --------
    >>> Project(2)(np.eye(3, dtype=np.float32)).shape
    (3, 2)
    """

    width: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        if self.width is not None and self.width < 1:
            raise InputError(f"project must be to at least 1 dimension, but is to {self.width}")
        if self.seed < 0:
            raise InputError(f"the seed of project must not be negative, but is {self.seed}")

    @property
    def name(self) -> str:
        """``project:WIDTH:SEED``, or ``project``."""
        width = "" if self.width is None else str(self.width)
        return f"project:{width}:{self.seed}" if self.seed else f"project:{width}".rstrip(":")

    @classmethod
    def from_spec(cls, rest: str) -> Self:
        """Load ``project``, ``project:WIDTH`` or ``project:WIDTH:SEED``; the width may be left empty."""
        width, _, seed = rest.partition(":")
        return cls(integer("project", width) if width else None, integer("project", seed) if seed else 0)

    def width_out(self, width: int) -> int:
        """Return the width that was asked for, or D."""
        return width if self.width is None else self.width

    def _apply(self, rows: Doubles) -> Doubles:
        return np.asarray(rows @ _gaussian(rows.shape[1], self.width_out(rows.shape[1]), self.seed))


@dataclass(frozen=True)
class Tanh(RowAttack):
    """Non-linear scaling: tanh(gain v), coordinate by coordinate (paper: gain 1).

    Examples
    --------
    >>> Tanh()(np.array([[0.6, 0.8]], dtype=np.float32)).round(3)
    array([[0.629, 0.778]], dtype=float32)
    """

    gain: float = 1.0

    def __post_init__(self) -> None:
        if not (isfinite(self.gain) and self.gain > 0):
            raise InputError(f"the gain of tanh must be positive, but is {self.gain}")

    @property
    def name(self) -> str:
        """``tanh``, or ``tanh:GAIN``."""
        return "tanh" if self.gain == 1 else f"tanh:{self.gain:g}"

    @classmethod
    def from_spec(cls, rest: str) -> Self:
        """Load ``tanh`` or ``tanh:GAIN``."""
        return cls(number("tanh", rest)) if rest else cls()

    def _apply(self, rows: Doubles) -> Doubles:
        return np.tanh(self.gain * rows)


@lru_cache(maxsize=4)  # one block after another asks for the same matrix
def _gaussian(width: int, width_out: int, seed: int) -> Doubles:
    matrix = np.random.default_rng(seed).standard_normal((width, width_out))
    matrix.setflags(write=False)
    return matrix
