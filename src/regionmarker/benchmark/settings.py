"""The open choices of a defense or an attack, as they stand in a spec: ``NAME:key=value,key=value,flag``.

One dataclass says which keys there are; the type of a field's default is the type of its value. A flag is a
field whose default is False, and is given by its name alone.
"""

from __future__ import annotations

from dataclasses import Field, fields
from typing import TYPE_CHECKING, Any, TypeVar

from regionmarker.errors import InputError

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

S = TypeVar("S", bound="DataclassInstance")


def parse_settings(kind: type[S], scheme: str, rest: str) -> S:
    """Read what stands after the colon of a spec.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Settings:
    ...     words: int = 20
    ...     released: bool = False
    >>> parse_settings(Settings, "example", "words=40,released")
    Settings(words=40, released=True)
    >>> parse_settings(Settings, "example", "word=40")
    Traceback (most recent call last):
    ...
    regionmarker.errors.InputError: example has no option 'word': give words=, released
    """
    known = {field.name: field for field in fields(kind)}
    given: dict[str, Any] = {}
    for part in filter(None, rest.split(",")):
        key, equals, text = part.partition("=")
        if key not in known:
            raise InputError(f"{scheme} has no option {key!r}: give {_choices(kind)}")
        if key in given:
            raise InputError(f"{scheme} was given {key} twice")
        given[key] = _value(scheme, known[key], text if equals else None)
    return kind(**given)


def settings_spec(scheme: str, settings: DataclassInstance) -> str:
    """Return the spec that gives these settings: only what differs from the defaults is named.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> @dataclass(frozen=True)
    ... class Settings:
    ...     words: int = 20
    ...     released: bool = False
    >>> settings_spec("example", Settings(words=40, released=True)), settings_spec("example", Settings())
    ('example:words=40,released', 'example')
    """
    parts = []
    for field in fields(settings):
        value = getattr(settings, field.name)
        if value != field.default:
            parts.append(field.name if value is True else f"{field.name}={value}")
    return f"{scheme}:{','.join(parts)}" if parts else scheme


def _value(scheme: str, field: Field[Any], text: str | None) -> Any:
    if isinstance(field.default, bool):
        if text is not None:
            raise InputError(f"{scheme}: {field.name} is given by its name alone, without a value")
        return True
    if not text:
        raise InputError(f"{scheme}: {field.name} needs a value: write {field.name}={field.default}")
    try:
        kind_of_value: Any = type(field.default)
        return kind_of_value(text)
    except ValueError:
        kind = "whole number" if isinstance(field.default, int) else "number"
        raise InputError(f"{scheme}: {field.name} takes a {kind}, not {text!r}") from None


def _choices(kind: type[DataclassInstance]) -> str:
    return ", ".join(field.name + ("" if field.default is False else "=") for field in fields(kind)) or "none"
