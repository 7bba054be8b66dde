"""The body of a 200: vectors as shortest float32 numbers or as base64 of little-endian float32.

Vectors are encoded row by row as they are marked, so that a large answer is ready as soon as its last row has come, and
it is sent in pieces: nothing is ever held twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
import orjson
import pybase64

from regionmarker.protocols import Floats

Encode = Callable[[Floats], list[bytes]]
_PIECE = 1 << 19  # bytes sent at once


def as_base64(rows: Floats) -> list[bytes]:
    """Return each row (n, D) as a JSON string of base64.

    Examples
    --------
    >>> as_base64(np.float32([[1.0, 0.0]]))
    [b'"AACAPwAAAAA="']
    """
    encode = pybase64.b64encode
    return [b'"%b"' % encode(row) for row in np.ascontiguousarray(rows, dtype="<f4")]


def as_numbers(rows: Floats) -> list[bytes]:
    """Return each row (n, D) as a JSON list of the shortest numbers that read back as the same float32.

    Examples
    --------
    >>> as_numbers(np.float32([[0.1, 1.0]]))
    [b'[0.1,1.0]']
    """
    return [orjson.dumps(row, option=orjson.OPT_SERIALIZE_NUMPY) for row in np.ascontiguousarray(rows)]


def body_of(vectors: Sequence[bytes], model: str, tokens: int) -> list[bytes]:
    """Return the body in parts, to be joined or sent one after the other.

    Examples
    --------
    >>> print(b"".join(body_of([b"[1.0]"], "m", 3)).decode())
    {"object":"list","data":[{"object":"embedding","index":0,"embedding":[1.0]}],"model":"m","usage":{"prompt_tokens":3,...
    """
    parts = [b'{"object":"list","data":[{"object":"embedding","index":0,"embedding":', vectors[0]]
    for index in range(1, len(vectors)):
        parts.append(b'},{"object":"embedding","index":%d,"embedding":' % index)
        parts.append(vectors[index])
    end = b'}],"model":%b,"usage":{"prompt_tokens":%d,"total_tokens":%d}}'
    parts.append(end % (orjson.dumps(model), tokens, tokens))
    return parts


def pieces(parts: Sequence[bytes], size: int = _PIECE) -> Iterator[bytes]:
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
