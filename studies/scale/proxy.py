"""The gateway beside a proxy that does nothing, on the same stack, before the same upstream.

    python -m studies.scale.proxy [--rounds 7] [--seconds 1.5]

In every round upstream, proxy and gateway are loaded in turn, so that what else the machine does meets all three. The
gateway has a graded key, the default. Ratios are of one round; the median over the rounds stands beside the least and
the largest. What clients see is the clock's; "processor ms" is the server's own processor time per request.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from studies._study import Command, markdown
from studies.gateway.load import drive, request
from studies.gateway.targets import MODEL, ROOT, gateway, process, processor_seconds, stub
from studies.scale._scale import conditions, graded_key

PAGE = "docs/results/scale.md"
CELLS = [(batch, form, connections) for connections in (1, 16) for batch in (1, 16) for form in ("base64", "float")]
Seen = dict[str, dict[str, float]]  # server -> what was measured of it


@contextmanager
def do_nothing(upstream: int) -> Iterator[tuple[int, int]]:
    """Run the proxy; gives its port and its process id."""
    code = f"from studies.scale.do_nothing import serve; serve({upstream})"
    with process(sys.executable, "-c", code, cwd=ROOT) as running:
        yield int(running.stdout.readline()), running.pid


def one_round(servers: dict[str, tuple[int, int | None]], cell: tuple[int, str, int], seconds: float) -> Seen:
    """Load each server once."""
    batch, form, connections = cell
    seen: Seen = {}
    for name, (port, pid) in servers.items():
        message = request(port, batch, form, MODEL)
        drive(port, message, connections=connections, seconds=seconds / 5)
        before = processor_seconds(pid) if pid else 0.0
        run = drive(port, message, connections=connections, seconds=seconds)
        wrong = sum(count for status, count in run.statuses.items() if status != 200)
        if wrong:
            raise SystemExit(f"{name} answered {wrong} requests with an error: {dict(run.statuses)}")
        used = (processor_seconds(pid) - before) * 1e3 if pid else float("nan")
        seen[name] = {
            "median": run.quantile(0.5) * 1e3, "p99": run.quantile(0.99) * 1e3, "rate": run.goodput,
            "processor": used / len(run.latencies),
        }  # fmt: skip
    return seen


def shown(values: list[float], digits: int = 2) -> str:
    """Median, and in brackets the least and the largest."""
    low, middle, high = min(values), statistics.median(values), max(values)
    return f"{middle:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})"


def table(found: dict[tuple[int, str, int], list[Seen]]) -> str:
    """One line per cell."""
    header = [
        "batch", "format", "connections", "upstream, ms", "proxy adds, ms", "gateway adds, ms", "added, ratio",
        "proxy, requests/s", "gateway, requests/s", "requests/s, gateway / proxy", "proxy, processor ms",
        "gateway, processor ms", "processor, ratio",
    ]  # fmt: skip
    body = []
    for (batch, form, connections), rounds in found.items():

        def middle(server: str, what: str, rounds: list[Seen] = rounds) -> float:
            return statistics.median(one[server][what] for one in rounds)

        added = {
            server: [one[server]["median"] - one["upstream"]["median"] for one in rounds]
            for server in ("proxy", "gateway")
        }
        ratios = {what: [one["gateway"][what] / one["proxy"][what] for one in rounds] for what in ("rate", "processor")}
        more = [ours / theirs for ours, theirs in zip(added["gateway"], added["proxy"], strict=True)]
        body.append([
            str(batch), form, str(connections), f"{middle('upstream', 'median'):.2f}",
            f"{statistics.median(added['proxy']):.2f}", f"{statistics.median(added['gateway']):.2f}", shown(more),
            f"{middle('proxy', 'rate'):.0f}", f"{middle('gateway', 'rate'):.0f}", shown(ratios["rate"]),
            f"{middle('proxy', 'processor'):.2f}", f"{middle('gateway', 'processor'):.2f}",
            shown(ratios["processor"]),
        ])  # fmt: skip
    return markdown(header, body)


def main() -> None:
    command = Command(__doc__, PAGE, smoke={"rounds": 1, "seconds": 0.2})
    command.add_argument("--rounds", type=int, default=7)
    command.add_argument("--seconds", type=float, default=1.5, help="of each server in each round")
    given = command.read()
    print(f"{conditions()} at the start\n", flush=True)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        upstream = stack.enter_context(stub())
        servers: dict[str, tuple[int, int | None]] = {"upstream": (upstream, None)}
        servers["proxy"] = stack.enter_context(do_nothing(upstream))
        servers["gateway"] = stack.enter_context(gateway(graded_key(Path(folder) / "k.rmkey"), upstream))
        cells = CELLS[:2] if given.smoke else CELLS
        found: dict[tuple[int, str, int], list[Seen]] = {cell: [] for cell in cells}
        for _ in range(given.rounds):
            for cell, rounds in found.items():
                rounds.append(one_round(servers, cell, given.seconds))
    print(table(found))
    print(f"\n{conditions()} at the end")


if __name__ == "__main__":
    main()
