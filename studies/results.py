"""Fill the results into the pages: every marked place of README, CHANGELOG and docs, from the file of all cells.

    python -m studies.results [--check]

A place names a selection of rows (results/selections.toml) and what is shown of it: a table of `bench table`, or a
number. Tables and figures go to the folders that a selection names. `--check` writes nothing, tells what is stale, and
ends with 1 where anything is.
"""

from __future__ import annotations

import re
import statistics
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from regionmarker.benchmark.tables import Results, Table, make_tables, write_tables
from regionmarker.benchmark.tables.results import LEVEL, share, shown_interval, shown_p, without_seeds
from regionmarker.benchmark.tables.results_file import read_results
from regionmarker.benchmark.tables.summary import LOOSE_LEVEL, SETUP, Tally, chosen, summary
from regionmarker.errors import InputError
from regionmarker.files import write_whole
from studies._study import Command

PAGE = "docs/reference/results.md"
ROOT = Path(__file__).parents[1]
_PLACE = re.compile(r"<!-- result: (.*?) -->(.*?)<!-- (/?result)\b[^>]*-->", re.DOTALL)
_FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)

_OPTIONS = ("where", "level", "by", "tables", "figures", "pictures", "title")

EVERY = "every"
"""In place of a selection's name: all selections with a title that have this table, one below the other."""

NUMBERS: dict[str, Callable[[Tally], str]] = {
    "cells": lambda of: f"{len(of.rows):,}",
    "failed": lambda of: str(of.numbers()["failed"]),
    "copies": lambda of: f"{of.caught[1]:,}",
    "caught": lambda of: share(of.caught),
    "interval": lambda of: shown_interval(of.caught),
    "blameless": lambda of: share(of.blameless(of.level)),
    "blameless-loosely": lambda of: share(of.blameless(LOOSE_LEVEL)),
    "called-copies": lambda of: share(of.rows.copies.called_copies()),
    "blameless-called-copies": lambda of: share(of.rows.innocents.called_copies()),
    "smallest-p": lambda of: shown_p(of.p_values[0]),
    "median-p": lambda of: shown_p(statistics.median(of.p_values)),
    "largest-p": lambda of: shown_p(of.p_values[-1]),
    "kept": lambda of: f"{of.kept:.3f}",
    "fidelity": lambda of: f"{of.fidelity:.2f}",
}
"""What a place may show of a selection beside its tables."""


@dataclass(frozen=True)
class Selection:
    """Some rows under a name."""

    name: str
    rows: Results
    level: float = LEVEL
    by: tuple[str, ...] = SETUP
    tables_folder: Path | None = None
    figures_folder: Path | None = None
    pictures: tuple[str, ...] = ()
    title: str = ""

    @cached_property
    def tables(self) -> dict[str, Table]:
        found = [*make_tables(self.rows.rows), *summary(without_seeds(self.rows.rows), self.by, self.level)]
        return {table.name: table for table in found}

    def show(self, what: str) -> str:
        """Return a table or a number, as a page takes it."""
        if not len(self.rows):
            raise InputError(f"{self.name}.{what}: no row of the results is in this selection")
        if what in NUMBERS:
            try:
                return NUMBERS[what](Tally(without_seeds(self.rows.rows), self.level))
            except (IndexError, TypeError, statistics.StatisticsError):
                raise InputError(f"{self.name}.{what}: the selection has no copy to tell it of") from None
        if what not in self.tables:
            known = ", ".join([*NUMBERS, *self.tables])
            raise InputError(f"{self.name}.{what}: there is no such number or table: use {known}")
        return f"\n\n{self.tables[what].body()}\n\n"

    def section(self, what: str) -> str:
        """Return a table under a heading, with the rows that it was made of."""
        names = {of: map(str, sorted({row[of] for row in self.rows})) for of in ("corpus", "provider", "seed")}
        told = "; ".join(f"{of}: {', '.join(found)}" for of, found in names.items())
        return f"## {self.title}\n\n{len(self.rows):,} cells; {told}.{self.show(what).rstrip()}\n"


@dataclass(frozen=True)
class Book:
    """The rows, the selections of them, and the pages below a root."""

    root: Path
    selections: Mapping[str, Selection] = field(default_factory=dict)

    @classmethod
    def open(cls, root: Path = ROOT, rows: list[dict[str, Any]] | None = None) -> Book:
        """Read the file of all cells, unless rows are given, and the selections."""
        given = read_results(root / "results" / "cells.parquet").rows if rows is None else rows
        text = (root / "results" / "selections.toml").read_text(encoding="utf-8")
        found = {}
        for name, options in tomllib.loads(text).items():
            unknown = options.keys() - set(_OPTIONS)
            if unknown:
                raise InputError(f"selections.toml: [{name}] has {min(unknown)!r}: use {', '.join(_OPTIONS)}")
            folders = [root / options[kind] if kind in options else None for kind in ("tables", "figures")]
            rows_of = chosen(Results(given), options.get("where", {}))
            by = tuple(options.get("by", SETUP))
            level, pictures = options.get("level", LEVEL), tuple(options.get("pictures", ()))
            found[name] = Selection(name, rows_of, level, by, *folders, pictures, options.get("title", ""))
        return cls(root, found)

    def filled(self, text: str) -> str:
        """Return a page with every marked place as the results have it; what stands in a fenced block stays."""
        parts = _FENCED.split(text)
        parts[::2] = [_PLACE.sub(self._place, part) for part in parts[::2]]
        for part in parts[::2]:
            if len(re.findall(r"<!-- result: ", part)) != len(re.findall(r"<!-- /result -->", part)):
                raise InputError("a marked place is not closed: write <!-- /result --> behind it")
        return "".join(parts)

    def _place(self, match: re.Match[str]) -> str:
        name, _, end = match.groups()
        selection, dot, what = name.partition(".")
        if end != "/result":
            raise InputError(f"the place {name} is not closed: write <!-- /result --> behind it")
        if selection == EVERY:
            having = [of for of in self.selections.values() if of.title and len(of.rows) and what in of.tables]
            if not having:
                raise InputError(f"the place {name}: no selection with a title has a table {what!r}")
            return f"<!-- result: {name} -->\n\n" + "\n".join(of.section(what) for of in having) + "\n<!-- /result -->"
        if not dot or selection not in self.selections:
            raise InputError(f"the place {name}: write SELECTION.WHAT with a selection of results/selections.toml")
        return f"<!-- result: {name} -->{self.selections[selection].show(what)}<!-- /result -->"

    def pages(self) -> list[Path]:
        return sorted([*self.root.glob("*.md"), *(self.root / "docs").rglob("*.md")])

    def renewed(self) -> Iterator[tuple[Path, str]]:
        """Yield the pages that are stale, each with its text as it should be."""
        for page in self.pages():
            text = page.read_text(encoding="utf-8")
            try:
                found = self.filled(text)
            except InputError as error:
                raise InputError(f"{page.relative_to(self.root)}: {error}") from None
            if found != text:
                yield page, found

    def made(self, folder: Path) -> Iterator[tuple[Path, str]]:
        """Yield the tables and figures that are stale, each with what it should be; ``folder`` is for the moment."""
        from regionmarker.benchmark.figures import write_figures

        for selection in self.selections.values():
            if selection.tables_folder is not None:
                files = [path for path in write_tables(selection.rows.rows, folder / f"{selection.name}-tables")
                         if path.name == "tables.md" or path.suffix == ".csv"]  # fmt: skip
                for path in files:
                    below = Path("csv", path.name) if path.suffix == ".csv" else Path(path.name)
                    yield from _stale(selection.tables_folder / below, path.read_text(encoding="utf-8"))
            if selection.figures_folder is not None:
                drawn = write_figures(selection.rows.rows, folder / f"{selection.name}-figures")
                for path in (path for path in drawn if not selection.pictures or path.stem in selection.pictures):
                    yield from _stale(selection.figures_folder / path.name, path.read_text(encoding="utf-8"), _words)


def _stale(path: Path, text: str, compared: Callable[[str], object] = str) -> Iterator[tuple[Path, str]]:
    there = path.read_text(encoding="utf-8") if path.is_file() else ""
    if compared(there) != compared(text):
        yield path, text


def _words(svg: str) -> list[str]:
    """Return the texts of a drawing: another version of matplotlib may draw the same picture with other bytes."""
    return sorted(re.findall(r"<text[^>]*>(.*?)</text>", svg, re.DOTALL))


def main() -> int:
    import tempfile

    command = Command(__doc__, PAGE, smoke={"check": True})
    command.add_argument("--check", action="store_true", help="write nothing; end with 1 where a page is stale")
    given = command.read()
    with tempfile.TemporaryDirectory() as folder:
        try:
            book = Book.open()
            stale = [*book.renewed(), *book.made(Path(folder))]
        except InputError as error:
            sys.exit(f"results: {error}")
    for path, text in stale:
        print(f"{'stale' if given.check else 'written'}: {path.relative_to(ROOT)}")
        if not given.check:
            path.parent.mkdir(parents=True, exist_ok=True)
            write_whole(path, text)
    print(f"{len(book.pages())} pages, {len(stale)} of them or of their tables and figures "
          f"{'stale: run make results' if given.check else 'written'}")  # fmt: skip
    return 1 if stale and given.check else 0


if __name__ == "__main__":
    sys.exit(main())
