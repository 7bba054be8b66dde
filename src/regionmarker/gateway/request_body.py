"""The body of a request: read within bounds, counted while it is held, and measured before it is parsed.

A parser makes objects of what it reads, and sixteen megabytes of ``[],[],[],`` become five million of them, in seconds
in which nobody else is served. So a large body's strings, lists and commas are counted first, outside its strings, with
arithmetic on its bytes; what no good request has is refused before it is parsed.
"""

from __future__ import annotations

import asyncio
import sys

import numpy as np
import numpy.typing as npt
from starlette.types import Receive, Scope

from regionmarker.gateway.admission import BytesHeld
from regionmarker.gateway.dialects import EmbeddingRequest
from regionmarker.gateway.errors import ApiError, bad_request
from regionmarker.gateway.settings import MOST_INPUTS, MOST_TOKENS_IN_ALL, Settings

SMALL = 1 << 16
"""Bytes of a body that is parsed without a look at it."""

_SPARE = 64  # the other fields of a request, and what the braces around them need
_STRINGS = 2 * MOST_INPUTS + _SPARE  # twice of what is good: a little too much gets the better message of the parser
_LISTS = 2 * MOST_INPUTS + _SPARE
_COMMAS = 2 * MOST_TOKENS_IN_ALL + _SPARE
_PIECE = 1 << 20  # bytes counted at once
_QUOTE, _BACKSLASH, _OPEN, _COMMA = b'"\\[,'
_TOKEN_BYTES = 36  # of a number in a list

Bytes = npt.NDArray[np.uint8]


class ClientGoneError(Exception):
    """Nobody is there to answer to."""


async def read_body(scope: Scope, receive: Receive, settings: Settings, held: BytesHeld) -> bytes | bytearray:
    """Read a body as it may come: as JSON, uncompressed, not too large, not too slow, where there is room for it."""
    kind = find_header(scope, b"content-type").partition(b";")[0].strip().lower()
    if kind not in (b"application/json", b""):
        raise ApiError(415, "unsupported_media_type", "send the request as application/json")
    if find_header(scope, b"content-encoding").lower() not in (b"", b"identity"):
        raise ApiError(415, "unsupported_media_type", "send the request without compression")
    declared = declared_length(scope)
    if declared > SMALL:
        if declared > settings.body_bytes:
            raise _too_large(settings)
        held.expect(declared)
    try:
        async with asyncio.timeout(settings.read):  # from the first byte on, which may never come either
            body = await _join(receive, settings, held)
    except TimeoutError:
        raise ApiError(408, "request_timeout", "the body of the request took too long") from None
    if len(body) > settings.body_bytes:
        raise _too_large(settings)
    if len(body) > SMALL:
        await check_structure(body)
    return body


def declared_length(scope: Scope) -> int:
    """Return the body's length as its header has it; 0 where there is none.

    Examples
    --------
    >>> declared_length({"headers": [(b"content-length", b"0" * 5000 + b"17")]})
    17
    """
    digits = find_header(scope, b"content-length").lstrip(b"0")
    if not digits.isdigit():
        return 0
    return int(digits) if len(digits) < 20 else sys.maxsize


async def _join(receive: Receive, settings: Settings, held: BytesHeld) -> bytes | bytearray:
    message = await receive()
    if message["type"] == "http.request" and not message.get("more_body"):
        whole: bytes = message.get("body", b"")  # small ones come at once, and need not be copied
        held.grow(len(whole))
        return whole
    body = bytearray()
    while True:
        if message["type"] != "http.request":
            raise ClientGoneError
        chunk = message.get("body", b"")
        held.grow(len(chunk))
        body += chunk
        if len(body) > settings.body_bytes:
            raise _too_large(settings)
        if not message.get("more_body"):
            return body
        message = await receive()


def _too_large(settings: Settings) -> ApiError:
    what = f"the body of the request must have at most {settings.body_bytes} bytes"
    return ApiError(413, "request_too_large", what)


def decoded_bytes(request: EmbeddingRequest) -> int:
    """Return about how much memory the inputs take; one wide letter makes a whole text four times as large."""
    if request.in_tokens:
        return _TOKEN_BYTES * sum(map(len, request.inputs))
    return sum(map(sys.getsizeof, request.inputs))


# ---- the structure


async def check_structure(body: bytes | bytearray) -> None:
    """Refuse a body that holds more strings, lists or numbers than any good one.

    NumPy lets other threads run while it counts, the event loop's among them.
    """
    if not await asyncio.to_thread(_needs_counting, body):
        return
    strings, lists, commas = await asyncio.to_thread(count_structure, body)
    if strings > _STRINGS or lists > _LISTS or commas > _COMMAS:
        raise bad_request(
            f"'input' must hold at most {MOST_INPUTS} inputs, and {MOST_TOKENS_IN_ALL} tokens in all", "input"
        )


def _needs_counting(body: bytes | bytearray) -> bool:
    """Say whether a body holds so many quotes, brackets or commas that it matters which of them stand in texts."""
    left = {_QUOTE: 2 * _STRINGS, _OPEN: _LISTS, _COMMA: _COMMAS}
    for start in range(0, len(body), _PIECE):
        piece = np.frombuffer(body, np.uint8, count=min(_PIECE, len(body) - start), offset=start)
        for byte in left:
            left[byte] -= int(np.count_nonzero(piece == byte))
    return min(left.values()) < 0


def count_structure(body: bytes | bytearray) -> tuple[int, int, int]:
    r"""Count the strings of a JSON text, and the opening brackets and commas outside of them.

    Examples
    --------
    >>> count_structure(b'{"input": ["a, [b]", "c \\" d"], "user": "e"}')
    (5, 1, 2)
    """
    quotes = lists = commas = 0
    inside, escaping = False, False  # whether a piece begins in a string, and behind a backslash
    for start in range(0, len(body), _PIECE):
        piece = np.frombuffer(body, np.uint8, count=min(_PIECE, len(body) - start), offset=start)
        real = piece == _QUOTE
        escaping = _unescape(real, piece, escaping)
        count = int(np.count_nonzero(real))
        # Outside of strings: an even number of quotes has come before, those of earlier pieces included.
        outside = np.logical_xor.accumulate(real) == inside
        lists += int(np.count_nonzero(outside & (piece == _OPEN)))
        commas += int(np.count_nonzero(outside & (piece == _COMMA)))
        quotes += count
        inside ^= bool(count & 1)
    return (quotes + 1) // 2, lists, commas


def _unescape(real: npt.NDArray[np.bool_], piece: Bytes, escaping: bool) -> bool:
    """Take the quotes out of ``real`` that stand behind an odd number of backslashes; say whether the piece ends so."""
    slashes = np.flatnonzero(piece == _BACKSLASH)
    if len(slashes) == 0:
        if escaping:
            real[0] = False
        return False
    begins = np.flatnonzero(np.diff(slashes, prepend=-2) != 1)  # the first of each run of backslashes
    runs = np.diff(np.append(begins, len(slashes)))
    if escaping:
        if slashes[0] == 0:
            runs[0] += 1  # the run began in the piece before
        else:
            real[0] = False
    behind = slashes[begins] + np.diff(np.append(begins, len(slashes)))  # what stands behind each run
    odd = runs % 2 == 1
    last = bool(odd[-1]) and int(behind[-1]) == len(piece)
    real[behind[odd & (behind < len(piece))]] = False
    return last


def find_header(scope: Scope, name: bytes) -> bytes:
    """Return a header's value, b"" without one.

    Examples
    --------
    >>> find_header({"headers": [(b"host", b"here")]}, b"host")
    b'here'
    """
    for key, value in scope["headers"]:
        if key == name:
            found: bytes = value
            return found
    return b""
