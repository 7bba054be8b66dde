"""What people and programs see: tables and progress for people, one JSON object on stdout for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from regionmarker.progress import Bar, bar, stderr_console

stderr = stderr_console()


def print_result(facts: Mapping[str, object], *, as_json: bool, title: str = "") -> None:
    """Print the outcome of a command on stdout: a table for people, or one JSON object for programs."""
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


def progress(
    description: str, total: int | None = None, *, quiet: bool = False, in_bytes: bool = False
) -> AbstractContextManager[Bar]:
    """Show a progress bar on stderr while a command runs, to people only."""
    return bar(description, total, shown=stderr.is_terminal and not quiet, transient=True, in_bytes=in_bytes)
