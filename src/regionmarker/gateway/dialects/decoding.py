"""What all dialects read alike: a body becomes a struct, texts become inputs, and complaints become refusals.

A complaint names places and types, never values: what a client sent may be a customer's text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TypeVar

import msgspec

from regionmarker.gateway.errors import ApiError, bad_request
from regionmarker.gateway.settings import MOST_INPUTS

T = TypeVar("T")
_PARAM = re.compile(r"at `\$\.?(\w+)")
_UNKNOWN = re.compile(r"unknown field `(.*)`", re.DOTALL)
_MISSING = re.compile(r"missing required field `(\w+)`")
_ENDS = 512  # letters
_LARGE = 1 << 16  # bytes of a body
_CHOICE = "Invalid enum value"  # which the decoder repeats


def decode_body(
    decoder: msgspec.json.Decoder[T], body: bytes | bytearray, choices: Mapping[str, Sequence[str]] | None = None
) -> T:
    """Decode a request's body, or raise an ``ApiError`` that says what is wrong with it.

    Parameters
    ----------
    decoder, body
        Reads it; what is read.
    choices
        What may be chosen in fields that take one of a few words.

    Examples
    --------
    >>> class Request(msgspec.Struct, forbid_unknown_fields=True):
    ...     size: int
    >>> decode_body(msgspec.json.Decoder(Request), b'{"size": "large"}')
    Traceback (most recent call last):
    ...
    regionmarker.gateway.errors.ApiError: 'size' cannot be used: expected 'int', got 'str'
    """
    try:
        if choices and len(body) > _LARGE:
            _check_lengths(body, choices)
        return decoder.decode(body)
    except msgspec.ValidationError as error:
        raise _explain(_shortened(str(error)), choices or {}) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise bad_request("the body of the request is not valid JSON", code="invalid_json") from None


def _check_lengths(body: bytes | bytearray, choices: Mapping[str, Sequence[str]]) -> None:
    """Refuse a choice of many letters before the decoder sees it: it would quote and repeat all of them."""
    found = _glance(tuple(choices)).decode(body)
    for name in choices:
        if len(getattr(found, name)) > _ENDS:
            raise _not_among(name, choices[name])


@cache
def _glance(names: tuple[str, ...]) -> msgspec.json.Decoder[msgspec.Struct]:
    """Return what finds a few fields of a body and makes nothing of them."""
    return msgspec.json.Decoder(msgspec.defstruct("Glance", [(name, msgspec.Raw, msgspec.Raw()) for name in names]))


def _shortened(complaint: str) -> str:
    """Return a complaint's beginning and its end: between them it may repeat megabytes of what a client sent."""
    return complaint if len(complaint) <= 2 * _ENDS else complaint[:_ENDS] + complaint[-_ENDS:]


def _explain(complaint: str, choices: Mapping[str, Sequence[str]]) -> ApiError:
    """Put a complaint of the decoder into OpenAI's words."""
    if missing := _MISSING.search(complaint):
        return bad_request(
            f"you must provide the parameter '{missing[1]}'", missing[1], code="missing_required_parameter"
        )
    if unknown := _UNKNOWN.search(complaint):
        name = unknown[1][:64]
        return bad_request(f"unrecognised request argument supplied: {name}", name, code="unknown_parameter")
    param = _PARAM.search(complaint)
    if param is None:
        return bad_request("the body of the request must be a JSON object", code="invalid_json")
    if param[1] in choices:
        return _not_among(param[1], choices[param[1]])
    plain = "it has no such value" if _CHOICE in complaint else complaint.partition(" - at ")[0].replace("`", "'")
    return bad_request(f"'{param[1]}' cannot be used: {plain[:1].lower()}{plain[1:]}", param[1], code="invalid_type")


def _not_among(param: str, choices: Sequence[str]) -> ApiError:
    *first, last = (f"'{choice}'" for choice in choices)
    named = f"{', '.join(first)} or {last}" if first else last
    return bad_request(f"'{param}' must be {named}", param)


def check_inputs(inputs: Sequence[object], param: str = "input") -> None:
    """Refuse no inputs, too many of them, and empty ones.

    Examples
    --------
    >>> check_inputs(["a text", ""], "texts")
    Traceback (most recent call last):
    ...
    regionmarker.gateway.errors.ApiError: 'texts[1]' must not be empty
    """
    if not inputs:
        raise bad_request(f"'{param}' must not be empty", param)
    if len(inputs) > MOST_INPUTS:
        raise bad_request(f"'{param}' must hold at most {MOST_INPUTS} inputs, but holds {len(inputs)}", param)
    if not all(inputs):
        raise bad_request(f"'{param}[{[bool(one) for one in inputs].index(False)}]' must not be empty", param)
