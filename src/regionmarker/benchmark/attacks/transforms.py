"""Eleven maps from R^D to R^D' that a thief applies to every served vector alike.

Of the coordinates, as in the paper: shift and permutation keep the cosines exactly, tanh nearly (the coordinates of a
unit vector are small), truncation and projection more or less. Of the space (POSTER, arXiv 2510.16706): rotation keeps
the cosines, and has shift and permutation as special cases; normalising undoes scaling; translation alone changes what
the vectors say about each other. Of every number: noise, rounding and small entries set to zero are what GuardEmb
(EMNLP Findings 2024) trains its mark to survive, with its settings as the defaults.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from hashlib import blake2b
from math import isfinite

import numpy as np

from regionmarker.benchmark.attacks.base import RowAttack, SeededAttack
from regionmarker.errors import InputError
from regionmarker.specs import position
from regionmarker.vectors import Doubles, Integers


@dataclass(frozen=True)
class Shift(RowAttack):
    """Circular shift: the last ``places`` coordinates move to the front (paper: 100 of 1536).

    Examples
    --------
    >>> Shift(1)(np.array([[0.6, 0.8, 0.0]], dtype=np.float32))
    array([[0. , 0.6, 0.8]], dtype=float32)
    """

    spec = "shift"

    places: int = position(100)

    def __post_init__(self) -> None:
        if self.places < 1:
            raise InputError(f"shift must be by at least 1 place, but is by {self.places}")

    def width_out(self, width: int) -> int:
        """Keep D; a shift by D or more is refused, for at D it would do nothing and nobody would notice."""
        if self.places >= width:
            raise InputError(f"{self.name} needs vectors wider than {self.places}, but these have width {width}")
        return width

    def _apply(self, rows: Doubles) -> Doubles:
        return np.roll(rows, self.places, axis=1)


def _part(text: str) -> int | float | Fraction:
    return int(text) if text.isdecimal() else Fraction(text) if "/" in text else float(text)


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

    spec = "truncate"

    keep: int | float | Fraction = position(  # noqa: RUF009 - makes a field
        Fraction(2, 3), read=_part, takes="a number of dimensions or a fraction of them"
    )

    def __post_init__(self) -> None:
        whole = isinstance(self.keep, int) and self.keep >= 1
        if not whole and not 0 < self.keep < 1:  # written so that NaN is refused
            raise InputError(f"truncate must keep a whole number of dimensions or a fraction of 1, not {self.keep}")

    def width_out(self, width: int) -> int:
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

    spec = "permute"

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

    spec = "project"

    width: int | None = position(None, read=int, shown=False)
    seed: int = position(0, shown=False)

    def __post_init__(self) -> None:
        if self.width is not None and self.width < 1:
            raise InputError(f"project must be to at least 1 dimension, but is to {self.width}")
        if self.seed < 0:
            raise InputError(f"the seed of project must not be negative, but is {self.seed}")

    def width_out(self, width: int) -> int:
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

    spec = "tanh"

    gain: float = position(1.0, shown=False)

    def __post_init__(self) -> None:
        if not (isfinite(self.gain) and self.gain > 0):
            raise InputError(f"the gain of tanh must be positive, but is {self.gain}")

    def _apply(self, rows: Doubles) -> Doubles:
        return np.tanh(self.gain * rows)


@lru_cache(maxsize=4)  # one block after another asks for the same matrix
def _gaussian(width: int, width_out: int, seed: int) -> Doubles:
    matrix = np.random.default_rng(seed).standard_normal((width, width_out))
    matrix.setflags(write=False)
    return matrix


@dataclass(frozen=True)
class Rotate(SeededAttack):
    """Turn the space by an orthogonal matrix drawn uniformly (Haar).

    Examples
    --------
    >>> turned = Rotate(3)(np.eye(4, dtype=np.float32))
    >>> bool(np.allclose(turned @ turned.T, np.eye(4), atol=1e-6))
    True
    """

    spec = "rotate"

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

    spec = "scale"

    factor: float | None = position(2.0, none="rows", takes="a number or rows")
    """None draws a factor for each vector, log-normal."""

    def __post_init__(self) -> None:
        if self.factor is not None and not (isfinite(self.factor) and self.factor > 0):
            raise InputError(f"the factor of scale must be positive, but is {self.factor}")

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

    spec = "translate"

    length: float = position(0.5)

    def __post_init__(self) -> None:
        super().__post_init__()
        if not (isfinite(self.length) and self.length > 0):
            raise InputError(f"the length of translate must be positive, but is {self.length}")

    def _apply(self, rows: Doubles) -> Doubles:
        step = np.random.default_rng(self.seed).standard_normal(rows.shape[1])
        return np.asarray(rows + self.length * step / np.linalg.norm(step))


@lru_cache(maxsize=4)  # one block after another asks for the same matrix, and QR of a wide one takes a second
def _haar(width: int, seed: int) -> Doubles:
    q, r = np.linalg.qr(np.random.default_rng(seed).standard_normal((width, width)))
    q *= np.sign(np.diag(r))  # without the signs, Q would not be uniform
    q.setflags(write=False)
    return q


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

    spec = "noise"

    deviation: float = position(0.01)
    seed: int = position(0, shown=False)

    def __post_init__(self) -> None:
        if not (isfinite(self.deviation) and self.deviation > 0):
            raise InputError(f"the deviation of noise must be positive, but is {self.deviation}")
        if self.seed < 0:
            raise InputError(f"the seed of noise must not be negative, but is {self.seed}")

    def _apply(self, rows: Doubles) -> Doubles:
        moved = rows.copy()
        for row in moved:
            digest = blake2b(row.astype("<f4").tobytes(), digest_size=8).digest()
            rng = np.random.default_rng([self.seed, int.from_bytes(digest, "little")])
            row += self.deviation * rng.standard_normal(len(row))
        return moved


@dataclass(frozen=True)
class Round(RowAttack):
    """Round every coordinate of the unit vector to a few decimals.

    Examples
    --------
    >>> Round(1)(np.array([[0.62, 0.78]], dtype=np.float32)).round(4)
    array([[0.6, 0.8]], dtype=float32)
    """

    spec = "round"

    decimals: int = position(1)

    def __post_init__(self) -> None:
        if not 1 <= self.decimals <= 7:
            raise InputError(f"round must be to 1 to 7 decimals, but is to {self.decimals}")

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

    spec = "zero"

    below: float = position(0.005)

    def __post_init__(self) -> None:
        if not 0 < self.below < 1:
            raise InputError(f"zero must be below a number between 0 and 1, but is below {self.below}")

    def _apply(self, rows: Doubles) -> Doubles:
        return _or_the_largest(np.where(np.abs(rows) > self.below, rows, 0.0), rows)


def _or_the_largest(changed: Doubles, rows: Doubles) -> Doubles:
    """Where nothing of a row is left, keep its largest coordinate: a row without a direction teaches nothing."""
    empty = ~changed.any(axis=1) & rows.any(axis=1)
    largest = np.abs(rows[empty]).argmax(axis=1)
    changed[np.flatnonzero(empty), largest] = rows[empty, largest]
    return changed
