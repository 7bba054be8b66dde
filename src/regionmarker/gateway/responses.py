"""The body of a 200: vectors as shortest float32 numbers or as base64 of little-endian float32.

Vectors are encoded row by row as they are marked, so that a large answer is ready as soon as its last row has come, and
it is sent in pieces: nothing is ever held twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import NamedTuple

import numpy as np
import orjson
import pybase64

from regionmarker.protocols import Floats

Coded = bytes | memoryview
"""One vector as it is sent, without the quotes around it."""

_PIECE = 1 << 19  # bytes sent at once


class Format(NamedTuple):
    """How vectors are written."""

    encode: Callable[[Floats], list[Coded]]
    quote: bytes  # what stands around each


def as_base64(rows: Floats) -> list[Coded]:
    """Return each row (n, D) in base64.

    Examples
    --------
    >>> as_base64(np.float32([[1.0, 0.0]]))
    [b'AACAPwAAAAA=']
    """
    rows = np.ascontiguousarray(rows, dtype="<f4")
    if rows.shape[1] % 3:
        return [pybase64.b64encode(row.data) for row in rows]
    coded = memoryview(pybase64.b64encode(rows.data))  # three numbers are sixteen letters: no padding between rows
    size = rows.shape[1] // 3 * 16
    return [coded[start : start + size] for start in range(0, len(coded), size)]


def as_numbers(rows: Floats) -> list[Coded]:
    """Return each row (n, D) as a JSON list of the shortest numbers that read back as the same float32.

    Examples
    --------
    >>> as_numbers(np.float32([[0.1, 1.0]]))
    [b'[0.1,1.0]']
    """
    return [orjson.dumps(row, option=orjson.OPT_SERIALIZE_NUMPY) for row in np.ascontiguousarray(rows)]


BASE64 = Format(as_base64, b'"')
NUMBERS = Format(as_numbers, b"")


@cache
def _befores(magnitude: int, quote: bytes) -> list[bytes]:
    """Return what stands before each of 2 ** magnitude vectors."""
    begin = b'{"object":"list","data":[{"object":"embedding","index":0,"embedding":' + quote
    middle = quote + b'},{"object":"embedding","index":%d,"embedding":' + quote
    return [begin, *(middle % index for index in range(1, 1 << magnitude))]


def body_of(vectors: Sequence[Coded], model: str, tokens: int, quote: bytes = b"") -> list[Coded]:
    """Return the body in parts, to be joined or sent one after the other.

    Examples
    --------
    >>> print(b"".join(body_of([b"[1.0]"], "m", 3)).decode())
    {"object":"list","data":[{"object":"embedding","index":0,"embedding":[1.0]}],"model":"m","usage":{"prompt_tokens":3,...
    """
    befores = _befores(len(vectors).bit_length(), quote)
    parts: list[Coded] = [part for pair in zip(befores, vectors, strict=False) for part in pair]
    end = b'%b}],"model":%b,"usage":{"prompt_tokens":%d,"total_tokens":%d}}'
    parts.append(end % (quote, orjson.dumps(model), tokens, tokens))
    return parts


def pieces(parts: Sequence[Coded], size: int = _PIECE) -> Iterator[bytes]:
    """Join parts into pieces of about ``size`` bytes.

    Examples
    --------
    >>> list(pieces([b"ab", b"cd", b"ef"], size=4))
    [b'abcd', b'ef']
    """
    first = total = 0
    for place, part in enumerate(parts):
        total += len(part)
        if total >= size:
            yield b"".join(parts[first : place + 1])
            first, total = place + 1, 0
    if first < len(parts):
        yield b"".join(parts[first:])
