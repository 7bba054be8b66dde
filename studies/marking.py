"""How fast marking is, beside plain copies of the same arrays in the same run.

    python -m studies.marking [--json FILE]

Every number is processor time on one thread. The jobs of a table take turns, so that a busy moment of a shared machine
hurts all alike; a ratio is the median over the rounds of a job's time divided by that of ``np.copyto`` of the same
array in the same round. A copy is the least that any marker has to do: read all, write all.
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
from regionmarker.marks.number_format import NumberFormat
from regionmarker.marks.plan import GradedPlan
from studies._study import Command, unit_rows

PAGE = "docs/results/performance.md"
WIDTHS = (256, 384, 768, 1536, 3072)
BATCHES = (1, 16, 256, 65_536)
WIDTH, ROWS = 1536, 65_536
PAPER_SECONDS = 5.57e-5  # a vector, the paper's own figure
SECONDS = 1.5  # of a case
LEAST_ROUNDS = 7
FIT_WIDTHS = (256, 768, 1536)
FIT_ROWS = 32_768
GRADED = {
    "graded, 16 + 24": (16, 24),
    "graded, 24 + 24": (24, 24),
    "graded and tenant, 16 + 48": (16, 48),
    "graded and tenant, 32 + 48": (32, 48),
}
"""Hyperplanes and carriers; a tenant's carriers stand beside the provider's."""
USUAL, WITH_TENANT = "graded, 16 + 24", "graded and tenant, 32 + 48"
Marking = Callable[..., Any]


def published(width: int, number_format: str = "float32") -> Marking:
    """Return ``transform`` of the published mark as 0.1.0 made it: 4 hyperplanes, 3 trigger regions, strength 0.2."""
    texts = [f"text {number}" for number in range(400)]
    marker = RegionMarker(dimension=4, seed=0, pool=64, reservoir=256, grid=number_format)
    return marker.fit(texts, embeddings=unit_rows(400, width)).transform


def graded(width: int, planes: int, carriers: int, number_format: str = "float32") -> Marking:
    """Return what marks by a graded mark of this size, half of the carriers pairs of hyperplanes."""
    rng = np.random.default_rng(planes)
    numbers = np.arange(carriers)
    plan = GradedPlan(
        planes=unit_rows(planes, width, seed=2) * np.float32(width**0.5),
        offsets=rng.standard_normal(planes) * 0.1,
        first=numbers % planes,
        second=np.where(numbers % 2 == 0, -1, (numbers * 7 + 3) % planes),
        centres=rng.standard_normal(carriers) * 0.1,
        amounts=rng.uniform(0.01, 0.03, carriers),
        directions=unit_rows(carriers, width, seed=3),
        number_format=NumberFormat(number_format),
    )
    return lambda rows, out=None: engines.mark(plan, rows, out)


def medians(jobs: dict[str, Callable[[], Any]], seconds: float, rounds: int = LEAST_ROUNDS) -> dict[str, Any]:
    """Time the jobs in turn; return each one's median in seconds per call, and its median ratio to the first."""
    times: dict[str, list[float]] = {name: [] for name in jobs}
    calls = {}
    for name, job in jobs.items():
        job()
        start = time.perf_counter()
        job()
        calls[name] = max(1, int(2e-3 / max(time.perf_counter() - start, 1e-9)))  # short jobs in bundles
    end = time.perf_counter() + seconds
    while len(times[name]) < rounds or time.perf_counter() < end:
        for name, job in jobs.items():
            start = time.process_time()
            for _ in range(calls[name]):
                job()
            times[name].append((time.process_time() - start) / calls[name])
    base = np.array(times[next(iter(jobs))])
    return {
        "seconds": {name: float(np.median(taken)) for name, taken in times.items()},
        "ratios": {name: float(np.median(np.array(taken) / np.maximum(base, 1e-9))) for name, taken in times.items()},
    }


def free_bytes() -> int:
    """Return how much memory can be taken."""
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def all_marks(width: int, batch: int, seconds: float) -> dict[str, Any]:
    """Measure every mark on every number format, into ``out=``; one row into an array of its own, as a caller would."""
    rows = unit_rows(batch, width)
    out = np.zeros_like(rows)
    target = None if batch == 1 else out
    jobs: dict[str, Callable[[], Any]] = {"copy": lambda: np.copyto(out, rows)}
    for number_format in NumberFormat:
        marks = {"published": published(width, number_format.value)}
        marks |= {name: graded(width, *size, number_format.value) for name, size in GRADED.items()}
        for name, marking in marks.items():
            jobs[f"{name}; {number_format.value}"] = lambda marking=marking: marking(rows, out=target)
    return {"width": width, "batch": batch, **medians(jobs, seconds)}


def table_of_marks(large: dict[str, Any], single: dict[str, Any]) -> str:
    """Lay the marks out in Markdown: ratios to a copy, how much a coarse format adds, one row in microseconds."""
    formats = ("float32", "float16", "bfloat16")
    lines = [
        "| mark | " + " | ".join(f"{name}, ratio" for name in formats)
        + " | float16 / float32 | " + " | ".join(f"one row {name}, us" for name in formats) + " |",
        "|---|" + "---:|" * 7,
    ]  # fmt: skip
    for mark in ("published", *GRADED):
        ratios = [large["ratios"][f"{mark}; {name}"] for name in formats]
        rows = [single["seconds"][f"{mark}; {name}"] * 1e6 for name in formats]
        numbers = [f"{ratio:.2f}" for ratio in (*ratios, ratios[1] / ratios[0])] + [f"{row:.1f}" for row in rows]
        lines.append(f"| {mark} | " + " | ".join(numbers) + " |")
    return "\n".join(lines)


def case(width: int, batch: int, seconds: float) -> dict[str, Any] | None:
    """Measure one width and batch on the float32 grid; None where memory is short."""
    if 3 * 4 * width * batch > free_bytes():
        return None
    rows, publish = unit_rows(batch, width), published(width)
    usual, tenant = graded(width, *GRADED[USUAL]), graded(width, *GRADED[WITH_TENANT])
    out = np.zeros_like(rows)
    inside = rows.copy() if batch <= 256 else out  # marked again and again: it stays of unit length
    jobs: dict[str, Callable[[], Any]] = {
        "copy": lambda: np.copyto(out, rows),
        "published": lambda: publish(rows, out=out),
        "graded": lambda: usual(rows, out=out),
        "tenant": lambda: tenant(rows, out=out),
        "in place": lambda: usual(inside, out=inside),
    }
    return {"width": width, "batch": batch, **medians(jobs, seconds)}


def table(cases: list[dict[str, Any]]) -> str:
    """Lay the cases out in Markdown."""
    lines = [
        "| width | batch | copy, us | graded, us | published | graded | graded and tenant | graded in place "
        "| graded, s per vector | paper's s / ours |",
        "|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for found in cases:
        seconds, each = found["seconds"], found["seconds"]["graded"] / found["batch"]
        ratios = " | ".join(f"{found['ratios'][name]:.2f}" for name in ("published", "graded", "tenant", "in place"))
        lines.append(
            f"| {found['width']} | {found['batch']:,} | {seconds['copy'] * 1e6:,.1f} | {seconds['graded'] * 1e6:,.1f} "
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

        taken = medians({"gram": gram, "survey": survey}, seconds, rounds=3)
        found.append({"width": width, "rows": rows_of_fit, **taken})
    return found


def fit_table(cases: list[dict[str, Any]]) -> str:
    """Lay the fits out in Markdown."""
    lines = ["| width | rows | Gram pass, s | streaming fit, s | ratio |", "|---:|---:|---:|---:|---:|"]
    for found in cases:
        gram, survey = found["seconds"]["gram"], found["seconds"]["survey"]
        ratio = found["ratios"]["survey"]
        lines.append(f"| {found['width']} | {found['rows']:,} | {gram:.2f} | {survey:.2f} | {ratio:.2f} |")
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
    smoke = {"widths": [64], "batches": [1, 16], "width": 64, "rows": 16, "fit_widths": [64], "fit_rows": 4096}
    parser = Command(__doc__, PAGE, smoke={**smoke, "seconds": 0.01})
    parser.add_argument("--width", type=int, default=WIDTH, help="of the table of marks")
    parser.add_argument("--rows", type=int, default=ROWS, help="of the table of marks")
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
    large, single = (all_marks(options.width, batch, options.seconds) for batch in (options.rows, 1))
    print(f"{options.rows:,} x {options.width}; a copy takes {large['seconds']['copy'] * 1e3:.1f} ms\n")
    print(f"{table_of_marks(large, single)}\n")
    pairs = [(width, batch) for width in options.widths for batch in options.batches]
    cases = [found for pair in pairs if (found := case(*pair, options.seconds)) is not None]
    print(table(cases))
    fits = fit_cases(options.fit_widths, options.fit_rows, options.seconds)
    print(f"\n{fit_table(fits)}\n\nload at the end {os.getloadavg()[0]:.1f}")
    if options.json:
        numbers = {"processor": processor(), "load": load, "engine": engine, "paper_seconds": PAPER_SECONDS}
        found = {"marks": [large, single], "cases": cases, "fits": fits}
        options.json.write_text(json.dumps({**numbers, **found}, indent=2) + "\n")


if __name__ == "__main__":
    main()
