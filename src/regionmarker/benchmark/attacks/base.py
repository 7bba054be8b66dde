"""What the attacks that treat every vector alike have in common, and no attack at all."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import ClassVar, Self

import numpy as np

from regionmarker.benchmark.protocols import StolenData
from regionmarker.benchmark.settings import parse_settings
from regionmarker.errors import InputError
from regionmarker.vectors import AnyArray, Doubles, Encoder, Floats, as_floats, describe_bad_row, normalised

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

    def apply(self, stolen: StolenData, /) -> StolenData:
        """Attack before training: every vector of the stolen data alike."""
        return stolen.with_vectors(self(stolen.vectors, stolen.texts))

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


# What the attacks that look at all of the stolen data have in common.

_SETTING = re.compile(r"[a-z_]+=")

NO_DIRECTION = 1e-4
"""A row shorter than this, after it had unit length, is what rounding left of nothing."""


class Spec:
    """Base of parts whose settings stand in their spec: a frozen dataclass, one field a setting.

    ``NAME`` has the defaults, ``NAME:seed=3,share=0.1`` sets two. The field that :attr:`last` names takes what is left
    after the settings, commas and colons included.
    """

    spec: ClassVar[str]
    """What stands before the colon."""

    last: ClassVar[str | None] = None

    @property
    def name(self) -> str:
        """The spec that loads it again: the settings that are not the defaults, in order."""
        parts = [
            _written(field.name, getattr(self, field.name))
            for field in fields(self)  # type: ignore[arg-type]
            if field.name != self.last and getattr(self, field.name) != field.default
        ]
        settings = ",".join(part for part in (*parts, self._left()) if part)
        return f"{self.spec}:{settings}" if settings else self.spec

    @classmethod
    def from_spec(cls, rest: str) -> Self:
        """Make it from what stands after the colon of a spec."""
        parts = rest.split(",")
        count = len(parts)
        if cls.last is not None:
            count = next((place for place, part in enumerate(parts) if not _SETTING.match(part)), count)
        found: Self = parse_settings(cls, cls.spec, ",".join(parts[:count]))  # type: ignore[type-var]
        left = ",".join(parts[count:])
        return replace(found, **{cls.last: left}) if cls.last is not None and left else found  # type: ignore[type-var]

    def _left(self) -> str:
        """Return what stands after the settings."""
        return ""

    def _check(self, holds: bool, message: str) -> None:
        """Refuse a setting."""
        if not holds:
            raise InputError(f"{self.spec}: {message}")


def _written(key: str, value: object) -> str:
    if value is True:
        return key
    return f"{key}={value:g}" if isinstance(value, float) else f"{key}={value}"


class WholeDataAttack(Spec, ABC):
    """Base of the attacks with settings that look at all of the stolen data.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Every(WholeDataAttack):
    ...     spec = "every"
    ...     step: int = 2
    ...     def apply(self, stolen):
    ...         return stolen.kept(np.arange(0, len(stolen), self.step))
    >>> Every.from_spec("step=3"), Every(3).name, Every().name
    (Every(step=3), 'every:step=3', 'every')
    """

    @abstractmethod
    def apply(self, stolen: StolenData, /) -> StolenData:
        """Return what is trained on; the stolen data itself stays as it is."""


def with_directions(stolen: StolenData, rows: AnyArray, *, attack: str) -> StolenData:
    """Return the stolen data with these vectors (n, D') at unit length; rows that have no direction left are dropped.

    A thief cannot train on a row that the attack has taken to nothing, and need not: it has others.

    Examples
    --------
    >>> stolen = StolenData(("a", "b"), np.eye(2, dtype=np.float32))
    >>> with_directions(stolen, np.array([[2.0, 0.0], [0.0, 0.0]]), attack="mine").texts
    ('a',)
    """
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))  # (n,)
    kept = ~(lengths < NO_DIRECTION)  # written so that NaN stays, and is refused below
    if not kept.any():
        raise InputError(f"{attack} leaves nothing of any vector: remove less, or give more texts")
    return stolen.kept(kept).with_vectors(normalised(np.asarray(rows[kept], dtype=np.float32)))


def check_rows_of(stolen: StolenData, least: int, *, attack: str) -> None:
    """Refuse stolen data of too few rows, and vectors that are zero or not finite.

    Examples
    --------
    >>> check_rows_of(StolenData(("a",), np.ones((1, 2), dtype=np.float32)), 2, attack="mine")
    Traceback (most recent call last):
    ...
    regionmarker.errors.InputError: mine needs at least 2 texts, but there is 1
    """
    if len(stolen) < least:
        there = "there is 1" if len(stolen) == 1 else f"there are {len(stolen)}"
        raise InputError(f"{attack} needs at least {least} text{'s' * (least > 1)}, but {there}")
    normalised(stolen.vectors)


def ask_again(stolen: StolenData, texts: Sequence[str], *, attack: str) -> Floats:
    """Ask the provider for more vectors of the stolen data's width, (n, D)."""
    answers = as_floats(stolen.ask(texts), what="served")
    if answers.shape != (len(texts), stolen.vectors.shape[1]):
        raise InputError(
            f"{attack} asked for {len(texts)} vectors of width {stolen.vectors.shape[1]} and was served "
            f"{answers.shape}: an attack that asks the provider again comes first in a list"
        )
    return answers
