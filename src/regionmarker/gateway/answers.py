"""What an upstream answers: read while it arrives, and checked before anything of it is served.

A body is a JSON object with one long vector an input. As its bytes come in, each vector is cut out, decoded straight
into a block of float32 rows, and a number is left in its place; what remains is a small skeleton, which a real JSON
parser reads at the end. So a large answer is decoded, marked and encoded while it is still on its way, and the whole of
its structure is checked all the same: as many vectors as inputs, each index once, the right width, the right model.
That the rows are finite and of unit length is checked where they are marked.
"""

from __future__ import annotations

import binascii
from collections.abc import Callable

import msgspec
import numpy as np
import orjson
import pybase64

from regionmarker.gateway.failures import invalid_answer
from regionmarker.protocols import Floats

BLOCK = 64
"""Rows that are marked at a time: they stay in the processor's cache from the first step to the last."""

_KEY = b'"embedding"'
_SPACE = b" \t\r\n:"
_QUOTE = ord('"')
_CLOSING = {_QUOTE: b'"', ord("["): b"]"}
_NUMBER_BYTES = 32  # of one number as text, at the most that anyone writes
_OTHER_BYTES = 1 << 16


class _Usage(msgspec.Struct):
    prompt_tokens: int | None = None
    total_tokens: int | None = None


class _Item(msgspec.Struct):
    embedding: int  # what was left in the vector's place
    index: int


class _Skeleton(msgspec.Struct):
    data: list[_Item]
    model: str | None = None
    usage: _Usage | None = None


_skeletons = msgspec.json.Decoder(_Skeleton)
_numbers = msgspec.json.Decoder(list[float])
_Take = Callable[[Floats, int], list[bytes]]


class AnswerReader:
    """Reads one upstream response.

    Parameters
    ----------
    count
        Vectors that are expected.
    width
        Their width D.
    take
        Called with each block of rows (n, D) and the number of its first; returns each row as it is to be sent. The
        block is used again for the next rows.

    Examples
    --------
    >>> reader = AnswerReader(2, 2, lambda rows, first: [row.tobytes() for row in rows])
    >>> reader.feed(b'{"data":[{"index":1,"embedding":[0,1]},{"index":0,"emb')
    >>> reader.feed(b'edding":"AACAPwAAAAA="}],"usage":{"prompt_tokens":7,"total_tokens":7}}')
    >>> vectors = reader.finish()
    >>> np.frombuffer(vectors[0], np.float32), reader.tokens
    (array([1., 0.], dtype=float32), 7)
    """

    def __init__(self, count: int, width: int, take: _Take) -> None:
        self.count = count
        self.width = width
        self.tokens: int | None = None
        self.model: str | None = None
        self._take = take
        self._rows = np.empty((min(count, BLOCK), width), dtype=np.float32)
        self._bytes = self._rows.data.cast("B")
        self._held = 0  # rows in the block
        self._seen = 0  # rows in all
        self._served: list[bytes] = []
        self._buffer = bytearray()  # bytes that are not understood yet
        self._skeleton: list[bytes] = []
        self._size = 0
        self._limit = count * (width * _NUMBER_BYTES + 1024) + _OTHER_BYTES

    def feed(self, chunk: bytes) -> None:
        """Take the next bytes of the body."""
        self._size += len(chunk)
        if self._size > self._limit:
            raise invalid_answer("too_large", f"the upstream's answer is larger than {self._limit} bytes")
        buffer = self._buffer
        buffer += chunk
        done = 0  # bytes of the buffer that are dealt with
        while (key := buffer.find(_KEY, done)) >= 0:
            value, end = self._value(key + len(_KEY))
            if end < 0:
                break  # its end is still to come
            self._skeleton.append(bytes(buffer[done:value]))
            if end > value:
                self._skeleton.append(b"%d" % self._seen)
                self._add(buffer[value:end])
            done = end
        kept = key if key >= 0 else max(done, len(buffer) - len(_KEY) + 1)  # a key may be cut in two
        self._skeleton.append(bytes(buffer[done:kept]))
        del buffer[:kept]

    def finish(self) -> list[bytes]:
        """Check the whole and return the vectors in the order of the inputs."""
        self._flush()
        try:
            answer = _skeletons.decode(b"".join([*self._skeleton, self._buffer]))
        except msgspec.ValidationError:
            raise invalid_answer("structure", "the upstream's answer is not a list of embeddings") from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise invalid_answer("json", "the upstream's answer is not valid JSON") from None
        items = answer.data
        if len(items) != self.count:
            raise invalid_answer("count", f"the upstream gave {len(items)} vectors for {self.count} inputs")
        places = {item.index: item.embedding for item in items}
        if places.keys() != set(range(self.count)):
            raise invalid_answer("index", f"the upstream's indices are not 0 to {self.count - 1}, each once")
        if self._seen != self.count or set(places.values()) != places.keys():
            raise invalid_answer("structure", "the upstream's answer does not hold one vector in each embedding")
        self.model = answer.model
        if answer.usage is not None:
            self.tokens = max(answer.usage.prompt_tokens or answer.usage.total_tokens or 0, 0)
        return [self._served[places[index]] for index in range(self.count)]

    def _value(self, start: int) -> tuple[int, int]:
        """Find where the value behind a key begins and ends; the end is -1 while it has not come."""
        buffer = self._buffer
        while start < len(buffer) and buffer[start] in _SPACE:
            start += 1
        if start == len(buffer):
            return start, -1
        closing = _CLOSING.get(buffer[start])
        if closing is None:
            return start, start  # no vector: whatever it is, the parser of the skeleton will see it
        end = buffer.find(closing, start + 1)
        return start, end + 1 if end >= 0 else -1

    def _add(self, value: bytearray) -> None:
        """Decode one vector into the block."""
        if self._seen == self.count:
            raise invalid_answer("count", f"the upstream gave more than {self.count} vectors for {self.count} inputs")
        size = 4 * self.width
        if value[0] == _QUOTE:
            raw = _from_base64(value, self._seen)
            width = len(raw) / 4
            if len(raw) == size:
                self._bytes[self._held * size : (self._held + 1) * size] = raw
        else:
            numbers = _from_numbers(value, self._seen)
            width = len(numbers)
            if width == self.width:
                with np.errstate(over="ignore"):
                    self._rows[self._held] = numbers  # what overflows becomes infinite, and is refused
        if width != self.width:
            raise invalid_answer(
                "width", f"the upstream's vector {self._seen} has width {width:g}, where {self.width} is expected"
            )
        self._seen += 1
        self._held += 1
        if self._held == len(self._rows):
            self._flush()

    def _flush(self) -> None:
        if self._held:
            self._served += self._take(self._rows[: self._held], self._seen - self._held)
            self._held = 0


def _from_base64(value: bytearray, row: int) -> bytes:
    try:
        if b"\\" in value:  # a slash may be written \/
            return pybase64.b64decode(orjson.loads(value), validate=True)
        return pybase64.b64decode(value[1:-1], validate=True)
    except (binascii.Error, ValueError):
        raise invalid_answer("base64", f"the upstream's vector {row} is not base64") from None


def _from_numbers(value: bytearray, row: int) -> list[float]:
    try:
        return _numbers.decode(value)
    except (msgspec.DecodeError, UnicodeDecodeError):
        raise invalid_answer("numbers", f"the upstream's vector {row} is not a list of finite numbers") from None
