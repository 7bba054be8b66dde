"""An attack on the gateway from both sides: ``python -m studies.gateway.attack [--before CHECKOUT]``.

A real gateway process stands between an upstream that answers wrongly in 1,000 ways and clients that send 1,000 kinds
of broken HTTP, and is then besieged: by clients who leave, heads without end, sockets that say nothing, large bodies,
bodies of millions of parts, and large texts that the upstream refuses. Meanwhile ``/livez`` is asked a hundred times a
second from another process. Counted are rows that were served otherwise than marked, errors of 500 and above that are
not the upstream's, answers in another shape, tracebacks in the log, places at the door that are not given back, memory
at its highest, and the slowest ``/livez``. ``--before`` attacks another version of the package as well.
"""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from regionmarker import RegionMarker
from studies._study import Command
from studies.gateway.hostile import MODEL, ROWS, WIDTH, Reply, draw_reply, draw_request, good, http, post, question
from studies.gateway.stub import unit_rows
from studies.gateway.targets import memory

PAGE = "docs/results/gateway-attack.md"
ROOT = Path(__file__).parents[2]
COUNT = 3  # texts in a request of the faults
MB = 1 << 20
PROBER: dict[str, Any] = {"cwd": ROOT, "stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
UPSTREAMS = (
    "upstream_error",
    "upstream_invalid_response",
    "upstream_unreachable",
    "upstream_timeout",
    "upstream_overloaded",
)


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
        try:
            error = json.loads(body)["error"]
            shaped = list(error) == ["message", "type", "param", "code"]
        except (ValueError, TypeError, KeyError):
            error, shaped = {}, False
        self.shapeless += not shaped
        self.ours += status >= 500 and error.get("code") not in (*UPSTREAMS, "too_many_connections")


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


def is_marked(marker: RegionMarker, sent: Reply | None, body: bytes) -> int:
    """Count rows of a good answer that are not the marked rows of what the upstream sent."""
    served = [np.frombuffer(base64.b64decode(item["embedding"]), "<f4") for item in json.loads(body)["data"]]
    clean = ROWS[: len(served)].copy()
    with contextlib.suppress(ValueError, TypeError, KeyError, IndexError):  # as far as it can be read at all
        for item in json.loads((sent.pieces[0] if sent else b"").partition(b"\r\n\r\n")[2])["data"]:
            value = item["embedding"]
            row = np.frombuffer(base64.b64decode(value), "<f4") if isinstance(value, str) else np.float32(value)
            clean[item["index"]] = row
    return int((np.stack(served) != marker.transform(clean)).any(axis=1).sum())


async def faults(port: int, upstream: Upstream, marker: RegionMarker, count: int) -> Findings:
    """Let the upstream answer in ``count`` wrong ways."""
    found, body = Findings(), post(question([f"text {n}" for n in range(COUNT)]))
    for number in range(count):
        upstream.reply = draw_reply(number, COUNT)
        status, answer = await exchange(port, body)
        found.take(status, answer)
        found.unmarked += is_marked(marker, upstream.reply, answer) if status == 200 else 0
    upstream.reply = None
    return found


async def broken_requests(port: int, count: int) -> Findings:
    """Send ``count`` kinds of broken HTTP, eight at once."""
    found, turns = Findings(), asyncio.Semaphore(8)

    async def one(number: int) -> None:
        async with turns:
            found.take(*await exchange(port, draw_request(number), 1.0))

    await asyncio.gather(*(one(number) for number in range(count)))
    return found


# ---- the siege


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
    left = sum(not reader.at_eof() for reader, _ in sockets)
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
    "refused texts of 15 MB": refused_texts,
}


# ---- the house that is attacked


@contextlib.contextmanager
def house(tree: Path, key: Path, upstream: int, log: Path) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    """Run the gateway of a version of the package."""
    command = [sys.executable, "-m", "regionmarker", "serve", "--key", str(key), "--port", "0", "--timeout", "3"]
    spec = f"openai:http://127.0.0.1:{upstream}/v1#{MODEL}"
    places = {"PYTHONPATH": f"{tree / 'src'}{os.pathsep}{ROOT}", "OPENBLAS_NUM_THREADS": "1"}
    with log.open("w") as stream:
        running = subprocess.Popen(
            [*command, "--upstream", spec], stderr=stream, env={**os.environ, **places}, text=True
        )
        try:
            while not (lines := log.read_text().splitlines()):
                time.sleep(0.05)
            yield json.loads(lines[0])["port"], running
        finally:
            running.terminate()
            running.wait(60)


def in_flight(port: int) -> float:
    """Return the inputs that the gateway believes to be under way."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        lines = answer.read().decode().splitlines()
    return float(next(line.split()[1] for line in lines if line.startswith("regionmarker_inflight_inputs ")))


def highest(pid: int) -> float:
    """Return the highest memory of a process in MB since it was last asked."""
    status = Path(f"/proc/{pid}/status").read_text().splitlines()
    found = next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))
    with contextlib.suppress(OSError):
        Path(f"/proc/{pid}/clear_refs").write_text("5")
    return found


def attack(tree: Path, marker: RegionMarker, key: Path, folder: Path, count: int) -> None:
    """Attack one version, and print what came of it."""
    upstream, log = Upstream(), folder / f"log-{time.monotonic_ns()}"
    upstream.start()
    columns = ["part", "cases", "answers", "rows not as marked", "500 and above of ours", "another shape",
               "left in flight", "memory before, highest, MB", "/livez median, 99 %, slowest, ms", "note"]  # fmt: skip
    print("| " + " | ".join(columns) + " |\n|" + "---|" * len(columns))
    with house(tree, key, upstream.port, log) as (port, running):
        parts: dict[str, Any] = {
            "wrong answers": lambda: faults(port, upstream, marker, count),
            "broken requests": lambda: broken_requests(port, count),
        } | {name: lambda part=part: part(port, upstream, count) for name, part in SIEGE.items()}
        asyncio.run(exchange(port, post(question(["warm"]))))
        for name, part in parts.items():
            before = memory(running.pid)
            highest(running.pid)
            with subprocess.Popen([sys.executable, "-m", "studies.gateway.prober", str(port)], **PROBER) as prober:
                found = asyncio.run(part())
                times = np.array(json.loads(prober.communicate("end\n", timeout=180)[0])) * 1e3
            with contextlib.suppress(OSError):
                found.left_over = in_flight(port)
            codes = ", ".join(f"{code or 'none'}: {n}" for code, n in sorted(found.statuses.items()))
            slow = ", ".join(f"{value:.0f}" for value in (np.median(times), np.quantile(times, 0.99), times.max()))
            peak = f"{before:.0f}, {highest(running.pid):.0f}"
            counts = (found.unmarked, found.ours, found.shapeless, f"{found.left_over:g}")
            cells = (name, found.cases, codes, *counts, peak, slow, found.note)
            print("|", *(f"{cell} |" for cell in cells), flush=True)
    text = log.read_text()
    lines, tracebacks, bugs = len(text.splitlines()), text.count("Traceback"), text.count("internal error")
    print(f"\nLog: {lines} lines, {tracebacks} tracebacks, {bugs} internal errors; exit code {running.returncode}.\n")


def main() -> None:
    """Make a key and attack."""
    parser = Command(__doc__, PAGE, smoke={"cases": 10})
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--before", type=Path, help="a checkout of another version, to be attacked as well")
    given = parser.read()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rows = unit_rows(1200, WIDTH, seed=1)
        marker = RegionMarker(pool=64, reservoir=256).fit([f"text {n}" for n in range(len(rows))], embeddings=rows)
        marker.save(folder / "k.rmkey")
        for title, tree in (("Before", given.before), ("Now", ROOT)):
            if tree is not None:
                print(f"{title}:\n")
                attack(tree.resolve(), marker, folder / "k.rmkey", folder, given.cases)


if __name__ == "__main__":
    main()
