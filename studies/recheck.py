"""Compute a random share of the committed cells again, from raw texts and vectors, and compare.

    python -m studies.recheck --data-dir DATA --work recheck [--share 0.05] [--seed 0] [--encoder minilm=SPEC ...]

The cells are drawn from results/cells.parquet without looking at what they say. Each is computed by the code that is
here now, and compared with its row: whether it failed and what both tests decide must agree, numbers within what
another processor changes. Interrupted, it goes on where it was. It ends with 1 where anything differs.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from regionmarker.benchmark.grid import Grid, run_grid
from regionmarker.benchmark.grid.cell import CELL, NUMBERS, SECONDS, Cell
from regionmarker.benchmark.grid.output_folder import Store
from regionmarker.benchmark.tables.results_file import read_results
from regionmarker.errors import InputError
from studies._study import SMOKE_GRID, Command, markdown

PAGE = "docs/results/leaderboard.md"
CELLS = Path(__file__).parents[1] / "results" / "cells.parquet"
LEVEL = 1e-3
TOLERANCE = 1e-3
"""Of shares, cosines and statistics; of a p-value's exponent a hundred times as much, and this share of itself."""
CLASSIFIED = 0.01
"""Of accuracies and F1: the last bit of another processor turns a few of a thousand test texts round."""


def cell_of(row: Mapping[str, Any]) -> Cell:
    """Return the cell that a row is of."""
    given = {name: row[name] for name in CELL if name not in ("digest", "attack", "guilty", "parameters")}
    parameters = tuple(sorted(json.loads(row["parameters"]).items()))
    return Cell(**{**given, "attacks": tuple(row["attacks"])}, parameters=parameters)


def drawn(rows: Sequence[Mapping[str, Any]], share: float, seed: int) -> list[Mapping[str, Any]]:
    """Draw a share of the rows, at least one, in their order."""
    count = max(1, round(share * len(rows)))
    return [rows[place] for place in sorted(np.random.default_rng(seed).choice(len(rows), count, replace=False))]


def difference(name: str, before: float | None, after: float | None) -> float:
    """Return how far two numbers of one column are apart, in units of what is allowed.

    What was not measured then cannot disagree; what is no longer there is infinitely far.
    """
    if before is None or math.isnan(before):
        return 0.0
    if after is None or math.isnan(after):
        return math.inf
    old, new = float(before), float(after)
    if name in ("decoy_p", "published_p"):
        logs = [math.log10(max(value, 1e-300)) for value in (old, new)]
        return abs(logs[0] - logs[1]) / (TOLERANCE * (100 + abs(logs[0])))
    allowed = CLASSIFIED if name.endswith(("_accuracy", "_f1")) else TOLERANCE
    return abs(old - new) / (allowed * max(1.0, abs(old)))


def disagreements(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return what differs between a committed row and the same cell, computed again."""
    if (before["error"] is None) != (after["error"] is None):
        return [f"error: {before['error']} / {after['error']}"]
    found = [
        f"{name}: {before[name]} / {after[name]}"
        for name in NUMBERS
        if name not in SECONDS and difference(name, before[name], after[name]) > 1
    ]
    for name, said in (
        ("caught", [row["decoy_p"] is not None and row["decoy_p"] <= LEVEL for row in (before, after)]),
        ("published_copy", [row["published_copy"] for row in (before, after)]),
    ):
        found += [f"{name}: {said[0]} / {said[1]}"] if said[0] != said[1] else []
    return found


def main() -> int:
    command = Command(__doc__, PAGE, data=True, smoke={"share": 0.5})
    command.add_argument("--results", type=Path, default=CELLS, help="a file of results, or a folder of bench run")
    command.add_argument("--work", type=Path, default=Path("recheck"), help="a folder for finished cells")
    command.add_argument("--share", type=float, default=0.05)
    command.add_argument("--seed", type=int, default=0, help="of the draw")
    command.add_argument("--encoder", action="append", default=[], metavar="NAME=SPEC", help="what @NAME stands for")
    command.add_argument("--workers", type=int, default=2)
    given = command.read()
    if not 0 < given.share <= 1:
        command.error(f"--share must lie above 0 and be at most 1, but is {given.share:g}")
    if unnamed := [entry for entry in given.encoder if not all(entry.partition("="))]:
        command.error(f"--encoder {unnamed[0]!r}: write NAME=SPEC, such as minilm=sentence-transformers:FOLDER")
    encoders = tuple(tuple(entry.split("=", 1)) for entry in given.encoder)
    try:
        if given.smoke:  # two cells of our own in the place of the committed ones
            given.results = given.work.with_name("first")
            run_grid(Grid.parse(SMOKE_GRID), given.results, engine="here")
        committed = read_results(given.results).rows
        rows = drawn(committed, given.share, given.seed)
        grid = Grid(tuple(map(cell_of, rows)), encoders)
        run_grid(grid, given.work, data_dir=given.data_dir, workers=given.workers, say=print)
    except InputError as error:
        sys.exit(f"recheck: {error}")
    again = Store.reading(given.work).rows()
    differing = [
        (before, found) for before, after in zip(rows, again, strict=True) if (found := disagreements(before, after))
    ]
    shown = [
        [row["corpus"], row["defense"], row["attack"], row["suspect"], str(row["seed"]), "; ".join(found)]
        for row, found in differing
    ]
    exact = sum(
        all(difference(name, before[name], after[name]) < 1e-9 for name in NUMBERS if name not in SECONDS)
        for before, after in zip(rows, again, strict=True)
    )
    print(f"{len(rows)} of {len(committed)} cells computed again: {exact} equal to nine digits, "
          f"{len(rows) - exact - len(differing)} within the tolerance, {len(differing)} differ")  # fmt: skip
    if differing:
        print(markdown(["corpus", "defense", "attack", "suspect", "seed", "committed / now"], shown))
    return 1 if differing else 0


if __name__ == "__main__":
    sys.exit(main())
