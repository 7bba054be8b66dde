"""What every defense costs: set-up, a vector, a verification, side by side.

    python -m studies.defense_costs [--data-dir DIR] [--width 1536] [--out docs/results/timing.md]

Times are processor seconds of one thread, which a busy machine hurts least. Texts are the sentences of Python's
documentation, or with --data-dir those of SST-2, as in the paper; vectors are random, for the time does not depend on
them. The suspect answers from memory: asking costs nothing here.
"""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.stats  # noqa: F401 - loaded here, so that no defense is charged for it

from regionmarker import python_sentences
from regionmarker.benchmark.defenses import load_defense
from regionmarker.files import atomic_path
from regionmarker.verification.answers import Answers
from studies._study import Command, unit_rows

PAGE = "docs/results/timing.md"
SPECS = ("none", "embmarker", "warden", "espew", "wet", "geomark", "regionmarker")
PAPER = {
    "warden": (2.11e-6, 0.1440),
    "wet": (1.09e-4, 7.4499),
    "espew": (3.11e-5, 2.1231),
    "regionmarker": (5.57e-5, 3.8027),
}
"""The paper's timing table: seconds to inject a vector, and its "detection", which is the first times 68,221 texts."""
ROWS = 16_384
ROUNDS = 5
TEXT = """# What every defense costs

{what}, random unit vectors of width {width}, one thread of {machine}, processor seconds. Set-up is the best of two runs, a
vector the best of five taken in turn, a verification was timed once. Load average of the machine meanwhile: {load:.0f} on
{cores} cores, so the figures are rather too high than too low. A plain `np.copyto` of the same vectors took {copy:.2e} s per vector in the same run. From a checkout:

```sh
{command}
```

| defense | set-up, s | s per vector | vectors per second | verification, s | texts asked | paper: s per vector | paper: "detection", s |
|---|---|---|---|---|---|---|---|
{table}

- *Set-up* is `fit`; *a vector* is `transform` of all of them at once, checks included.
- *Verification* is from the suspect's answers in memory to both results: the published statistics, and the decoy test
  over 4,096 candidates (regionmarker: 1,024 for each of its three regions), for the first suspect of a defense; what is
  factored for it serves the next.
- The paper's last column is the column before it times 68,221 texts, within the rounding: no measurement of a
  verification. Its machine and software are not ours.
"""  # noqa: E501 - a table's head is one line


class Row(NamedTuple):
    """One defense's times, in processor seconds."""

    spec: str
    setup: float
    vector: float
    verification: float
    asked: int


def read_texts(data: Path | None, rows: int) -> tuple[str, list[str]]:
    """Return what the texts are, and as many distinct ones as are timed or there are."""
    if data is None:
        return "sentences of Python's documentation", python_sentences(rows)
    import pyarrow.parquet as pq

    texts = pq.read_table(data / "sst2.parquet", columns=["text"])["text"].to_pylist()
    return "sentences of SST-2", list(dict.fromkeys(texts))[:rows]


def best_of_each(jobs: dict[str, Callable[[], Any]], rounds: int) -> dict[str, float]:
    """Time the jobs in turn and keep each one's best, in processor seconds a call."""
    best = dict.fromkeys(jobs, float("inf"))
    for _ in range(rounds):
        for name, job in jobs.items():
            start = time.process_time()
            job()
            best[name] = min(best[name], time.process_time() - start)
    return best


def answers_to(texts: Sequence[str], width: int) -> Answers:
    """Return the answers of a suspect that has nothing to do with anything."""
    return Answers("a stranger", tuple(texts), unit_rows(len(texts), width, seed=7))


def measure(texts: list[str], width: int, specs: Sequence[str]) -> tuple[list[Row], float]:
    """Time every defense, and a plain copy of the vectors."""
    clean = unit_rows(len(texts), width, seed=1)
    defenses: dict[str, Any] = {}

    def fit(spec: str) -> None:
        defenses[spec] = load_defense(spec, seed=1).fit(texts, clean)

    fits = best_of_each({spec: lambda spec=spec: fit(spec) for spec in specs}, rounds=2)
    out = np.empty_like(clean)
    marking: dict[str, Callable[[], Any]] = {
        spec: lambda defense=defense: defense.transform(clean, texts) for spec, defense in defenses.items()
    }
    marks = best_of_each({"copy": lambda: np.copyto(out, clean), **marking}, ROUNDS)
    given = {spec: answers_to(defense.probes(), width) for spec, defense in defenses.items()}
    # Once: what a first suspect makes a defense factor serves the next.
    checks = best_of_each({spec: lambda spec=spec: defenses[spec].judge(given[spec]) for spec in specs}, rounds=1)
    rows = [Row(spec, fits[spec], marks[spec] / len(texts), checks[spec], len(given[spec])) for spec in specs]
    return rows, marks["copy"] / len(texts)


def page(rows: list[Row], copy: float, what: str, width: int, command: str) -> str:
    """Lay out the page."""
    table = []
    for row in rows:
        paper = PAPER.get(row.spec)
        theirs = f"{paper[0]:.2e} | {paper[1]:.4f}" if paper else "- | -"
        ours = f"{row.setup:.3f} | {row.vector:.2e} | {1 / row.vector:,.0f} | {row.verification:.2f} | {row.asked:,}"
        table.append(f"| {row.spec} | {ours} | {theirs} |")
    machine = f"{platform.machine()} under Python {platform.python_version()}"
    return TEXT.format(
        what=what,
        width=width,
        machine=machine,
        load=os.getloadavg()[0],
        cores=os.cpu_count(),
        copy=copy,
        command=command,
        table="\n".join(table),
    )


def main() -> None:
    """Measure, print, and write where asked."""
    small = ["none:pool=128", "wet:pool=128,probes=64", "regionmarker:pool=128"]
    parser = Command(__doc__, PAGE, smoke={"width": 64, "rows": 1000, "specs": small})
    parser.add_argument("--data-dir", "--data", type=Path, help="the folder of sst2.parquet")
    parser.add_argument("--rows", type=int, default=ROWS, help="texts and vectors")
    parser.add_argument("--specs", nargs="+", default=SPECS, help="the defenses")
    parser.add_argument("--width", type=int, default=1536, help="the vectors' width")
    parser.add_argument("--out", type=Path, help="where to write the page")
    given = parser.read()
    what, texts = read_texts(given.data_dir, given.rows)
    rows, copy = measure(texts, given.width, given.specs)
    data, out = (" --data-dir DATA" if given.data_dir else ""), given.out or "FILE"
    command = f"python -m studies.defense_costs{data} --width {given.width} --out {out}"
    text = page(rows, copy, f"{len(texts):,} {what}", given.width, command)
    print(text)
    if given.out is not None:
        given.out.parent.mkdir(parents=True, exist_ok=True)
        with atomic_path(given.out) as temporary:
            temporary.write_text(text, "utf-8")


if __name__ == "__main__":
    main()
