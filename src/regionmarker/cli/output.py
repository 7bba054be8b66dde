"""What people and programs see: tables and progress for people, one JSON object on stdout for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager

from rich.console import Console
from rich.table import Table
from rich.text import Text

from regionmarker.progress import Bar, bar, stderr_console
from regionmarker.terminal import plain

stderr = stderr_console()


def print_result(facts: Mapping[str, object], *, as_json: bool, title: str = "") -> None:
    """Print the outcome of a command on stdout: a table for people, or one JSON object for programs."""
    if as_json:
        sys.stdout.write(json.dumps(facts, default=str) + "\n")
    else:
        print_table((), [(name.replace("_", " "), _shown(value)) for name, value in facts.items()], title=title)


def print_table(
    headings: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    title: str = "",
    right: bool = False,
    console: Console | None = None,
) -> None:
    """Print a table of plain text, by default on stdout; without headings the first column is bold instead."""
    console = console or Console(highlight=False)
    if title:
        console.print(plain(title), style="italic", markup=False)  # a table's own title would wrap at the table's width
    table = Table(show_header=bool(headings), box=None, pad_edge=False)
    for heading in headings:
        table.add_column(heading, overflow="fold", justify="right" if right else "left")
    for row in rows:
        if not table.columns:
            table.add_column(style="bold")
            for _ in row[1:]:
                table.add_column(overflow="fold")
        table.add_row(*(Text(plain(cell)) for cell in row))  # as it stands: a name may hold brackets, or worse
    console.print(table)


def _shown(value: object) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(str(part) for part in value) or "none"
    return "none" if value is None or value == "" else str(value)


COLOURS = {
    "infringement": "bold white on red",
    "no evidence": "bold white on green",
    "inconclusive": "bold black on yellow",
    "confirmed": "bold white on green",
    "nobody named": "bold black on yellow",
    "tenant named": "bold white on red",
    "tenants named": "bold white on red",
}
REFUSED = "bold white on magenta"


def banner(word: str, sentence: str, style: str | None = None) -> None:
    """Print the one thing that nobody may overlook, and what it means."""
    console = Console(highlight=False)
    console.print(Text(f"  {plain(word).upper()}  ", style=style or COLOURS.get(word, REFUSED)))
    console.print(Text(plain(sentence)), soft_wrap=not console.is_terminal)


def print_list(heading: str, lines: Sequence[str]) -> None:
    """Print sentences or commands under a heading, on stdout, none of them broken."""
    console = Console(highlight=False, soft_wrap=True)
    if lines:
        console.print(Text(f"\n{heading}", style="bold"))
    for line in lines:
        console.print(Text(f"  - {plain(line)}"))


def progress(
    description: str, total: int | None = None, *, quiet: bool = False, in_bytes: bool = False
) -> AbstractContextManager[Bar]:
    """Show a progress bar on stderr while a command runs, to people only."""
    return bar(description, total, shown=stderr.is_terminal and not quiet, transient=True, in_bytes=in_bytes)
