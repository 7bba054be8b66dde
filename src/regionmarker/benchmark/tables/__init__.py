"""Tables from rows of results: the paper's with its numbers beside ours, and those that it left out.

    results.py           rows, chosen, grouped and summed up
    published.py         the paper's numbers (published.csv)
    paper_tables.py      the paper's tables
    power.py             false positives; every attack against every defense; power as a function of everything
    prices.py            what attacks cost the thief, and what they leave of each mark
    leaderboard.py       the leaderboard, and verdicts on the abstract
    table.py             Markdown, LaTeX, CSV

Tables iterate over the rows: whatever defense is in them is shown, those of other packages too. What the rows do not
allow is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from regionmarker.benchmark.tables import leaderboard, paper_tables, power, prices
from regionmarker.benchmark.tables.results import Results, without_seeds
from regionmarker.benchmark.tables.table import Table
from regionmarker.files import write_whole

_MAKERS = (
    leaderboard.claims,
    leaderboard.leaderboard,
    power.every_attack,
    prices.prices,
    power.false_positives,
    paper_tables.motivation,
    paper_tables.main_tables,
    paper_tables.paraphrasing,
    paper_tables.dimension_wise,
    paper_tables.ablations,
    paper_tables.reducers,
    paper_tables.fine_tuning,
    paper_tables.stealers,
    paper_tables.timing,
    power.by_fidelity,
    power.sweeps,
    power.trade_off,
    power.errors,
)

__all__ = ["Results", "Table", "make_tables", "write_tables"]


def make_tables(rows: Sequence[Mapping[str, Any]]) -> list[Table]:
    """Return every table that the rows allow."""
    results = without_seeds(rows)
    return [table for maker in _MAKERS for table in maker(results)]


def write_tables(rows: Sequence[Mapping[str, Any]], folder: Path) -> list[Path]:
    """Write every table as Markdown, LaTeX and CSV, and all of them as one Markdown file; return what was written."""
    tables = make_tables(rows)
    folder.mkdir(parents=True, exist_ok=True)
    written = [write_whole(folder / "tables.md", "\n".join(table.markdown() for table in tables))]
    for table in tables:
        forms = {"md": table.markdown(), "tex": table.latex(), "csv": table.csv()}
        written += [write_whole(folder / f"{table.name}.{suffix}", text) for suffix, text in forms.items()]
    return written
