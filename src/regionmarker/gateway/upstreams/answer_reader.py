"""What an upstream answers: read while it arrives, and checked before anything of it is served.

A body is a JSON object with one long vector per input. As its bytes come in, each vector is cut out, decoded straight
into a block of float32 rows, and a number is left in its place; what remains is a small skeleton, which a real JSON
parser reads at the end. So a large answer is decoded, marked and encoded while it is still on its way, and the whole of
its structure is checked all the same: as many vectors as inputs, each index once, the right width, the right model.
That the rows are finite and of unit length is checked where they are marked.
"""

from __future__ import annotations

import binascii
import re

import msgspec
import numpy as np
import orjson
import pybase64

from regionmarker.gateway.dialects.vector_formats import EncodedVector
from regionmarker.gateway.errors import invalid_answer
from regionmarker.gateway.upstreams import MOST_COUNTED, MarkBlock
from regionmarker.vectors import Floats

BLOCK = 64
"""Rows that are marked at a time: they stay in the processor's cache from the first step to the last."""

_KEY = b'"embedding"'
_VECTOR = re.compile(_KEY + rb'[ \t\r\n]*:[ \t\r\n]*(["\[])')  # group 1 begins the vector
_SPACE = b" \t\r\n:"
_QUOTE = ord('"')
_CLOSING = {_QUOTE: b'"', ord("["): b"]"}
_NUMBER_BYTES = 32  # of one number as text, at the most that anyone writes
_OTHER_BYTES = 1 << 16
_ITEM_BYTES = 1024  # around one vector


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


class AnswerReader:
    """Reads one upstream response.

    Parameters
    ----------
    count
        Vectors that are expected.
    width
        Their width D.
    mark_block
        Called with each block of rows; the block is used again for the next ones.

    Examples
    --------
    >>> reader = AnswerReader(2, 2, lambda rows, first: [row.tobytes() for row in rows])
    >>> reader.feed(b'{"data":[{"index":1,"embedding":[0,1]},{"index":0,"emb')
    >>> reader.feed(b'edding":"AACAPwAAAAA="}],"usage":{"prompt_tokens":7,"total_tokens":7}}')
    >>> vectors = reader.finish()
    >>> np.frombuffer(vectors[0], np.float32), reader.tokens
    (array([1., 0.], dtype=float32), 7)
    """

    def __init__(self, count: int, width: int, mark_block: MarkBlock) -> None:
        self.count = count
        self.width = width
        self.tokens: int | None = None
        self.miscounted = False
        """Whether the answer counts tokens as nobody can; its vectors may be good all the same."""
        self.model: str | None = None
        self._mark_block = mark_block
        self._rows = np.empty((min(count, BLOCK), width), dtype=np.float32)
        self._bytes = self._rows.data.cast("B")
        self._coded: list[memoryview] = []  # rows of the block that are still to be decoded
        self._held = 0  # rows in the block
        self._seen = 0  # rows in all
        self._served: list[EncodedVector] = []
        self._buffer = bytearray()  # bytes that are not understood yet
        self._skeleton: list[bytes | bytearray] = []
        self._size = 0
        self._coded_bytes = 4 * -(-4 * width // 3) + 2  # of a vector in base64, with its quotes
        self._longest = width * _NUMBER_BYTES + 1024  # bytes of one vector, with what stands around it
        self._limit = count * self._longest + _OTHER_BYTES
        self._rest = 0  # bytes that are no vector's
        self._most_rest = count * _ITEM_BYTES + _OTHER_BYTES  # what is parsed as a whole in the end

    def feed(self, chunk: bytes) -> None:
        self._size += len(chunk)
        if self._size > self._limit:
            raise invalid_answer("too_large", f"the upstream's answer is larger than {self._limit} bytes")
        buffer = self._buffer
        buffer += chunk
        done, kept = 0, -1  # bytes that are dealt with, and where a vector begins whose end is still to come
        with memoryview(buffer) as view:
            while (found := _VECTOR.search(buffer, done)) is not None:
                value = found.start(1)
                end = self._end(value)
                if end < 0:
                    kept = found.start()
                    break
                self._skeleton += (buffer[done:value], b"%d " % self._seen)
                self._rest += value - done
                self._add(view[value:end])
                done = end
            self._decode()
        if kept < 0:
            kept = self._understood(done)
        if kept > done:
            self._skeleton.append(buffer[done:kept])
            self._rest += kept - done
            if self._rest > self._most_rest:
                raise invalid_answer("too_large", f"the upstream's answer has {self._rest} bytes beside its vectors")
        del buffer[:kept]
        if len(buffer) > self._longest:  # it would be looked through again with every chunk
            raise invalid_answer(
                "too_large", f"the upstream's vector {self._seen} is longer than {self._longest} bytes"
            )

    def finish(self) -> list[EncodedVector]:
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
            tokens = answer.usage.prompt_tokens or answer.usage.total_tokens or 0
            self.miscounted = not 0 <= tokens <= MOST_COUNTED
            self.tokens = None if self.miscounted else tokens
        return [self._served[places[index]] for index in range(self.count)]

    def _end(self, value: int) -> int:
        """Find where a vector ends; -1 while its end has not come."""
        return self._buffer.find(_CLOSING[self._buffer[value]], value + 1) + 1 or -1

    def _understood(self, done: int) -> int:
        """Return how far the bytes behind the last vector hold no beginning of another one, cut in two."""
        buffer = self._buffer
        key = buffer.rfind(_KEY, done)
        if key >= 0 and not buffer[key + len(_KEY) :].strip(_SPACE):
            return key
        return max(done, len(buffer) - len(_KEY) + 1)

    def _add(self, value: memoryview) -> None:
        """Take one vector: base64 of the usual length to be decoded together with its neighbours, others at once."""
        if self._seen == self.count:
            raise invalid_answer("count", f"the upstream gave more than {self.count} vectors for {self.count} inputs")
        if len(value) == self._coded_bytes and value[0] == _QUOTE:
            self._coded.append(value[1:-1])
        else:
            self._decode()
            self._rows[self._held] = _decoded(value, self._seen, self.width)
            self._held += 1
        self._seen += 1
        if self._held + len(self._coded) == len(self._rows):
            self._decode()
            self._flush()

    def _decode(self) -> None:
        coded, self._coded = self._coded, []
        if not coded:
            return
        together = [b"".join(coded)] if self.width % 3 == 0 else coded  # without padding, rows make one text
        size, first = 4 * self.width, 4 * self.width * self._held
        try:
            parts = [pybase64.b64decode(text, validate=True) for text in together]
        except (binascii.Error, ValueError):
            parts = []
        if parts and all(len(part) * len(parts) == size * len(coded) for part in parts):
            self._bytes[first : first + size * len(coded)] = b"".join(parts)
        else:  # one of them is something else: find out which
            row = self._seen - len(coded)
            for place, text in enumerate(coded):
                self._rows[self._held + place] = _decoded(b'"%b"' % bytes(text), row + place, self.width)
        self._held += len(coded)

    def _flush(self) -> None:
        if self._held:
            self._served += self._mark_block(self._rows[: self._held], self._seen - self._held)
            self._held = 0


def _decoded(value: memoryview | bytes, row: int, width: int) -> Floats:
    """Read a vector on its own, (D,), and say what is wrong with it if anything is."""
    if value[0] == _QUOTE:
        try:
            raw = pybase64.b64decode(orjson.loads(value), validate=True)  # a slash may be written \\/
        except (binascii.Error, ValueError):
            raise invalid_answer("base64", f"the upstream's vector {row} is not base64") from None
        found, numbers = len(raw) / 4, np.frombuffer(raw[: len(raw) // 4 * 4], dtype="<f4")
    else:
        try:
            listed = _numbers.decode(value)
        except (msgspec.DecodeError, UnicodeDecodeError):
            raise invalid_answer("numbers", f"the upstream's vector {row} is not a list of finite numbers") from None
        with np.errstate(over="ignore"):  # what overflows becomes infinite, and is refused
            found, numbers = len(listed), np.asarray(listed, dtype=np.float32)
    if found != width:
        raise invalid_answer("width", f"the upstream's vector {row} has width {found:g}, where {width} is expected")
    return numbers
