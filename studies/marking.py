"""How fast marking is, beside plain copies of the same arrays in the same run.

    python -m studies.marking [--json FILE]

Every number is the best of several runs on one thread. A ratio compares with ``np.copyto`` of the same array, which is
the least that any marker has to do: read all, write all.
"""

from __future__ import annotations

import json
import os
import platform
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from regionmarker import RegionMarker
from regionmarker.crypto.secret import Secret
from regionmarker.marking import engine as engines
from regionmarker.marks.corpus_summary import CorpusSummary
from studies._study import Command, unit_rows

PAGE = "docs/results/performance.md"
WIDTHS = (256, 384, 768, 1536, 3072)
BATCHES = (1, 16, 256, 65_536)
PAPER_SECONDS = 5.57e-5  # a vector, the paper's own figure
SECONDS = 1.5  # of a case
LEAST_ROUNDS = 7
FIT_WIDTHS = (256, 768, 1536)
FIT_ROWS = 32_768


def marker_of(width: int, grid: str = "float32") -> RegionMarker:
    """Make a marker like the default one: 4 hyperplanes, 3 trigger regions of 16, strength 0.2."""
    texts = [f"text {number}" for number in range(400)]
    marker = RegionMarker(seed=0, pool=64, reservoir=256, grid=grid)
    return marker.fit(texts, embeddings=unit_rows(400, width))


def best_of_each(jobs: dict[str, Callable[[], Any]], seconds: float, rounds: int = LEAST_ROUNDS) -> dict[str, float]:
    """Time the jobs in turn, so that a busy moment hurts all alike, and keep each one's best, in seconds per call."""
    best = dict.fromkeys(jobs, float("inf"))
    calls = {}
    for name, job in jobs.items():
        job()
        start = time.perf_counter()
        job()
        calls[name] = max(1, int(2e-4 / max(time.perf_counter() - start, 1e-9)))  # short jobs in bundles
    end, done = time.perf_counter() + seconds, 0
    while done < rounds or time.perf_counter() < end:
        done += 1
        for name, job in jobs.items():
            start = time.perf_counter()
            for _ in range(calls[name]):
                job()
            best[name] = min(best[name], (time.perf_counter() - start) / calls[name])
    return best


def free_bytes() -> int:
    """Return how much memory can be taken."""
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def case(width: int, batch: int, seconds_of_case: float) -> dict[str, Any] | None:
    """Measure one width and batch; None where memory is short."""
    if 3 * 4 * width * batch > free_bytes():
        return None
    rows, marker, half = unit_rows(batch, width), marker_of(width), marker_of(width, "float16")
    out = np.zeros_like(rows)
    inside = rows.copy() if batch <= 256 else out  # marked again and again: it stays of unit length
    seconds = best_of_each(
        {
            "copy": lambda: np.copyto(out, rows),
            "mark": lambda: marker.transform(rows, out=out),
            "float16": lambda: half.transform(rows, out=out),
            "in place": lambda: marker.transform(inside, out=inside),
        },
        seconds_of_case,
    )
    return {"width": width, "batch": batch, "seconds": seconds}


def table(cases: list[dict[str, Any]]) -> str:
    """Lay the cases out in Markdown."""
    lines = [
        "| width | batch | copy, us | mark, us | ratio | float16 grid | in place | s per vector | paper's s / ours |",
        "|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for found in cases:
        seconds = found["seconds"]
        each = seconds["mark"] / found["batch"]
        ratios = " | ".join(f"{seconds[name] / seconds['copy']:.2f}" for name in ("mark", "float16", "in place"))
        lines.append(
            f"| {found['width']} | {found['batch']:,} | {seconds['copy'] * 1e6:,.1f} | {seconds['mark'] * 1e6:,.1f} "
            f"| {ratios} | {each:.2e} | {PAPER_SECONDS / each:,.0f} |"
        )
    return "\n".join(lines)


def fit_cases(widths: Sequence[int], rows_of_fit: int, seconds: float) -> list[dict[str, Any]]:
    """Measure the streaming pass of a fit beside one Gram pass (float64) over the same blocks."""
    found = []
    for width in widths:
        rows = unit_rows(rows_of_fit, width)
        texts = [f"text {number}" for number in range(rows_of_fit)]
        blocks = [slice(start, start + 4096) for start in range(0, rows_of_fit, 4096)]

        def gram(rows: np.ndarray = rows, blocks: list[slice] = blocks) -> None:
            total = np.zeros((rows.shape[1], rows.shape[1]))
            for block in blocks:
                wide = rows[block].astype(np.float64)
                total += wide.T @ wide

        def survey(rows: np.ndarray = rows, blocks: list[slice] = blocks, texts: list[str] = texts) -> None:
            seen = CorpusSummary(Secret(bytes(32)), 5120)
            for block in blocks:
                seen.update(texts[block], rows[block])

        taken = best_of_each({"gram": gram, "survey": survey}, seconds, rounds=3)
        found.append({"width": width, "rows": rows_of_fit, "seconds": taken})
    return found


def fit_table(cases: list[dict[str, Any]]) -> str:
    """Lay the fits out in Markdown."""
    lines = ["| width | rows | Gram pass, s | streaming fit, s | ratio |", "|---:|---:|---:|---:|---:|"]
    for found in cases:
        gram, survey = found["seconds"]["gram"], found["seconds"]["survey"]
        lines.append(f"| {found['width']} | {found['rows']:,} | {gram:.2f} | {survey:.2f} | {survey / gram:.2f} |")
    return "\n".join(lines)


def processor() -> str:
    """Name the processor."""
    information = Path("/proc/cpuinfo")
    if information.exists():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def main() -> None:
    """Measure, print Markdown, and write JSON where asked."""
    smoke = {"widths": [64], "batches": [1, 16], "fit_widths": [64], "fit_rows": 4096, "seconds": 0.01}
    parser = Command(__doc__, PAGE, smoke=smoke)
    parser.add_argument("--widths", type=int, nargs="+", default=WIDTHS)
    parser.add_argument("--batches", type=int, nargs="+", default=BATCHES)
    parser.add_argument("--fit-widths", type=int, nargs="+", default=FIT_WIDTHS)
    parser.add_argument("--fit-rows", type=int, default=FIT_ROWS)
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of each case")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers here, too")
    options = parser.read()
    start = time.perf_counter()
    engine = engines.engine().name
    ready = time.perf_counter() - start
    load = os.getloadavg()[0]
    print(f"{processor()}, {os.cpu_count()} CPUs, load {load:.1f}; NumPy {np.__version__}; ", end="")
    print(f"engine {engine}, ready in {ready:.1f} s\n")
    pairs = [(width, batch) for width in options.widths for batch in options.batches]
    cases = [found for pair in pairs if (found := case(*pair, options.seconds)) is not None]
    print(table(cases))
    fits = fit_cases(options.fit_widths, options.fit_rows, options.seconds)
    print(f"\n{fit_table(fits)}")
    if options.json:
        numbers = {"processor": processor(), "load": load, "engine": engine, "paper_seconds": PAPER_SECONDS}
        options.json.write_text(json.dumps({**numbers, "cases": cases, "fits": fits}, indent=2) + "\n")


if __name__ == "__main__":
    main()
