"""What the attacks that look at the whole loot have in common: settings in their spec, and rows that lose direction."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import fields, replace
from typing import ClassVar, Self

import numpy as np

from regionmarker.benchmark.loot import Loot
from regionmarker.benchmark.settings import parse_settings
from regionmarker.embeddings import as_floats, normalised
from regionmarker.errors import InputError
from regionmarker.protocols import AnyArray, Floats

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


class LootAttack(Spec, ABC):
    """Base of the attacks with settings that look at the whole loot.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Every(LootAttack):
    ...     spec = "every"
    ...     step: int = 2
    ...     def apply(self, loot):
    ...         return loot.kept(np.arange(0, len(loot), self.step))
    >>> Every.from_spec("step=3"), Every(3).name, Every().name
    (Every(step=3), 'every:step=3', 'every')
    """

    @abstractmethod
    def apply(self, loot: Loot, /) -> Loot:
        """Return what is trained on; the loot itself stays as it is."""


def with_directions(loot: Loot, rows: AnyArray, *, attack: str) -> Loot:
    """Return the loot with these vectors (n, D') at unit length; rows that have no direction left are dropped.

    A thief cannot train on a row that the attack has taken to nothing, and need not: it has others.

    Examples
    --------
    >>> loot = Loot(("a", "b"), np.eye(2, dtype=np.float32))
    >>> with_directions(loot, np.array([[2.0, 0.0], [0.0, 0.0]]), attack="mine").texts
    ('a',)
    """
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows, dtype=np.float64))  # (n,)
    kept = ~(lengths < NO_DIRECTION)  # written so that NaN stays, and is refused below
    if not kept.any():
        raise InputError(f"{attack} leaves nothing of any vector: remove less, or give more texts")
    return loot.kept(kept).with_vectors(normalised(np.asarray(rows[kept], dtype=np.float32)))


def check_rows_of(loot: Loot, least: int, *, attack: str) -> None:
    """Refuse a loot of too few rows, and vectors that are zero or not finite.

    Examples
    --------
    >>> check_rows_of(Loot(("a",), np.ones((1, 2), dtype=np.float32)), 2, attack="mine")
    Traceback (most recent call last):
    ...
    regionmarker.errors.InputError: mine needs at least 2 texts, but there is 1
    """
    if len(loot) < least:
        there = "there is 1" if len(loot) == 1 else f"there are {len(loot)}"
        raise InputError(f"{attack} needs at least {least} text{'s' * (least > 1)}, but {there}")
    normalised(loot.vectors)


def ask_again(loot: Loot, texts: Sequence[str], *, attack: str) -> Floats:
    """Ask the provider for more vectors of the loot's width, (n, D)."""
    answers = as_floats(loot.ask(texts), what="served")
    if answers.shape != (len(texts), loot.vectors.shape[1]):
        raise InputError(
            f"{attack} asked for {len(texts)} vectors of width {loot.vectors.shape[1]} and was served "
            f"{answers.shape}: an attack that asks the provider again comes first in a list"
        )
    return answers
