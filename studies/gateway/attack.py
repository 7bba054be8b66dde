"""An attack on the gateway from both sides: ``python -m studies.gateway.attack [--before CHECKOUT]``.

A real gateway process stands between an upstream that answers wrongly in 1,000 ways and clients that send 1,000 kinds
of broken HTTP, and is then besieged: by clients who leave, heads without end, sockets that say nothing, large bodies,
bodies of millions of parts, and large texts that the upstream refuses. Meanwhile ``/livez`` is asked a hundred times a
second from another process, and so is a server that does nothing: its slowest answer is the machine's. Counted are rows
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
from studies._study import Command
from studies.gateway.hostile import MODEL, ROWS, WIDTH, Reply, draw_reply, draw_request, post, question
from studies.gateway.siege import SIEGE, Findings, Upstream, exchange
from studies.gateway.stub import unit_rows
from studies.gateway.targets import memory, stub

PAGE = "docs/results/gateway-attack.md"
ROOT = Path(__file__).parents[2]
COUNT = 3  # texts in a request of the faults
_PROBE = "from studies.gateway.prober import main; main()"
PROBER: dict[str, Any] = {"cwd": ROOT, "stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}


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
def prober(port: int) -> Iterator[list[float]]:
    """Ask ``/livez`` from another process while the block runs; the times in ms are there after it."""
    times: list[float] = []
    with subprocess.Popen([sys.executable, "-c", _PROBE, str(port)], **PROBER) as asking:
        yield times
        times += [seconds * 1e3 for seconds in json.loads(asking.communicate("end\n", timeout=180)[0])]


def slowest(times: list[float]) -> str:
    """Return median, 99 % quantile and maximum."""
    return ", ".join(f"{value:.0f}" for value in (np.median(times), np.quantile(times, 0.99), max(times)))


def attack(tree: Path, marker: RegionMarker, key: Path, folder: Path, count: int) -> None:
    """Attack one version, and print what came of it."""
    upstream, log = Upstream(), folder / f"log-{time.monotonic_ns()}"
    upstream.start()
    columns = ["part", "cases", "answers", "rows not as marked", "500 and above of ours", "another shape",
               "left in flight", "memory before, highest, MB", "/livez median, 99 %, slowest, ms",
               "null server meanwhile, ms", "note"]  # fmt: skip
    print("| " + " | ".join(columns) + " |\n|" + "---|" * len(columns))
    with stub() as null, house(tree, key, upstream.port, log) as (port, running):
        parts: dict[str, Any] = {
            "wrong answers": lambda: faults(port, upstream, marker, count),
            "broken requests": lambda: broken_requests(port, count),
        } | {name: lambda part=part: part(port, upstream, count) for name, part in SIEGE.items()}
        asyncio.run(exchange(port, post(question(["warm"]))))
        for name, part in parts.items():
            before = memory(running.pid)
            highest(running.pid)
            with prober(port) as times, prober(null) as null_times:
                found = asyncio.run(part())
            with contextlib.suppress(OSError):
                found.left_over = in_flight(port)
            codes = ", ".join(f"{code or 'none'}: {n}" for code, n in sorted(found.statuses.items()))
            peak = f"{before:.0f}, {highest(running.pid):.0f}"
            counts = (found.unmarked, found.ours, found.shapeless, f"{found.left_over:g}")
            cells = (name, found.cases, codes, *counts, peak, slowest(times), slowest(null_times), found.note)
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
