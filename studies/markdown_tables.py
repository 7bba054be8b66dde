"""Markdown tables and a log of finished rows, for the benchmarks beside this file."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

Row = dict[str, object]


class Log:
    """Rows that are computed once: a run that was interrupted goes on where it was."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self.rows: list[Row] = []
        if path.exists():
            lines = path.read_text().split("\n")[:-1]  # a line without its end was not finished
            self.rows = [json.loads(line) for line in lines]
            path.write_text("".join(line + "\n" for line in lines))

    def once(self, key: Row, compute: Callable[[], Row]) -> None:
        """Compute a row unless it is there."""
        if any(all(row.get(name) == value for name, value in key.items()) for row in self.rows):
            return
        row = key | compute()
        with self._path.open("a") as file:
            file.write(json.dumps(row) + "\n")
        self.rows.append(row)
        print(" ".join(f"{name}={value}" for name, value in row.items()), flush=True)

    def of(self, **wanted: object) -> list[Row]:
        """Return the rows that have all these values."""
        return [row for row in self.rows if all(row.get(name) == value for name, value in wanted.items())]


def markdown(header: Sequence[str], body: Sequence[Sequence[str]]) -> str:
    """Return a table."""
    lines = ["| " + " | ".join(header) + " |", "|" + "---|" * len(header)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in body])


def spread(values: Sequence[float], digits: int) -> str:
    """Mean ± standard deviation."""
    return f"{np.mean(values):.{digits}f} ± {np.std(values, ddof=min(1, len(values) - 1)):.{digits}f}"


def numbers(rows: Sequence[Row], name: str) -> list[float]:
    """Return one column."""
    return [float(row[name]) for row in rows if row.get(name) is not None]  # type: ignore[arg-type]
