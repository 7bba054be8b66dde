"""What the attacks that treat every vector alike have in common, and no attack at all."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from regionmarker.benchmark.loot import Loot
from regionmarker.embeddings import as_floats, describe_bad_row
from regionmarker.errors import InputError
from regionmarker.protocols import Doubles, Encoder, Floats

_BLOCK = 4096  # rows at a time: the float64 working copy stays small however many rows there are


def integer(name: str, text: str) -> int:
    """Read a whole number of a spec.

    Examples
    --------
    >>> integer("shift", "100")
    100
    >>> integer("shift", "far")
    Traceback (most recent call last):
    ...
    regionmarker.errors.InputError: shift takes a whole number, not 'far'
    """
    try:
        return int(text)
    except ValueError:
        raise InputError(f"{name} takes a whole number, not {text!r}") from None


def number(name: str, text: str) -> float:
    """Read a number of a spec.

    Examples
    --------
    >>> number("tanh", "1.5")
    1.5
    """
    try:
        return float(text)
    except ValueError:
        raise InputError(f"{name} takes a number, not {text!r}") from None


class RowAttack(ABC):
    """Base of the attacks that treat every row alike, whatever its text; a subclass has :meth:`_apply` to write."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The spec that loads this attack again."""

    @classmethod
    @abstractmethod
    def from_spec(cls, rest: str) -> Self:
        """Make the attack from what stands after the colon of a spec."""

    def __call__(self, served: Floats, texts: Sequence[str] = ()) -> Floats:
        """Turn served vectors (n, D) into training targets (n, D'), rows of unit length; the texts do not matter."""
        rows = as_floats(served, what="served")
        if len(texts) not in (0, len(rows)):
            raise InputError(f"{self.name} was given {len(texts)} texts for {len(rows)} vectors")
        width = self.width_out(rows.shape[1])
        targets = np.empty((len(rows), width), dtype=np.float32)
        for start in range(0, len(rows), _BLOCK):
            block = rows[start : start + _BLOCK].astype(np.float64)
            _lengths(block, start)  # an attack may make something of nothing, and hide that it was nothing
            targets[start : start + _BLOCK] = _unit(self._apply(block), start)
        return targets

    def apply(self, loot: Loot, /) -> Loot:
        """Attack before training: every vector of the loot alike."""
        return loot.with_vectors(self(loot.vectors, loot.texts))

    def modify(self, model: Encoder, /) -> Encoder:
        """Attack after training: every answer of the model alike."""
        from regionmarker.benchmark.attacks.compose import AttackedModel

        return AttackedModel(model, self)

    def width_out(self, width: int) -> int:
        """Return D' for D, or say why such vectors cannot be attacked so."""
        return width

    @abstractmethod
    def _apply(self, rows: Doubles) -> Doubles:
        """Map a block, (b, D) to (b, D'); it is normalised afterwards."""


def _unit(rows: Doubles, first_row: int) -> Doubles:
    """Scale rows to unit length in float64."""
    return np.asarray(rows / _lengths(rows, first_row)[:, None])


def _lengths(rows: Doubles, first_row: int) -> Doubles:
    """Return the rows' lengths, (b,); a row without a direction is refused."""
    norms: Doubles = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    bad = ~(np.isfinite(norms) & (norms > 0))
    if bad.any():
        raise InputError(describe_bad_row(norms, bad, first_row))
    return norms


@dataclass(frozen=True)
class Nothing(RowAttack):
    """No attack: the control of every table.

    Examples
    --------
    >>> Nothing()(np.array([[0.6, 0.8]], dtype=np.float32))
    array([[0.6, 0.8]], dtype=float32)
    """

    name = "none"

    @classmethod
    def from_spec(cls, rest: str) -> Self:
        """Load ``none``, with nothing after the name."""
        if rest:
            raise InputError("the attack none takes nothing after its name: write none")
        return cls()

    def _apply(self, rows: Doubles) -> Doubles:
        return rows


@dataclass(frozen=True)
class SeededAttack(RowAttack):
    """Base of the attacks that one seed decides."""

    seed: int = 0

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise InputError(f"the seed of {type(self).__name__.lower()} must not be negative, but is {self.seed}")

    @property
    def name(self) -> str:
        """``NAME:SEED``."""
        return f"{type(self).__name__.lower()}:{self.seed}"

    @classmethod
    def from_spec(cls, rest: str) -> Self:
        """Load ``NAME`` or ``NAME:SEED``."""
        return cls(integer(cls.__name__.lower(), rest)) if rest else cls()
