"""Parts by name: the built-in ones, and those that other packages bring by entry points."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from regionmarker.errors import InputError, RegionMarkerError
from regionmarker.specs.grammar import split_options

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


@dataclass(frozen=True)
class Registry:
    """What may be loaded by name.

    Another package adds parts of its own by an entry point of the registry's group: its name stands before the colon,
    and it is a class with ``from_spec(text)``, or anything that may be called with what stands after the colon.

    Attributes
    ----------
    kind
        What errors call a part: "attack".
    group
        The entry points' group.
    built_in
        Name to part, or to its ``module:attribute`` where it shall load when asked for. Named in the source and not in
        pyproject.toml: parts work from a source tree that nobody installed.
    forms
        What follows a name in lists of choices, such as ``":NAME"``.
    protocol, promise
        What every part is, as a protocol and in words; a part that is not is refused.
    options_behind
        Whether options stand behind the spec and are handed over as keyword arguments.

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
    built_in: Mapping[str, str | Callable[..., Any]]
    forms: Mapping[str, str] | None = None
    protocol: Any = None
    promise: str = ""
    options_behind: bool = False

    def known(self) -> list[str]:
        """Return what may stand before the colon: the built-in parts, then those of other packages."""
        from importlib.metadata import entry_points  # it brings the network along, which marking does not need

        others = {point.name for point in entry_points(group=self.group)}
        return [*self.built_in, *sorted(others - self.built_in.keys())]

    def load(self, spec: object, **options: Any) -> Any:
        """Load a part by its spec; an object that is one already is returned as it is."""
        if not isinstance(spec, str):
            return self._checked(spec, options)
        spec, written = split_options(spec) if self.options_behind else (spec, {})
        if twice := sorted(written.keys() & options.keys()):
            raise InputError(
                f"the option {twice[0]} stands in the {self.kind}'s spec and was given besides: give it once"
            )
        head, _, text = spec.partition(":")
        found = self.find(head)
        try:
            part = getattr(found, "from_spec", found)(text, **written, **options)
        except TypeError as error:
            unknown = re.search(r"unexpected keyword argument '(\w+)'", str(error)) if self.options_behind else None
            if unknown is None:
                raise
            raise InputError(f"the {self.kind} {head!r} has no option {unknown[1]}") from None
        if self.protocol is not None and not isinstance(part, self.protocol):
            raise InputError(f"the {self.kind} {head!r} must have {self.promise}, but is a {type(part).__name__}")
        return part

    def _checked(self, part: object, options: Mapping[str, Any]) -> object:
        """Return an object that was given in place of a spec."""
        if self.protocol is None or not isinstance(part, self.protocol) or (self.options_behind and options):
            article = "an" if self.kind[0] in "aeiou" else "a"
            alone = ", without further options," if self.options_behind else ","
            raise InputError(
                f"{article} {self.kind} is a spec or an object with {self.promise}{alone} "
                f"but a {type(part).__name__} was given"
            )
        return part

    def check(self, spec: str) -> None:
        """Refuse a spec whose name nobody knows, without loading anything.

        Examples
        --------
        >>> Registry("counter", "example.counters", {"plain": "collections:Counter"}).check("plain:aab")
        """
        head = (split_options(spec)[0] if self.options_behind else spec).partition(":")[0]
        if head not in self.known():
            raise self._unknown(head)

    def _unknown(self, head: str) -> InputError:
        return InputError(f"unknown {self.kind}{_quoted(head)}: give {self._choices()}")

    def find(self, head: str) -> Any:
        """Return the class or function that a name stands for, without calling it."""
        from importlib.metadata import EntryPoint, entry_points

        if head in self.built_in:
            part = self.built_in[head]
            return EntryPoint(head, part, self.group).load() if isinstance(part, str) else part
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
