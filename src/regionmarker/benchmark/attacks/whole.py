"""What the attacks that look at the whole loot have in common: settings in their spec, and rows that lose direction."""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import Field, fields
from typing import Any, ClassVar, Self

import numpy as np

from regionmarker.benchmark.attacks.rows import integer, number
from regionmarker.benchmark.loot import Loot
from regionmarker.embeddings import as_floats, normalised
from regionmarker.errors import InputError
from regionmarker.protocols import AnyArray, Floats

NO_DIRECTION = 1e-4
"""A row shorter than this, after it had unit length, is what rounding left of nothing."""

_SETTING = re.compile(r"([a-z_]+)=([^,]*)(?:,|$)")


class LootAttack(ABC):
    """Base of the attacks with settings: a frozen dataclass whose fields are what a spec may set.

    ``NAME`` has the defaults, ``NAME:seed=3,share=0.1`` sets two. The field of text that :attr:`last` names takes
    what is left after the settings, commas and colons included.

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

    spec: ClassVar[str]
    """What stands before the colon."""

    last: ClassVar[str | None] = None

    @abstractmethod
    def apply(self, loot: Loot, /) -> Loot:
        """Return what is trained on; the loot itself stays as it is."""

    @property
    def name(self) -> str:
        """The spec that loads this attack again: the settings that are not the defaults, in order."""
        parts = [
            f"{field.name}={_written(getattr(self, field.name))}"
            for field in self._settings()
            if getattr(self, field.name) != field.default
        ]
        settings = ",".join(part for part in (*parts, self._left()) if part)
        return f"{self.spec}:{settings}" if settings else self.spec

    def _left(self) -> str:
        """Return what stands after the settings."""
        return ""

    @classmethod
    def from_spec(cls, rest: str) -> Self:
        """Make the attack from what stands after the colon of a spec."""
        settings = {field.name: field for field in cls._settings()}
        given: dict[str, Any] = {}
        while found := _SETTING.match(rest):
            key, text = found.groups()
            if key not in settings:
                choices = ", ".join(settings) or "none"
                raise InputError(f"{cls.spec} has no setting {key}: it has {choices}")
            given[key] = _read(f"{key} of {cls.spec}", settings[key], text)
            rest = rest[found.end() :]
        if rest and cls.last is None:
            raise InputError(f"{cls.spec} cannot read {rest[:40]!r}: write {cls.spec}:SETTING=VALUE,...")
        if rest and cls.last is not None:
            given[cls.last] = rest
        return cls(**given)

    @classmethod
    def _settings(cls) -> list[Field[Any]]:
        return [field for field in fields(cls) if field.name != cls.last]  # type: ignore[arg-type]

    def _check(self, holds: bool, message: str) -> None:
        """Refuse a setting."""
        if not holds:
            raise InputError(f"{self.spec}: {message}")


def _written(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def _read(what: str, field: Field[Any], text: str) -> Any:
    if field.type == "int":
        return integer(what, text)
    return number(what, text) if field.type == "float" else text


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
        raise InputError(f"{attack} needs at least {least} texts, but {there}")
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
