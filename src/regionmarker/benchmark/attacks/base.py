"""The two kinds of attack before the training, and how attacks are put together around it.

A :class:`RowAttack` treats every vector alike, whatever its text: it may disguise a trained model as well. A
:class:`WholeDataAttack` looks at all of the stolen data together: it may drop rows, and ask the provider again.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from regionmarker.benchmark.protocols import DataAttack, ModelAttack, StolenData
from regionmarker.errors import InputError
from regionmarker.specs import Spec, position, rest
from regionmarker.vectors import AnyArray, Doubles, Encoder, Floats, as_floats, describe_bad_row, normalised

_BLOCK = 4096  # rows at a time: the float64 working copy stays small however many rows there are

NO_DIRECTION = 1e-4
"""A row shorter than this, after it had unit length, is what rounding left of nothing."""


# ---- every row alike


class RowAttack(Spec, ABC):
    """Base of the attacks that treat every row alike; a subclass has :meth:`_apply` to write."""

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
            mapped = self._apply(block)
            targets[start : start + _BLOCK] = mapped / _lengths(mapped, start)[:, None]
        return targets

    def apply(self, stolen: StolenData, /) -> StolenData:
        """Attack before training: every vector of the stolen data alike."""
        return stolen.with_vectors(self(stolen.vectors, stolen.texts))

    def modify(self, model: Encoder, /) -> Encoder:
        """Attack after training: every answer of the model alike."""
        return AttackedModel(model, self)

    def width_out(self, width: int) -> int:
        """Return D' for D, or say why such vectors cannot be attacked so."""
        return width

    @abstractmethod
    def _apply(self, rows: Doubles) -> Doubles:
        """Map a block, (b, D) to (b, D'); it is normalised afterwards."""


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

    spec = "none"

    def _apply(self, rows: Doubles) -> Doubles:
        return rows


@dataclass(frozen=True)
class SeededAttack(RowAttack):
    """Base of the attacks that one seed decides."""

    seed: int = position(0)

    def __post_init__(self) -> None:
        if self.seed < 0:
            raise InputError(f"the seed of {self.spec} must not be negative, but is {self.seed}")


# ---- all of the stolen data together


class WholeDataAttack(Spec, ABC):
    """Base of the attacks with options that look at all of the stolen data.

    Examples
    --------
    >>> @dataclass(frozen=True)
    ... class Every(WholeDataAttack):
    ...     spec = "every"
    ...     step: int = 2
    ...     def apply(self, stolen):
    ...         return stolen.kept(np.arange(0, len(stolen), self.step))
    >>> Every.from_spec("step=3"), Every(3).name, Every().name
    (Every(step=3), 'every:step=3', 'every')
    """

    comes_first: ClassVar[bool] = False
    """Whether it takes vectors from the provider alone, so that what was done before it would be lost."""

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


# ---- around the training


class Composed:
    """Attacks in order: the first sees the served vectors, each of the others what the one before it made.

    Examples
    --------
    >>> Composed([Nothing(), Nothing()]).name
    'none then none'
    """

    def __init__(self, attacks: Iterable[DataAttack]) -> None:
        self.attacks = tuple(attacks)

    @property
    def name(self) -> str:
        return " then ".join(attack.name for attack in self.attacks)

    def __repr__(self) -> str:
        return f"Composed({list(self.attacks)!r})"

    def apply(self, stolen: StolenData, /) -> StolenData:
        for attack in self.attacks:
            stolen = attack.apply(stolen)
        return stolen

    def __call__(self, served: Floats, texts: Sequence[str] = ()) -> Floats:
        """Apply all of them to vectors alone, where each treats every vector alike."""
        for attack in self.attacks:
            served = _row_attack(attack)(served, texts)
        return served


class AttackedModel:
    """A model whose owner disguises its answers: the attack comes after the training, not before it.

    Examples
    --------
    >>> from regionmarker import load_encoder
    >>> AttackedModel(load_encoder("wordllama"), "truncate:0.5").encode(["a text"]).shape
    (1, 128)
    """

    def __init__(self, model: Encoder, attack: str | DataAttack | ModelAttack) -> None:
        from regionmarker.benchmark.attacks import load_attack  # the table, which names the classes of this file

        self.model, self.attack = model, load_attack(attack)

    @property
    def name(self) -> str:
        return f"{self.model.name} then {self.attack.name}"

    def __repr__(self) -> str:
        return f"AttackedModel({self.model!r}, {self.attack!r})"

    def encode(self, texts: Sequence[str], /) -> Floats:
        return _row_attack(self.attack)(self.model.encode(texts), texts)


@dataclass(frozen=True)
class After(Spec):
    """Disguise the trained model and not what it is trained on: ``after:rotate:3``.

    A copy of rotated vectors and a rotated copy answer alike, and the second costs no further training.

    Examples
    --------
    >>> After.from_spec("truncate:0.5").name
    'after:truncate:0.5'
    >>> After.from_spec("cse")
    Traceback (most recent call last):
    ...
    regionmarker.errors.InputError: cse looks at all of the stolen data: it works before training only
    """

    spec = "after"

    attack: str = rest(missing="name the attack: after:rotate:0")

    def __post_init__(self) -> None:
        from regionmarker.benchmark.attacks import load_attack  # the table, which names this class

        _row_attack(load_attack(self.attack))

    def modify(self, model: Encoder, /) -> Encoder:
        return AttackedModel(model, self.attack)


def _row_attack(attack: DataAttack | ModelAttack) -> Callable[[Floats, Sequence[str]], Floats]:
    if not callable(attack):
        raise InputError(f"{attack.name} looks at all of the stolen data: it works before training only")
    return attack


@dataclass(frozen=True)
class AttackPlan:
    """What is done before the training, and what after it."""

    before: DataAttack
    after: tuple[ModelAttack, ...] = ()

    def apply(self, stolen: StolenData) -> StolenData:
        return self.before.apply(stolen)

    def modify(self, model: Encoder) -> Encoder:
        for attack in self.after:
            model = attack.modify(model)
        return model
