"""What ``regionmarker bench run`` promises of itself: that interruptions change nothing, and that workers help.

    python -m studies.grid_runs kill [--times 10] [--grid studies/grids/smoke.toml]
    python -m studies.grid_runs scaling [--grid studies/grids/smoke.toml]

``kill`` runs a grid once undisturbed, and once interrupted at random moments (SIGKILL to the whole process group, or
Ctrl-C, by turns) and taken up again; the rows of results must be equal, but for the seconds they took. ``scaling``
runs it with one worker and with two.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from studies._study import SMOKE_GRID, Command

PAGE = "docs/how-to/run-the-benchmark.md"


def start(grid: Path, out: Path, *options: str) -> subprocess.Popen[bytes]:
    """Start a run in a process group of its own."""
    command = [sys.executable, "-m", "regionmarker", "bench", "run", str(grid), "--out", str(out), "--json", *options]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, start_new_session=True)


def seconds_of(grid: Path, out: Path, *options: str) -> float:
    """Run a grid to its end."""
    started = time.perf_counter()
    if start(grid, out, *options).wait():
        raise SystemExit(f"bench run {grid} failed: give the same command by hand to see why")
    return time.perf_counter() - started


def rows(out: Path) -> list[dict[str, str]]:
    """Return the rows of results without what differs from run to run."""
    from regionmarker.benchmark.grid.output_folder import Store

    store, kept = Store.reading(out), []
    for row in store.rows():
        shown = {name: str(value) for name, value in row.items() if not name.startswith("seconds")}
        scores = store.scores(row["digest"])
        kept.append({**shown, "scores": "" if scores is None else str((scores[0].tolist(), scores[1]))})
    return kept


def kill(folder: Path, grid: Path, times: int, *options: str) -> dict[str, object]:
    """Interrupt a run ``times`` times, and compare what comes of it."""
    whole = seconds_of(grid, folder / "unbroken", *options)
    spread, cells, interrupted = random.Random(0), [], 0
    for turn in range(times):
        running = start(grid, folder / "broken", *options)
        time.sleep(whole * spread.uniform(0.2, 0.35))  # a run needs a fifth of that to load what it computes with
        os.killpg(running.pid, signal.SIGINT if turn % 2 else signal.SIGKILL)
        interrupted += running.wait() != 0
        cells.append(len(list((folder / "broken" / "cells").glob("*.parquet"))))
    seconds_of(grid, folder / "broken", *options)
    left = [path for path in folder.rglob("*") if path.name.endswith(".tmp")]
    equal = rows(folder / "broken") == rows(folder / "unbroken")
    return {
        "cells": len(rows(folder / "unbroken")), "interrupted": interrupted, "cells_after_each": cells, "equal": equal,
        "temporary": len(left),
    }  # fmt: skip


def scaling(folder: Path, grid: Path) -> dict[str, object]:
    """Run with one worker and with two."""
    taken = {count: seconds_of(grid, folder / str(count), "--workers", str(count)) for count in (1, 2)}
    return {"seconds": taken, "two_over_one": taken[2] / taken[1]}


def main() -> None:
    """Do what is asked for, and print it as JSON."""
    parser = Command(__doc__, PAGE, smoke={"times": 1})
    parser.add_argument("verb", choices=("kill", "scaling"), nargs="?", default="kill")
    parser.add_argument("--grid", type=Path, default=Path(__file__).parent / "grids" / "smoke.toml")
    parser.add_argument("--times", type=int, default=10)
    given = parser.read()
    with tempfile.TemporaryDirectory() as folder:
        if given.smoke:
            given.grid = Path(folder) / "smoke.toml"
            given.grid.write_text(SMOKE_GRID)
        if given.verb == "kill":
            found = kill(Path(folder), given.grid, given.times, *(["--engine", "here"] if given.smoke else []))
        else:
            found = scaling(Path(folder), given.grid)
    print(json.dumps({"load": os.getloadavg()[0], "cores": os.cpu_count(), **found}))


if __name__ == "__main__":
    main()
