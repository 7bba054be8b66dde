"""The paper's pictures of the mark: region balance, t-SNE before and after, cos(e, e_p)."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import numpy as np

from regionmarker.benchmark.tables.results import CORPORA, Results
from regionmarker.plots import GROUPS, MARKED, PLAIN, Draw, Figure, panels

Portraits = dict[str, dict[str, Any]]
_REDUCERS = {"pca": "PCA", "svd": "SVD", "autoencoder": "auto-encoder", "umap": "UMAP", "none": "no reduction"}


def portraits(results: Results) -> Iterable[tuple[str, str, Draw]]:
    """Yield name, caption and drawing of every figure that the portraits allow."""
    found: Portraits = {
        row["corpus"]: json.loads(row["extras"]) for row in results if row["suspect"] == "portrait" and row["extras"]
    }
    if found:
        yield (
            "region-balance",
            "Share of the texts in each region, by reduction (the paper shows SST-2).",
            lambda: _balance(found),
        )
        yield "cosines", "How far marking moves marked vectors: cos(e, e_p), all quantiles.", lambda: _cosines(found)
        yield "maps", "t-SNE before and after marking; marked texts in red.", lambda: _maps(found)


def _balance(found: Portraits) -> Figure:
    names = list(_REDUCERS)
    figure, grid = panels(len(found) * len(names), across=len(names), width=2.0, height=1.8)
    for axes, (corpus, reducer) in zip(grid, ((c, r) for c in found for r in names), strict=True):
        shares = found[corpus]["regions"][reducer]
        axes.set_title(f"{CORPORA.get(corpus, corpus)}, {_REDUCERS[reducer]}")
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
    for (corpus, extras), colour in zip(found.items(), GROUPS, strict=False):
        quantiles = extras["cosine_quantiles"]
        if quantiles:
            axes.plot(quantiles, np.linspace(0, 1, len(quantiles)), color=colour, label=CORPORA.get(corpus, corpus))
    axes.set(xlabel="cos(e, e_p) of marked texts", ylabel="share of them below")
    axes.legend()
    return figure


def _maps(found: Portraits) -> Figure:
    figure, grid = panels(2 * len(found), across=2, width=3.2, height=2.8)
    for axes, (corpus, when) in zip(grid, ((c, w) for c in found for w in ("before", "after")), strict=True):
        places, marked = np.array(found[corpus][f"map_{when}"]), np.array(found[corpus]["map_marked"], dtype=bool)
        for rows, colour in ((~marked, PLAIN), (marked, MARKED)):
            axes.scatter(places[rows, 0], places[rows, 1], s=3, color=colour, linewidths=0)
        axes.set(title=f"{CORPORA.get(corpus, corpus)}, {when} marking", xticks=[], yticks=[])
    return figure
