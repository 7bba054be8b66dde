"""What the gateway costs: ``python -m studies.gateway [--litellm VENV] [--only PART] [--seconds S]``.

Every part runs the same load on the stub itself, on our gateway before it and, where a virtual environment with
``litellm[proxy]`` is named, on LiteLLM's proxy before it, one worker each, in turns within one run. The processor
time of a server stands beside the clock: on a machine that does other things as well, it is the steadier figure.
"""

from __future__ import annotations

import os
import tempfile
from contextlib import ExitStack
from pathlib import Path

from studies._study import Command
from studies.gateway.codec import codec
from studies.gateway.load import Outcome, drive, request
from studies.gateway.targets import MODEL, gateway, litellm, make_key, memory, processor_seconds, stub

PAGE = "docs/results/gateway-performance.md"
BATCHES = ((1, 1), (16, 1), (256, 1), (2048, 1))

Server = tuple[str, int, int | None]  # name, port, process


def measured(server: Server, message: bytes, connections: int, seconds: float) -> tuple[Outcome, float]:
    """Load one server; return what clients saw, and its processor time per request in milliseconds."""
    _, port, pid = server
    drive(port, message, connections=connections, seconds=min(0.5, seconds / 4))
    before = processor_seconds(pid) if pid else 0.0
    outcome = drive(port, message, connections=connections, seconds=seconds)
    used = (processor_seconds(pid) - before) * 1000 if pid else float("nan")
    return outcome, used / max(1, sum(outcome.statuses.values()))


def compare(servers: list[Server], cells: list[tuple[int, int]], seconds: float, rounds: int) -> None:
    """Print latency and throughput for (batch, connections) cells, both formats, the best of some rounds."""
    print("| batch | format | connections | server | median ms | p99 ms | requests/s | processor ms |")
    print("|---|---|---|---|---|---|---|---|")
    for batch, connections in cells:
        for encoding in ("base64", "float"):
            message = request(servers[0][1], batch, encoding, MODEL)
            found: dict[str, list[tuple[Outcome, float]]] = {name: [] for name, _, _ in servers}
            for _ in range(rounds):
                for server in servers:
                    found[server[0]].append(measured(server, message, connections, seconds))
            for name, runs in found.items():
                outcome, _ = min(runs, key=lambda run: run[0].quantile(0.5))
                wrong = sum(count for status, count in outcome.statuses.items() if status != 200)
                note = f" ({wrong} errors)" if wrong else ""
                print(
                    f"| {batch} | {encoding} | {connections} | {name} | {outcome.quantile(0.5) * 1e3:.2f} "
                    f"| {outcome.quantile(0.99) * 1e3:.2f} | {max(run.goodput for run, _ in runs):.0f}{note} "
                    f"| {min(used for _, used in runs):.2f} |",
                    flush=True,
                )


def overload(key: Path, work: float, seconds: float) -> None:
    """Print the goodput at capacity and at five times the load, by clients that wait as asked and others."""
    print("\n| upstream | clients | connections | good/s | of peak | refused/s | p99 of the good, ms |")
    print("|---|---|---|---|---|---|---|")
    options = ("--capacity", "2048", "--queue", "256") if work else ("--capacity", "2048", "--queue", "64")
    batch = 256 if work else 64
    with stub(work) as upstream, gateway(key, upstream, *options) as (port, _):
        message = request(port, batch, "base64", MODEL)
        drive(port, message, connections=4, seconds=1.0)
        fits = 2048 // batch
        peak = drive(port, message, connections=fits, seconds=seconds)
        kind = f"{work * 1e3:g} ms per request" if work else "none"
        for name, connections, obedient in (
            ("as many as fit", fits, True), ("five times, wait as asked", 5 * fits, True),
            ("five times, ask again at once", 5 * fits, False),
        ):  # fmt: skip
            run = peak if connections == fits else drive(
                port, message, connections=connections, seconds=seconds, obedient=obedient
            )  # fmt: skip
            share, refused = run.goodput / peak.goodput, run.statuses[429] / run.seconds
            print(
                f"| {kind} | {name} | {connections} | {run.goodput:.0f} | {share:.0%} | {refused:.0f} "
                f"| {run.quantile(0.99) * 1e3:.0f} |",
                flush=True,
            )


def soak(key: Path, seconds: float) -> None:
    """Print the gateway's memory while it serves batches of all sizes."""
    print("\n| seconds | requests | memory, MB |\n|---|---|---|")
    with stub() as upstream, gateway(key, upstream) as (port, pid):
        total, steps = 0, 10
        for step in range(steps + 1):
            for batch in (1, 16, 256, 2048):
                share = seconds / steps / 4
                message = request(port, batch, "base64", MODEL)
                run = drive(port, message, connections=8 if batch < 2048 else 2, seconds=share)
                total += sum(run.statuses.values())
            print(f"| {seconds / steps * (step + 1):.0f} | {total} | {memory(pid):.0f} |", flush=True)


def main() -> None:
    """Run the parts that are asked for."""
    parser = Command(__doc__, PAGE, smoke={"only": "latency", "seconds": 0.2, "rounds": 1})
    parser.add_argument("--litellm", type=Path, help="a virtual environment with litellm[proxy]")
    parser.add_argument("--only", choices=("codec", "latency", "throughput", "overload", "soak"), help="one part")
    parser.add_argument("--seconds", type=float, default=3.0, help="of each run")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--soak", type=float, default=60.0, help="seconds of the soak")
    given = parser.read()
    print(f"{os.cpu_count()} cores, load average {os.getloadavg()[0]:.1f} at the start\n", flush=True)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        if given.only in (None, "codec"):
            codec()
        key = make_key(Path(folder))
        if given.only in (None, "latency", "throughput"):
            upstream = stack.enter_context(stub())
            servers: list[Server] = [("stub", upstream, None)]
            servers.append(("gateway", *stack.enter_context(gateway(key, upstream))))
            if given.litellm and given.only != "latency":
                servers.append(("LiteLLM", *stack.enter_context(litellm(given.litellm, upstream))))
            if given.only != "throughput":
                compare(servers[:2], list(BATCHES[:2] if given.smoke else BATCHES), given.seconds, given.rounds)
            if given.only != "latency":
                cells = [(1, 16), (1, 64), (1, 256), (16, 16), (16, 64), (16, 256), (256, 4)]
                compare(servers, cells, given.seconds, given.rounds)
        if given.only in (None, "overload"):
            overload(key, 0.02, given.seconds)
            overload(key, 0.0, given.seconds)
        if given.only in (None, "soak"):
            soak(key, given.soak)
    print(f"\nload average {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    main()
