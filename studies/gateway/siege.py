"""The besiegers of ``studies.gateway.attack``: an upstream that can be told what to answer, and crowds of clients."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

from studies.gateway.hostile import COHERE_TYPES, MODEL, Reply, good, http, post, question

MB = 1 << 20
UPSTREAMS = (
    "upstream_error", "upstream_invalid_response", "upstream_unreachable", "upstream_timeout", "upstream_overloaded",
)  # fmt: skip


@dataclass
class Upstream:
    """Answers every request as ``reply`` says; well while there is none."""

    reply: Reply | None = None
    port: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection."""
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                start = head.find(b"content-length: ")
                body = await reader.readexactly(int(head[start + 16 :].split(b"\r\n")[0]) if start >= 0 else 0)
                reply = self.reply
                if not body or reply is None:
                    count = len(json.loads(body)["input"]) if body else 0
                    writer.write(http(json.dumps(good(count)).encode() if body else b"{}"))
                    await writer.drain()
                    continue
                for place, piece in enumerate(reply.pieces):
                    await asyncio.sleep(reply.pause if place else 0.0)
                    writer.write(piece)
                    await writer.drain()
                if reply.hang:
                    await reader.read(1)
                break
        writer.close()

    def start(self) -> None:
        """Listen in a thread of its own."""
        ready = threading.Event()

        async def main() -> None:
            server = await asyncio.start_server(self.serve, "127.0.0.1", 0, limit=64 * MB)
            self.port = server.sockets[0].getsockname()[1]
            ready.set()
            await server.serve_forever()

        threading.Thread(target=lambda: asyncio.run(main()), daemon=True).start()
        ready.wait()


@dataclass
class Findings:
    """What one part of the attack has shown."""

    cases: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    unmarked: int = 0  # rows
    ours: int = 0  # errors of 500 and above that are not the upstream's
    shapeless: int = 0  # answers that are neither good nor of the one shape
    left_over: float = 0.0  # inputs in flight when nobody is there
    note: str = ""

    def take(self, status: int, body: bytes) -> None:
        """Note one answer; 0 is a connection that ended without one."""
        self.cases += 1
        self.statuses[status] += 1
        if status < 400:
            return
        said = shape_of(body)
        self.shapeless += said is None
        upstreams = said in (*UPSTREAMS, "too_many_connections") or (said == "" and status in (502, 503, 504))
        self.ours += status >= 500 and not upstreams


def shape_of(body: bytes) -> str | None:
    """Return the code of an error in a dialect's shape, "" where the dialect has none, None where it has no shape."""
    with contextlib.suppress(ValueError, TypeError, KeyError):
        said = json.loads(body)
        if list(said) in (["message"], ["error"]) and isinstance(next(iter(said.values())), str):
            return ""  # Cohere's and Ollama's
        if list(said["error"]) == ["message", "type", "param", "code"]:
            return str(said["error"]["code"])
    return None


@contextlib.asynccontextmanager
async def connected(port: int) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """Connect, and leave in the end."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.close()


async def exchange(port: int, data: bytes, patience: float = 60.0) -> tuple[int, bytes]:
    """Send bytes and read one answer; status 0 where none comes."""
    async with connected(port) as (reader, writer):
        writer.write(data)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, TimeoutError, asyncio.LimitOverrunError):
            async with asyncio.timeout(patience):
                head = (await reader.readuntil(b"\r\n\r\n")).lower()
                start = head.find(b"content-length: ")
                length = int(head[start + 16 :].split(b"\r\n")[0]) if start >= 0 else 0
                status = int(head.split()[1])
                return status, b"" if data.startswith(b"HEAD") else await reader.readexactly(length)
    return 0, b""


# ---- crowds


async def departures(port: int, upstream: Upstream, count: int) -> Findings:
    """Fill the queue with requests whose clients leave at any moment."""
    found, turns = Findings(), asyncio.Semaphore(64)
    upstream.reply = Reply("slow", (b"", http(json.dumps(good(512)).encode())), 0.02)
    body = post(question([f"text {n}" for n in range(512)]))

    async def one(number: int) -> None:
        async with turns:
            found.take(*await exchange(port, body, (number * 7919 % 100) / 1000))

    await asyncio.gather(*(one(number) for number in range(count)))
    upstream.reply = None
    await asyncio.sleep(3.0)
    found.note = f"then answered {(await exchange(port, post(question(['a']))))[0]}"
    return found


async def endless_heads(port: int, _upstream: Upstream, count: int) -> Findings:
    """Send heads of 90 MB."""
    found = Findings()
    for _ in range(max(1, count // 500)):
        found.take(*await exchange(port, b"GET /livez HTTP/1.1\r\nx: " + b"a" * (90 * MB), 5.0))
    return found


async def idle_sockets(port: int, _upstream: Upstream, count: int) -> Findings:
    """Open sockets that say nothing, and look how many are left after fifteen seconds."""
    found, sockets = Findings(cases=3 * count), []
    for _ in range(3 * count):
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(5.0):
                sockets.append(await asyncio.open_connection("127.0.0.1", port))
    await asyncio.sleep(15.0)

    async def is_open(reader: asyncio.StreamReader) -> bool:
        with contextlib.suppress(ConnectionError):
            try:
                await asyncio.wait_for(reader.read(), 2.0)
            except TimeoutError:
                return True
        return False

    left = sum(await asyncio.gather(*(is_open(reader) for reader, _ in sockets)))
    found.note = f"{left} left after 15 s"
    for _, writer in sockets:
        writer.close()
    return found


async def large_bodies(port: int, upstream: Upstream, count: int) -> Findings:
    """Send bodies of 15.5 MB at once to a slow upstream."""
    found = Findings()
    upstream.reply = Reply("slow", (b"", http(json.dumps(good(1)).encode())), 2.0)
    body = post(question(["word " * (31 * MB // 10)]))
    for answer in await asyncio.gather(*(exchange(port, body) for _ in range(max(2, count // 25)))):
        found.take(*answer)
    upstream.reply = None
    return found


async def bodies_of_many_parts(port: int, _upstream: Upstream, count: int) -> Findings:
    """Send bodies of five million lists."""
    found = Findings()
    for part in (b"[],", b'"",', b"1,", b"[1],") * max(1, count // 250):
        body = b'{"model":"%b","input":[' % MODEL.encode() + part * (15 * MB // len(part)) + b"[]]}"
        found.take(*await exchange(port, post(body)))
    return found


async def parts_of_dialects(port: int, _upstream: Upstream, count: int) -> Findings:
    """Send what only some dialects read: options and types without end, numbers of 15 MB, deep nests."""
    found, size = Findings(), 15 * MB
    model = b'{"model":"%b",' % MODEL.encode()
    options = b",".join(b'"%d":1' % number for number in range(size // 12))
    bodies = [
        ("/api/embed", b'"input":"a","options":{%b}}' % options),
        ("/api/embed", b'"input":"a","options":{"a":%b1%b}}' % (b'{"a":' * (size // 6), b"}" * (size // 6))),
        ("/api/embed", b'"input":"a","keep_alive":0.%b}' % (b"9" * size)),
        ("/api/embed", b'"input":"a","dimensions":%b}' % (b"9" * size)),
        ("/v2/embed", b'"texts":["a"],"embedding_types":[%b"int8"]}' % (b'"int8",' * (size // 7))),
        ("/v2/embed", b'"texts":["a"],"output_dimension":1e%b}' % (b"9" * size)),
        ("/v2/embed", b'"texts":["%b"],"x":[%b]}' % (b"a" * MB, b"[" * (size // 2))),
        ("/v1/embeddings", b'"input":"a","output_dtype":"%b"}' % (b"int8" * (size // 4))),
    ]
    for route, rest in bodies * max(1, count // 500):
        found.take(*await exchange(port, post(model + rest, route=route)))
    return found


async def answers_in_all_types(port: int, upstream: Upstream, count: int) -> Findings:
    """Ask for 512 vectors in six types at once, 16 at a time."""
    found, turns = Findings(), asyncio.Semaphore(16)
    upstream.reply = None
    fields = {"model": MODEL, "texts": [f"text {n}" for n in range(512)], "embedding_types": list(COHERE_TYPES)}
    body = post(json.dumps(fields).encode(), route="/v2/embed")

    async def one() -> None:
        async with turns:
            found.take(*await exchange(port, body))

    await asyncio.gather(*(one() for _ in range(max(16, count // 10))))
    return found


async def refused_texts(port: int, upstream: Upstream, count: int) -> Findings:
    """Send texts of 15 MB that the upstream refuses in many words."""
    found = Findings()
    said = " ".join(f"word{n} is not allowed here" for n in range(20))
    upstream.reply = Reply("refused", (http(json.dumps({"error": {"message": said}}).encode(), 400),))
    for _ in range(max(2, count // 100)):
        found.take(*await exchange(port, post(question(["other " * (5 * MB // 2)]))))
    upstream.reply = None
    return found


SIEGE = {
    "clients who leave": departures,
    "heads without end": endless_heads,
    "sockets that say nothing": idle_sockets,
    "bodies of 15.5 MB": large_bodies,
    "bodies of millions of parts": bodies_of_many_parts,
    "large parts of other dialects": parts_of_dialects,
    "answers in six types": answers_in_all_types,
    "refused texts of 15 MB": refused_texts,
}
