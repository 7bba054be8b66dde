"""What stands after the name of a spec: positions, options and a rest, as the fields of a dataclass declare them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import numpy as np

from regionmarker.errors import InputError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

T = TypeVar("T", bound="DataclassInstance")

_OPTION = re.compile(r"[a-z_]+=")
_LAST_OPTION = re.compile(r"^(?P<before>.*),(?P<name>[a-z][a-z0-9_]*)=(?P<value>[^,]*)$", re.DOTALL)
_WORDS = {"true": True, "false": False, "none": None}


def position(
    default: Any, *, read: Callable[[str], Any] | None = None, takes: str = "", none: str = "", shown: bool = True
) -> Any:
    """Declare a field that stands at its place after the name, between colons.

    Parameters
    ----------
    default
        What it is where nothing stands there.
    read
        Makes the value of its text, and raises ValueError; the default's type if not given.
    takes
        What the error says that it takes.
    none
        The word that stands for None.
    shown
        Whether :func:`write` names it at its default, too.
    """
    return field(
        default=default, metadata={"position": True, "read": read, "takes": takes, "none": none, "shown": shown}
    )


def rest(default: Any = "", *, missing: str = "") -> Any:
    """Declare the field that takes what is left after the options; ``missing`` is the error where nothing is."""
    return field(default=default, metadata={"rest": True, "missing": missing})


def parse(kind: type[T], name: str, text: str) -> T:
    """Make a dataclass of what stands after the colon of a spec.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Settings:
    ...     words: int = 20
    ...     released: bool = False
    >>> parse(Settings, "example", "words=40,released")
    Settings(words=40, released=True)
    >>> parse(Settings, "example", "word=40")
    Traceback (most recent call last):
    ...
    regionmarker.errors.InputError: example has no option 'word': give words=, released
    """
    places, options, left = _declared(kind)
    if text and not (places or options or left):
        raise InputError(f"{name} takes nothing after its name: write {name}")
    given: dict[str, Any] = {}
    parts = text.split(",") if options or left else [text]
    if places:
        given |= _read_positions(name, places, parts.pop(0))
    if left is not None:
        count = next((place for place, part in enumerate(parts) if not _OPTION.match(part)), len(parts))
        parts, found = parts[:count], ",".join(parts[count:])
        if not found and left.metadata["missing"]:
            raise InputError(f"{name}: {left.metadata['missing']}")
        given |= {left.name: found} if found else {}
    for part in filter(None, parts):
        key, equals, value = part.partition("=")
        if key not in options:
            raise InputError(f"{name} has no option {key!r}: give {_choices(options)}")
        if key in given:
            raise InputError(f"{name} was given {key} twice")
        given[key] = _read_option(name, options[key], value if equals else None)
    return kind(**given)


def short(number: float) -> str:
    """Write a number as briefly as it can be read again.

    Examples
    --------
    >>> short(8.0), short(0.123456789)
    ('8', '0.123456789')
    """
    return brief if float(brief := f"{number:g}") == number else repr(number)


def write(name: str, part: DataclassInstance, *, number: Callable[[float], str] = short) -> str:
    """Return the spec that gives this part: options that are at their defaults are not named.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Settings:
    ...     words: int = 20
    ...     released: bool = False
    >>> write("example", Settings(words=40, released=True)), write("example", Settings())
    ('example:words=40,released', 'example')
    """
    places, options, left = _declared(type(part))
    shown = [_written(one, getattr(part, one.name), number) for one in places]
    while shown and not places[len(shown) - 1].metadata["shown"] and _at_default(part, places[len(shown) - 1]):
        shown.pop()
    parts = [":".join(shown)]
    for one in options.values():
        value = getattr(part, one.name)
        if not _at_default(part, one):
            parts.append(one.name if value is True else f"{one.name}={_written(one, value, number)}")
    if left is not None:
        value = getattr(part, left.name)
        parts.append(str(getattr(value, "name", value)))
    text = ",".join(filter(None, parts))
    return f"{name}:{text}" if text else name


class Spec:
    """Base of parts that are dataclasses and whose fields stand in their spec.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Repeat(Spec):
    ...     spec = "repeat"
    ...     times: int = position(2)
    >>> Repeat.from_spec("3"), Repeat().name
    (Repeat(times=3), 'repeat:2')
    """

    spec: ClassVar[str]
    """What stands before the colon."""

    @property
    def name(self) -> str:
        """The spec that loads it again."""
        return write(self.spec, self)  # type: ignore[arg-type]

    @classmethod
    def from_spec(cls, text: str) -> Self:
        """Make it from what stands after the colon of a spec."""
        return parse(cls, cls.spec, text)  # type: ignore[type-var]

    def _check(self, holds: bool, message: str) -> None:
        if not holds:
            raise InputError(f"{self.spec}: {message}")


def _declared(kind: type[Any]) -> tuple[list[Field[Any]], dict[str, Field[Any]], Field[Any] | None]:
    """Return the positions, the options and the rest of a part."""
    declared = fields(kind)
    places = [one for one in declared if "position" in one.metadata]
    left = next((one for one in declared if "rest" in one.metadata), None)
    return places, {one.name: one for one in declared if not one.metadata}, left


def _read_positions(name: str, places: list[Field[Any]], text: str) -> dict[str, Any]:
    values = text.split(":")
    if len(values) > len(places):
        form = ":".join(one.name.upper() for one in places)
        raise InputError(f"{name} takes {form} after its name, but {text!r} was given")
    return {
        one.name: None if value == one.metadata["none"] else _read(name, one, value)
        for one, value in zip(places, values, strict=False)
        if value
    }


def _read_option(name: str, one: Field[Any], text: str | None) -> Any:
    if isinstance(one.default, bool):
        if text is not None:
            raise InputError(f"{name}: {one.name} is given by its name alone, without a value")
        return True
    if not text:
        raise InputError(f"{name}: {one.name} needs a value: write {one.name}={one.default}")
    return _read(name, one, text)


def _read(name: str, one: Field[Any], text: str) -> Any:
    read: Any = one.metadata.get("read") or type(one.default)
    try:
        return read(text)
    except (ValueError, ZeroDivisionError):
        takes = one.metadata.get("takes") or ("a whole number" if read is int else "a number")
        raise InputError(f"{name}: {one.name} takes {takes}, not {text!r}") from None


def _written(one: Field[Any], value: Any, number: Callable[[float], str]) -> str:
    if value is None:
        return str(one.metadata.get("none", ""))
    return number(value) if isinstance(value, float) else str(value)


def _at_default(part: DataclassInstance, one: Field[Any]) -> bool:
    return one.default is not MISSING and bool(getattr(part, one.name) == one.default)


def _choices(options: Mapping[str, Field[Any]]) -> str:
    return ", ".join(name + ("" if one.default is False else "=") for name, one in options.items()) or "none"


def split_options(spec: str) -> tuple[str, dict[str, Any]]:
    """Part a spec from the options behind it; values are numbers, true, false, none, or else strings.

    Examples
    --------
    >>> split_options("head:openai:http://host/v1#small,hidden=0,start=random")
    ('head:openai:http://host/v1#small', {'hidden': 0, 'start': 'random'})
    """
    options: dict[str, Any] = {}
    while found := _LAST_OPTION.match(spec):
        spec, name = found["before"], found["name"]
        if name in options:
            raise InputError(f"the option {name} stands twice in the spec: give it once")
        options[name] = _value(found["value"])
    return spec, dict(reversed(options.items()))


def _value(text: str) -> Any:
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            pass
    return text


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


def from_known(kind: type[T], document: Mapping[str, Any]) -> T:
    """Make a dataclass from a document that may hold more than this version knows.

    Examples
    --------
    >>> from dataclasses import make_dataclass
    >>> from_known(make_dataclass("Size", ["width"]), {"width": 3, "colour": "red"})
    Size(width=3)
    """
    known = {one.name for one in fields(kind)}
    return kind(**{name: value for name, value in document.items() if name in known})
