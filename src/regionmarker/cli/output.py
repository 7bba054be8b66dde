"""What people and programs see: tables and progress on stderr, one JSON object on stdout."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from rich.console import Console
from rich.markup import escape
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table

people = Console(stderr=True, highlight=False)


def answer(facts: Mapping[str, object], *, as_json: bool, title: str = "") -> None:
    """Show the outcome of a command: a table for people, or one JSON object for programs."""
    if as_json:
        sys.stdout.write(json.dumps(facts, default=str) + "\n")
        return
    console = Console(highlight=False)
    if title:
        console.print(title, style="italic", markup=False)  # a table's own title would wrap at the table's width
    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(style="bold")
    table.add_column(overflow="fold")
    for name, value in facts.items():
        table.add_row(name.replace("_", " "), escape(_shown(value)))
    console.print(table)


def _shown(value: object) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(str(part) for part in value) or "none"
    return "none" if value is None or value == "" else str(value)


@contextmanager
def progress(description: str, total: int | None, *, quiet: bool = False) -> Iterator[tuple[Progress, TaskID]]:
    """Show a progress bar with the time left, on stderr."""
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=people, transient=True, disable=quiet or not people.is_terminal) as bars:
        yield bars, bars.add_task(description, total=total)
