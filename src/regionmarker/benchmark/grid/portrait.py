"""A look at the mark itself: how the regions fill, how far vectors move, what a map of them looks like."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from regionmarker.benchmark.grid.cell import Cell
from regionmarker.benchmark.grid.workbench import Workbench
from regionmarker.benchmark.utility import row_cosines
from regionmarker.errors import MissingExtraError, RegionMarkerError
from regionmarker.marking.marker import RegionMarker
from regionmarker.protocols import AnyArray, Floats

_MAPPED = 600  # texts in the map
_DIGITS = 5
_REDUCTIONS = ("pca", "svd", "autoencoder", "umap", "none")


def portrait(cell: Cell, bench: Workbench) -> dict[str, Any]:
    """Return the figures' data as JSON in the column ``extras``."""
    clean, served = bench.corpus(cell).clean, bench.fitted(cell).served
    cosines = row_cosines(clean, served)  # (n,)
    marked = cosines < 1 - 1e-4
    rng = np.random.default_rng(cell.seed)
    some = np.sort(rng.permutation(len(clean))[:_MAPPED])
    extras = {
        "cosine_quantiles": _rounded(np.quantile(cosines[marked], np.linspace(0, 1, 101))) if marked.any() else [],
        "marked_share": float(marked.mean()),
        "regions": _regions(cell, bench),
        "map_before": _map(clean[some], cell.seed),
        "map_after": _map(served[some], cell.seed),
        "map_marked": marked[some].tolist(),
    }
    return {"mean_cosine": float(cosines.mean()), "extras": json.dumps(extras)}


def _regions(cell: Cell, bench: Workbench) -> dict[str, list[float] | str]:
    """Return the shares of the texts by region, for each reduction; what a reduction cannot do is a sentence."""
    corpus, own = bench.corpus(cell), bench.scene(cell).own
    texts, found = [corpus.texts[place] for place in own], dict[str, list[float] | str]()
    for reducer in _REDUCTIONS:
        try:
            space = 4 if reducer in ("pca", "svd") else None  # the paper's; the other reductions have no choice
            marker = RegionMarker(reducer=reducer, subspace=space, seed=cell.seed, pool=64, reservoir=256)
            numbers = marker.fit(texts, embeddings=corpus.clean[own]).regions(corpus.clean)
        except RegionMarkerError as error:
            found[reducer] = str(error)
        else:
            found[reducer] = _rounded(np.bincount(numbers, minlength=16) / len(numbers))
    return found


def _map(rows: Floats, seed: int) -> list[list[float]]:
    """Return a map by t-SNE, (n, 2)."""
    try:
        from sklearn.manifold import TSNE
    except ImportError:
        raise MissingExtraError.for_module("scikit-learn", "benchmark") from None
    places = TSNE(init="pca", random_state=seed, n_jobs=1).fit_transform(rows)
    return [_rounded(place) for place in places]


def _rounded(values: AnyArray) -> list[float]:
    return [round(float(value), _DIGITS) for value in values]
