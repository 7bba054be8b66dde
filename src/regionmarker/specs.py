"""A spec string becomes a part: one mechanism for encoders, defenses, attacks and stealers.

A spec is ``NAME`` or ``NAME:REST``. Another package adds parts of its own by an entry point of the registry's group:
its name stands before the colon, and it is a class with ``from_spec(rest)``, or anything that may be called with what
stands after the colon.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from regionmarker.errors import InputError, RegionMarkerError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


@dataclass(frozen=True)
class Registry:
    """What may be loaded by name.

    Attributes
    ----------
    kind
        What errors call a part: "attack".
    group
        The entry points' group.
    built_in
        Name to ``module:attribute``. Named in the source and not in pyproject.toml: parts work from a source tree that
        nobody installed, and load when asked for.
    forms
        What follows a name in lists of choices, such as ``":NAME"``.

    Examples
    --------
    >>> counters = Registry("counter", "example.counters", {"plain": "collections:Counter"})
    >>> counters.load("plain:aab")
    Counter({'a': 2, 'b': 1})
    >>> counters.load("fancy")
    Traceback (most recent call last):
    ...
    regionmarker.errors.InputError: unknown counter 'fancy': give plain
    """

    kind: str
    group: str
    built_in: Mapping[str, str]
    forms: Mapping[str, str] | None = None

    def known(self) -> list[str]:
        """Return what may stand before the colon: the built-in parts, then those of other packages."""
        from importlib.metadata import entry_points  # it brings the network along, which marking does not need

        others = {point.name for point in entry_points(group=self.group)}
        return [*self.built_in, *sorted(others - self.built_in.keys())]

    def load(self, spec: str, **options: Any) -> Any:
        """Load a part by its spec."""
        head, _, rest = spec.partition(":")
        found = self.find(head)
        return getattr(found, "from_spec", found)(rest, **options)

    def check(self, spec: str) -> None:
        """Refuse a spec whose name nobody knows, without loading anything.

        Examples
        --------
        >>> Registry("counter", "example.counters", {"plain": "collections:Counter"}).check("plain:aab")
        """
        head = spec.partition(":")[0]
        if head not in self.known():
            raise self._unknown(head)

    def _unknown(self, head: str) -> InputError:
        return InputError(f"unknown {self.kind}{_quoted(head)}: give {self._choices()}")

    def find(self, head: str) -> Any:
        """Return the class or function that a name stands for, without calling it."""
        from importlib.metadata import EntryPoint, entry_points

        if head in self.built_in:
            return EntryPoint(head, self.built_in[head], self.group).load()
        for point in entry_points(group=self.group, name=head):
            return self._load_plugin(point)
        raise self._unknown(head)

    def _load_plugin(self, point: EntryPoint) -> Any:
        try:
            return point.load()
        except RegionMarkerError:
            raise
        except Exception as error:  # anything at all may go wrong in another's module
            package = point.dist.name if point.dist else "an installed package"
            raise InputError(f"the {self.kind} {point.name!r} of {package} cannot be loaded: {error}") from error

    def _choices(self) -> str:
        return ", ".join(name + (self.forms or {}).get(name, "") for name in self.known())


def _quoted(head: str) -> str:
    """Quote a name only if it looks like one: a mistyped spec may hold a secret."""
    return f" {head!r}" if re.fullmatch(r"[A-Za-z][A-Za-z0-9_.-]{0,30}", head) else ""


def check_range(
    name: str, value: object, low: float, high: float, *, open_left: bool = False, open_right: bool = False
) -> None:
    """Refuse a parameter that is not a number between ``low`` and ``high``; a whole number where ``low`` is one.

    Examples
    --------
    >>> check_range("ratio", 1.5, 0.0, 1.0, open_left=True)
    Traceback (most recent call last):
    ...
    regionmarker.errors.InputError: ratio is 1.5, but must lie in (0.0, 1.0]
    """
    whole = isinstance(low, int)
    if isinstance(value, bool) or not isinstance(value, int | np.integer if whole else int | float | np.number):
        raise InputError(f"{name} must be a {'whole ' if whole else ''}number, not {value!r}")
    number = float(value)
    inside = (low < number if open_left else low <= number) and (number < high if open_right else number <= high)
    if not inside:
        left, right = "(" if open_left else "[", ")" if open_right else "]"
        raise InputError(f"{name} is {value!r}, but must lie in {left}{low}, {high}{right}")
