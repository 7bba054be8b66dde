"""A null upstream: answers as an embeddings server does, from memory, as fast as a socket allows.

Run as a program it prints its port and serves until it is ended. ``--work`` makes it a slow server with a fixed
capacity: some seconds per request, one after the other, as a model on one device has.
"""

from __future__ import annotations

import argparse
import asyncio
from collections.abc import Callable
from typing import ClassVar
from zlib import crc32

import numpy as np
import orjson
import pybase64
import uvloop

WIDTH = 1536


def unit_rows(count: int, width: int = WIDTH, seed: int = 0) -> np.ndarray:
    """Return the vectors that the stub serves, (count, width) float32."""
    rows = np.random.default_rng(seed).standard_normal((count, width)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


ROWS = unit_rows(2048)


def row_of(text: str) -> int:
    """Return which of the vectors a single text gets."""
    return crc32(text.encode()) % len(ROWS)


def answer(body: bytes) -> bytes:
    """Return the whole response to a request's body."""
    question = orjson.loads(body)
    inputs = question.get("input", "")
    count = len(inputs) if isinstance(inputs, list) else 1
    base64 = question.get("encoding_format") == "base64"
    chosen = ROWS[:count] if count > 1 else ROWS[[row_of(inputs[0] if isinstance(inputs, list) else inputs)]]
    rows = [pybase64.b64encode(row).decode() if base64 else row for row in chosen]
    content = orjson.dumps(
        {
            "object": "list",
            "data": [{"object": "embedding", "index": i, "embedding": row} for i, row in enumerate(rows)],
            "model": question.get("model"),
            "usage": {"prompt_tokens": count, "total_tokens": count},
        },
        option=orjson.OPT_SERIALIZE_NUMPY,
    )
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(content) + content


class Stub(asyncio.Protocol):
    """One connection: reads requests, writes answers that were made once."""

    known: ClassVar[dict[bytes, bytes]] = {}
    work = 0.0
    busy_until = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember where to write."""
        self.transport = transport
        self.buffer = b""

    def data_received(self, data: bytes) -> None:
        """Answer every whole request in the buffer."""
        self.buffer = self.buffer + data if self.buffer else data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            head = self.buffer[:end].lower()
            start = head.find(b"content-length:")
            length = int(head[start + 15 :].split(b"\r\n", 1)[0]) if start >= 0 else 0
            last = end + 4 + length
            if len(self.buffer) < last:
                return
            body, self.buffer = self.buffer[end + 4 : last], self.buffer[last:]
            self._reply(body)

    def _reply(self, body: bytes) -> None:
        if not body:
            self.transport.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")
            return
        response = self.known.get(body)
        if response is None:
            response = self.known[body] = answer(body)
        if not self.work:
            self.transport.write(response)
            return
        loop = asyncio.get_running_loop()
        Stub.busy_until = max(Stub.busy_until, loop.time()) + self.work
        write: Callable[[bytes], None] = self.transport.write
        loop.call_at(Stub.busy_until, write, response)


async def main(work: float) -> None:
    """Serve for ever."""
    Stub.work = work
    server = await asyncio.get_running_loop().create_server(Stub, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--work", type=float, default=0.0, help="seconds that one request keeps the server busy")
    uvloop.run(main(parser.parse_args().work))
