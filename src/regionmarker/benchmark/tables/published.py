"""The paper's numbers, as printed: they stand beside ours and are never mixed with them."""

from __future__ import annotations

import csv
from functools import cache
from importlib.resources import files

ATTACKS = {
    "none": "none",
    "cse": "CSE",
    "paraphrase": "paraphrase-nllb",
    "shift": "dimension-shift",
    "truncate": "dimension-reduction",
    "permute": "Random Permutation of Dimensions",
    "tanh": "Non-linear Scaling of Embedding Values",
    "project": "Non-orthogonal Transformations",
}
"""Our attacks' names and the paper's. Our paraphrases are rule-based round trips, the paper's come from NLLB."""

RESISTED = {
    "embmarker": ("no", "no", "yes"),
    "warden": ("yes", "no", "yes"),
    "wet": ("yes", "yes", "no"),
    "espew": ("yes", "no", "yes"),
    "regionmarker": ("yes", "yes", "yes"),
    "published": ("yes", "yes", "yes"),
}
"""The paper's first table: CSE, paraphrasing, dimension perturbation."""

SECONDS = {"warden": 2.11e-6, "wet": 1.09e-4, "espew": 3.11e-5, "regionmarker": 5.57e-5, "published": 5.57e-5}
"""Injection of one vector. The paper's detection times are these times 68,221 texts, so they are no measurement."""

NAMES = {
    "warden": "WARDEN",
    "espew": "EspeW",
    "wet": "WET",
    "regionmarker": "RegionMarker",
    "published": "RegionMarker",
}


@cache
def published() -> tuple[dict[str, str], ...]:
    """Return the paper's eleven result tables, one row per cell.

    Examples
    --------
    >>> len(published())
    159
    """
    text = files(__package__).joinpath("published.csv").read_text(encoding="utf-8")
    return tuple(csv.DictReader(text.splitlines()))


def paper_rows(table: str, **equal: str) -> list[dict[str, str]]:
    """Return the rows of one of the paper's tables, or of all whose name ends so."""
    return [
        row
        for row in published()
        if row["table"].endswith(table) and all(row[name] == value for name, value in equal.items())
    ]


def paper_row(table: str, **equal: str) -> dict[str, str] | None:
    """Return the one row, if there is one.

    Examples
    --------
    >>> paper_row("attack-performance", dataset="sst2", defence="WET", attack="CSE")["accuracy"]
    '85.74'
    """
    return next(iter(paper_rows(table, **equal)), None)


def with_sd(row: dict[str, str] | None, column: str) -> str:
    """Return a number of the paper with its standard deviation, as ours are printed."""
    if row is None or not row[column]:
        return "-"
    sd = row.get(column.removesuffix("_pct") + "_sd", "")
    return f"{row[column]} ± {sd}" if sd else row[column]
