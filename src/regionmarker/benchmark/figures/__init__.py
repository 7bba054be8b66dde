"""Figures from rows of results, as SVG with the same bytes for the same numbers.

    drawing.py       style and bytes
    framework.py     the diagram
    portraits.py     region balance, t-SNE, cos(e, e_p)
    curves.py        sweeps, fidelity, attacks, false positives, trade-off

What the rows do not allow is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from regionmarker.benchmark.tables.results import without_seeds
from regionmarker.files import atomic_path

__all__ = ["Picture", "make_figures", "write_figures"]


@dataclass(frozen=True)
class Picture:
    """A figure as SVG, with its name and what it shows."""

    name: str
    caption: str
    svg: str


def make_figures(rows: Sequence[Mapping[str, Any]]) -> list[Picture]:
    """Return every figure that the rows allow."""
    from regionmarker.benchmark.figures.curves import curves
    from regionmarker.benchmark.figures.framework import framework
    from regionmarker.benchmark.figures.portraits import portraits
    from regionmarker.plots import svg

    results = without_seeds(rows)
    drawn = [("framework", "What is served, what is stolen, and how a suspect is judged.", framework)]
    drawn += [*portraits(results), *curves(results)]
    return [Picture(name, caption, svg(name, draw)) for name, caption, draw in drawn]


def write_figures(rows: Sequence[Mapping[str, Any]], folder: Path) -> list[Path]:
    """Draw every figure into a folder; return what was written."""
    pictures = make_figures(rows)
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for picture in pictures:
        with atomic_path(folder / f"{picture.name}.svg") as temporary:
            temporary.write_text(picture.svg, encoding="utf-8")
        written.append(folder / f"{picture.name}.svg")
    return written
