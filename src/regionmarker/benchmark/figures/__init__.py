"""Figures from rows of results, as SVG with the same bytes for the same numbers: the diagram, portraits of the mark.

curves.py holds sweeps, fidelity, attacks, false positives and trade-off; thefts.py what a thief bought and how well he
copied. What the rows do not allow is left out.
"""

from __future__ import annotations

import json
import re
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path
from typing import Any

import numpy as np

from regionmarker.benchmark.figures.curves import curves
from regionmarker.benchmark.figures.thefts import thefts
from regionmarker.benchmark.grid.cell import PORTRAIT
from regionmarker.benchmark.tables.results import Results, corpus_title, label, without_seeds
from regionmarker.files import write_whole
from regionmarker.plots import GROUPS, MARKED, PLAIN, Axes, Draw, Figure, panels, svg

__all__ = ["Picture", "make_figures", "write_figures"]

Portraits = dict[str, dict[str, Any]]
"""Data of the pictures of the mark, by what they are called."""
_REDUCERS = {
    "pca": "PCA", "svd": "SVD", "autoencoder": "auto-encoder", "umap": "UMAP", "none": "no reduction",
    "pca, uncentred": "PCA, uncentred", "none, uncentred": "no reduction, uncentred",
}  # fmt: skip
_BOXES = {
    "text": (0.02, 0.62, "a customer's text", PLAIN),
    "clean": (0.22, 0.62, "clean vector e", PLAIN),
    "region": (0.42, 0.62, "region of the\nsecret space", PLAIN),
    "served": (0.62, 0.62, "served vector e_p:\na little of a target in\ntrigger regions", MARKED),
    "copy": (0.82, 0.62, "a thief's copy\nlearns the mark", MARKED),
    "key": (0.42, 0.08, "key: reducer, hyperplanes,\ntrigger regions, targets", PLAIN),
    "probes": (0.62, 0.08, "probes of all regions,\nand the pool", PLAIN),
    "verdict": (0.82, 0.08, "decoy test: the true\ntargets among all that\nmight have been drawn", MARKED),
}
_ARROWS = (("text", "clean"), ("clean", "region"), ("region", "served"), ("served", "copy"), ("key", "region"),
           ("key", "probes"), ("probes", "copy"), ("copy", "verdict"))  # fmt: skip
_WIDTH, _HEIGHT = 0.165, 0.3


@dataclass(frozen=True)
class Picture:
    """A figure as SVG, with its name and what it shows."""

    name: str
    caption: str
    svg: str


def make_figures(rows: Sequence[Mapping[str, Any]]) -> list[Picture]:
    """Return every figure that the rows allow."""
    results = without_seeds(rows)
    drawn = [("framework", "What is served, what is stolen, and how a suspect is judged.", _framework)]
    drawn += [*_portraits(results), *curves(results), *thefts(results)]
    return [Picture(name, caption, svg(name, _headed(caption, draw))) for name, caption, draw in drawn]


def _headed(caption: str, draw: Draw) -> Draw:
    """Put the first sentence of its caption over a figure: it is looked at without its page, too."""

    def drawn() -> Figure:
        figure = draw()
        words = re.split(r"[:;.](?= |$)", caption)[0]
        figure.suptitle("\n".join(textwrap.wrap(words, int(figure.get_figwidth() * 14))), fontweight="bold")
        return figure

    return drawn


def write_figures(rows: Sequence[Mapping[str, Any]], folder: Path) -> list[Path]:
    """Draw every figure into a folder; return what was written."""
    pictures = make_figures(rows)
    folder.mkdir(parents=True, exist_ok=True)
    return [write_whole(folder / f"{picture.name}.svg", picture.svg) for picture in pictures]


# ---- the diagram


def _framework() -> Figure:
    figure = Figure(figsize=(9.8, 2.6), layout="constrained")
    axes: Axes = figure.subplots()
    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.set_axis_off()
    for left, low, words, colour in _BOXES.values():
        axes.text(
            left + _WIDTH / 2, low + _HEIGHT / 2, words, ha="center", va="center",
            bbox={"boxstyle": "round,pad=0.5", "facecolor": "white", "edgecolor": colour, "linewidth": 1.4},
        )  # fmt: skip
    for start, end in _ARROWS:
        axes.annotate("", _edge(end, start), _edge(start, end), arrowprops={"arrowstyle": "->", "color": "#4a5362"})
    return figure


def _edge(of: str, towards: str) -> tuple[float, float]:
    """Return the point of a box's edge that faces another box."""
    left, low, *_ = _BOXES[of]
    other_left, other_low, *_ = _BOXES[towards]
    middle_x, middle_y = left + _WIDTH / 2, low + _HEIGHT / 2
    if abs(other_low - low) > 0.1 and abs(other_left - left) < 0.1:
        return middle_x, middle_y + (0.2 if other_low > low else -0.2)
    if abs(other_low - low) > 0.1:
        return middle_x + (0.06 if other_left > left else -0.06), middle_y + (0.2 if other_low > low else -0.2)
    return middle_x + (0.085 if other_left > left else -0.085), middle_y


# ---- portraits: region balance, t-SNE before and after, cos(e, e_p)


def _portraits(results: Results) -> Iterable[tuple[str, str, Draw]]:
    rows = results.where(lambda row: row["suspect"] == PORTRAIT and bool(row["extras"]))
    if not rows:
        return
    corpora: Portraits = {corpus_title(row["corpus"]): json.loads(row["extras"]) for row in rows}
    several = len(rows.by(lambda row: label(row["defense"]))) > 1
    found: Portraits = {
        f"{corpus_title(row['corpus'])}, {label(row['defense'])}" if several else corpus_title(row["corpus"]):
            json.loads(row["extras"])
        for row in rows
    }  # fmt: skip
    caption = "Share of the texts in each region, by reduction (the paper shows SST-2)."
    yield "region-balance", caption, lambda: _balance(corpora)  # of the corpus alone, whatever marks it
    yield "cosines", "How far marking moves marked vectors: cos(e, e_p), all quantiles.", lambda: _cosines(found)
    yield "maps", "t-SNE before and after marking; marked texts in red.", lambda: _maps(found)


def _balance(corpora: Portraits) -> Figure:
    names = [name for name in _REDUCERS if all(name in extras["regions"] for extras in corpora.values())]
    figure, grid = panels(len(corpora) * len(names), across=4, width=2.2, height=2.0)
    for axes, (corpus, reducer) in zip(grid, ((c, r) for c in corpora for r in names), strict=True):
        shares = corpora[corpus]["regions"][reducer]
        axes.set_title(f"{corpus}\n{_REDUCERS[reducer].replace(', ', chr(10))}")
        if isinstance(shares, str):
            axes.text(0.5, 0.5, "no key possible", ha="center", va="center", transform=axes.transAxes)
            axes.set_axis_off()
            continue
        axes.bar(range(len(shares)), np.array(shares) * 100, color=PLAIN)
        axes.axhline(100 / len(shares), color=MARKED, linewidth=0.8)
        axes.set(xlabel="region", ylabel="texts, %")
    return figure


def _cosines(found: Portraits) -> Figure:
    figure, (axes,) = panels(1, width=4.6, height=2.6)
    for (name, extras), colour in zip(found.items(), cycle(GROUPS), strict=False):
        quantiles = extras["cosine_quantiles"]
        if quantiles:
            axes.plot(quantiles, np.linspace(0, 1, len(quantiles)), color=colour, label=name)
    axes.set(xlabel="cos(e, e_p) of marked texts", ylabel="share of them below")
    axes.legend()
    return figure


def _maps(found: Portraits) -> Figure:
    figure, grid = panels(2 * len(found), across=2, width=3.2, height=2.8)
    for axes, (name, when) in zip(grid, ((n, w) for n in found for w in ("before", "after")), strict=True):
        places, marked = np.array(found[name][f"map_{when}"]), np.array(found[name]["map_marked"], dtype=bool)
        for rows, colour in ((~marked, PLAIN), (marked, MARKED)):
            axes.scatter(places[rows, 0], places[rows, 1], s=3, color=colour, linewidths=0)
        axes.set(title=f"{name}, {when} marking", xticks=[], yticks=[])
    return figure
