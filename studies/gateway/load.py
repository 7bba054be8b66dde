"""Clients on raw sockets: they measure the server, and cost little themselves."""

from __future__ import annotations

import asyncio
import json
import math
import time
from collections import Counter
from dataclasses import dataclass, field

import uvloop


@dataclass
class Outcome:
    """What a run of clients saw."""

    seconds: float = 0.0
    statuses: Counter[int] = field(default_factory=Counter)
    latencies: list[float] = field(default_factory=list)  # of good answers
    left: float = math.inf  # requests that may still be sent

    @property
    def goodput(self) -> float:
        """Good answers a second."""
        return self.statuses[200] / self.seconds

    def quantile(self, share: float) -> float:
        """Return the latency that ``share`` of the good answers stayed below."""
        ordered = sorted(self.latencies)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def request(port: int, count: int, encoding: str, model: str, key: str = "sk-load", words: int = 8) -> bytes:
    """Return the bytes of one request for ``count`` texts."""
    texts = [" ".join(f"word{(i * 7 + j) % 997}" for j in range(words)) for i in range(count)]
    body = json.dumps({"model": model, "input": texts if count > 1 else texts[0], "encoding_format": encoding}).encode()
    head = f"POST /v1/embeddings HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nauthorization: Bearer {key}\r\n"
    return f"{head}content-type: application/json\r\ncontent-length: {len(body)}\r\n\r\n".encode() + body


class Client(asyncio.Protocol):
    """One connection that asks again as soon as it has its answer, or when it is told to."""

    def __init__(self, message: bytes, outcome: Outcome, until: float, obedient: bool) -> None:
        self.message, self.outcome, self.until, self.obedient = message, outcome, until, obedient
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.head = b""
        self.missing = -1

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask for the first time."""
        self.transport = transport
        self.ask()

    def ask(self) -> None:
        """Send the request, or stop when the time or the number of requests is used up."""
        if time.perf_counter() >= self.until or not self.outcome.left:
            self.transport.close()
            return
        self.outcome.left -= 1
        self.started = time.perf_counter()
        self.transport.write(self.message)

    def data_received(self, data: bytes) -> None:
        """Count bytes until the answer is whole."""
        if self.missing < 0:
            self.head += data
            end = self.head.find(b"\r\n\r\n")
            if end < 0:
                return
            lines = self.head[:end].lower().split(b"\r\n")
            self.status = int(lines[0].split()[1])
            self.headers = dict(line.split(b": ", 1) for line in lines[1:])
            self.missing = int(self.headers[b"content-length"]) - (len(self.head) - end - 4)
        else:
            self.missing -= len(data)
        if self.missing <= 0:
            self.answered()

    def answered(self) -> None:
        """Note the answer and go on."""
        now = time.perf_counter()
        self.head, self.missing = b"", -1
        self.outcome.statuses[self.status] += 1
        wait = 0.0
        if self.status == 200:
            self.outcome.latencies.append(now - self.started)
        elif self.obedient:
            wait = float(self.headers.get(b"retry-after-ms", b"1000")) / 1000
        if wait:
            asyncio.get_running_loop().call_later(min(wait, max(0.0, self.until - now)), self.ask)
        else:
            self.ask()

    def connection_lost(self, error: Exception | None) -> None:  # noqa: ARG002
        """End."""
        if not self.done.done():
            self.done.set_result(None)


async def _drive(
    port: int, message: bytes, connections: int, seconds: float, obedient: bool, requests: float
) -> Outcome:
    loop, outcome = asyncio.get_running_loop(), Outcome(left=requests)
    start = time.perf_counter()
    made = [
        await loop.create_connection(lambda: Client(message, outcome, start + seconds, obedient), "127.0.0.1", port)
        for _ in range(connections)
    ]
    await asyncio.wait([client.done for _, client in made], timeout=seconds + 30)
    outcome.seconds = time.perf_counter() - start
    return outcome


def drive(
    port: int, message: bytes, *, connections: int, seconds: float, obedient: bool = True, requests: float = math.inf
) -> Outcome:
    """Ask from ``connections`` connections at once for about ``seconds``, at most ``requests`` times in all."""
    return uvloop.run(_drive(port, message, connections, seconds, obedient, requests))
