"""An attack on the gateway from both sides: ``python -m studies.gateway.attack [--before CHECKOUT]``.

A real gateway process stands between an upstream that answers wrongly in 1,000 ways and clients that send 1,000 kinds
of broken HTTP, and is then besieged: by clients who leave, heads without end, sockets that say nothing, large bodies,
bodies of millions of parts, and large texts that the upstream refuses. Meanwhile ``/livez`` is asked a hundred times a
second from another process, and so is a server that does nothing: its slowest answer is the machine's. What the
gateway's event loop used of the processor while ``/livez`` waited is what an idle machine would show. Counted are rows
that were served otherwise than marked, errors of 500 and above that are not the upstream's, answers in another shape,
tracebacks in the log, places at the door that are not given back, memory at its highest, and the slowest ``/livez``.
``--before`` attacks another version of the package as well.
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
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from regionmarker import RegionMarker
from regionmarker.gateway.dialects.vector_formats import quantised
from studies._study import Command
from studies.gateway.hostile import MODEL, ROWS, WAYS, WIDTH, Reply, Way, draw_reply, draw_request, post, question
from studies.gateway.siege import SIEGE, Findings, Upstream, exchange
from studies.gateway.stub import unit_rows
from studies.gateway.targets import memory, stub

PAGE = "docs/results/gateway-attack.md"
ROOT = Path(__file__).parents[2]
COUNT = 3  # texts in a request of the faults
_PROBE = "from studies.gateway.prober import main; main()"
PROBER: dict[str, Any] = {"cwd": ROOT, "stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}


def unmarked_rows(marker: RegionMarker, sent: Reply | None, way: Way, body: bytes) -> int:
    """Count rows of a good answer that are not the marked rows of what the upstream sent, in their type."""
    clean = ROWS[:COUNT].copy()
    with contextlib.suppress(ValueError, TypeError, KeyError, IndexError):  # as far as it can be read at all
        for item in json.loads((sent.pieces[0] if sent else b"").partition(b"\r\n\r\n")[2])["data"]:
            value = item["embedding"]
            row = np.frombuffer(base64.b64decode(value), "<f4") if isinstance(value, str) else np.float32(value)
            clean[item["index"]] = row
    marked, wrong = marker.transform(clean), 0
    for output_type, rows in way.rows(json.loads(body)):
        is_float = output_type in ("float", "base64")
        right = marked if is_float else quantised(marked, output_type)
        served = [np.frombuffer(base64.b64decode(row), right.dtype) if isinstance(row, str) else row for row in rows]
        wrong += int((np.asarray(np.stack(served), dtype=right.dtype) != right).any(axis=1).sum())
    return wrong


async def faults(port: int, upstream: Upstream, marker: RegionMarker, count: int) -> Findings:
    """Let the upstream answer in ``count`` wrong ways, and well now and then, to clients of every dialect and type."""
    found, texts = Findings(), [f"text {n}" for n in range(COUNT)]
    for number in range(count):
        upstream.reply = draw_reply(number, COUNT) if number % 20 else None
        way = WAYS[number // 20 % len(WAYS)] if number % 20 == 0 else WAYS[number % len(WAYS)]
        status, answer = await exchange(port, post(way.body(texts), route=way.route))
        found.take(status, answer)
        if status == 200:
            found.unmarked += unmarked_rows(marker, upstream.reply, way, answer)
        else:
            found.shapeless += list(json.loads(answer or b"{}")) != way.shape
    upstream.reply = None
    return found


async def broken_requests(port: int, count: int) -> Findings:
    """Send ``count`` kinds of broken HTTP, eight at once."""
    found, turns = Findings(), asyncio.Semaphore(8)

    async def one(number: int) -> None:
        async with turns:
            data = draw_request(number)
            status, body = await exchange(port, data, 1.0)
            found.take(status, body)
            found.shapeless -= status >= 400 and data.startswith(b"HEAD")  # whose answers have no body

    await asyncio.gather(*(one(number) for number in range(count)))
    return found


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


@contextlib.contextmanager
def prober(port: int, *pid: int) -> Iterator[list[tuple[float, float]]]:
    """Ask ``/livez`` from another process while the block runs; the times in ms are there after it."""
    times: list[tuple[float, float]] = []
    with subprocess.Popen([sys.executable, "-c", _PROBE, *map(str, (port, *pid))], **PROBER) as asking:
        yield times
        times += [(wait * 1e3, used * 1e3) for wait, used in json.loads(asking.communicate("end\n", timeout=600)[0])]


def slowest(times: list[tuple[float, float]], which: int = 0) -> str:
    """Return median, 99 % quantile and maximum of the waits, or of the processor time in them."""
    found = [pair[which] for pair in times]
    return ", ".join(f"{value:.0f}" for value in (np.median(found), np.quantile(found, 0.99), max(found)))


def attack(tree: Path, marker: RegionMarker, key: Path, folder: Path, count: int, only: list[str]) -> None:
    """Attack one version, and print what came of it."""
    upstream, log = Upstream(), folder / f"log-{time.monotonic_ns()}"
    upstream.start()
    columns = ["part", "cases", "answers", "rows not as marked", "500 and above of ours", "another shape",
               "left in flight", "memory before, highest, MB", "/livez median, 99 %, slowest, ms",
               "null server meanwhile, ms", "processor time in /livez, ms", "note"]  # fmt: skip
    print("| " + " | ".join(columns) + " |\n|" + "---|" * len(columns))
    with stub() as null, house(tree, key, upstream.port, log) as (port, running):
        parts: dict[str, Any] = {
            "wrong answers": lambda: faults(port, upstream, marker, count),
            "broken requests": lambda: broken_requests(port, count),
        } | {name: lambda part=part: part(port, upstream, count) for name, part in SIEGE.items()}
        asyncio.run(exchange(port, post(question(["warm"]))))
        for name, part in parts.items():
            if only and name not in only:
                continue
            before = memory(running.pid)
            highest(running.pid)
            with prober(port, running.pid) as times, prober(null) as null_times:
                found = asyncio.run(part())
            with contextlib.suppress(OSError):
                found.left_over = in_flight(port)
            codes = ", ".join(f"{code or 'none'}: {n}" for code, n in sorted(found.statuses.items()))
            peak = f"{before:.0f}, {highest(running.pid):.0f}"
            counts = (found.unmarked, found.ours, found.shapeless, f"{found.left_over:g}")
            waits = (slowest(times), slowest(null_times), slowest(times, 1))
            cells = (name, found.cases, codes, *counts, peak, *waits, found.note)
            print("|", *(f"{cell} |" for cell in cells), flush=True)
        at_the_end = memory(running.pid)
    text = log.read_text()
    lines, tracebacks, bugs = len(text.splitlines()), text.count("Traceback"), text.count("internal error")
    print(f"\nLog: {lines} lines, {tracebacks} tracebacks, {bugs} internal errors; ", end="")
    print(f"memory at the end {at_the_end:.0f} MB; exit code {running.returncode}.\n")


def main() -> None:
    """Make a key and attack."""
    parser = Command(__doc__, PAGE, smoke={"cases": 10})
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--only", nargs="*", default=[], help="names of parts; all where none is named")
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
                attack(tree.resolve(), marker, folder / "k.rmkey", folder, given.cases, given.only)


if __name__ == "__main__":
    main()
