"""One cell, from its parts to its row; for a portrait, a look at the mark itself in place of a verdict."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from regionmarker.benchmark.classification import classify
from regionmarker.benchmark.grid.cell import PORTRAIT, Cell, failed
from regionmarker.benchmark.grid.inputs import ScoredPairs
from regionmarker.benchmark.grid.parts import CellParts
from regionmarker.errors import InputError, MissingExtraError, RegionMarkerError
from regionmarker.marking.marker import RegionMarker
from regionmarker.marks.reduction import haar
from regionmarker.measures import neighbour_overlap, row_cosines, similarity
from regionmarker.vectors import AnyArray, Doubles, Encoder, Floats

_NEIGHBOURS_OF = 2000  # texts whose nearest neighbours are counted
_MAPPED = 600  # texts in a portrait's map
_DIGITS = 5
_REDUCTIONS = ("pca", "svd", "autoencoder", "umap", "none")


def compute(cell: Cell, parts: CellParts) -> dict[str, Any]:
    """Return the row of a cell; one that fails is a row with its error.

    Examples
    --------
    >>> from regionmarker.benchmark.grid.inputs import GridInputs
    >>> cell = Cell("python", "wordllama", "none", (), "tokens", "copy", queries=100, seed=0)
    >>> compute(cell, CellParts(GridInputs({}, {})))["error"]
    "KeyError: ('python', 'wordllama', 0)"
    """
    row = cell.columns()
    try:
        if cell.suspect == PORTRAIT:
            return {**row, **_portrait(cell, parts)}
        return {**row, **_judged(cell, parts)}
    except RegionMarkerError as error:
        return failed(row, str(error))
    except Exception as error:  # noqa: BLE001 - one cell's failure must not end the others
        return failed(row, f"{type(error).__name__}: {error}")


def _judged(cell: Cell, parts: CellParts) -> dict[str, Any]:
    fitted = parts.fitted(cell)
    found: dict[str, Any] = {"seconds_fit": fitted.seconds_fit, "seconds_transform": fitted.seconds_transform}
    if cell.stolen:
        theft = parts.theft(cell)
        suspect = theft.model
        found |= {name: value for name, value in vars(theft).items() if name != "model"}
    else:
        suspect = parts.suspect(cell)
    started = time.perf_counter()
    finding = fitted.defense.verify(suspect)
    verified = time.perf_counter()
    published = finding.published
    found |= {
        "decoy_p": float(finding.p_value),
        "published_p": float(published.p_value),
        "delta_cos": float(published.delta_cos),
        "delta_l2": float(published.delta_l2),
        "published_copy": bool(published.copy),
        "z": np.asarray(finding.scores, dtype=np.float64).ravel().tolist(),
        "z_rows": len(finding.scores),
        "chosen": [int(place) for place in finding.chosen],
        "seconds_verify": verified - started,
    }
    found |= _once(_clean_utility, cell.split, parts)
    found |= _once(_served_utility, cell.served, parts)
    if cell.stolen:
        found |= _once(_stolen_utility, cell.theft, parts)
    return {**found, "seconds_utility": time.perf_counter() - verified}


# ---- what vectors are good for


def _once(measure: Callable[[Cell, CellParts], dict[str, float]], cell: Cell, parts: CellParts) -> dict[str, float]:
    """Measure what cells share, such as the utility of what one key serves, for the first of them."""
    key = measure.__name__, cell
    if key not in parts.measured:
        parts.measured[key] = measure(cell, parts)
    return parts.measured[key]


def _clean_utility(cell: Cell, parts: CellParts) -> dict[str, float]:
    """Return what unmarked vectors are good for."""
    return _classified(cell, parts, parts.corpus(cell).clean, "clean")


def _served_utility(cell: Cell, parts: CellParts) -> dict[str, float]:
    """Return what the mark leaves to an honest customer."""
    rows, marked = parts.corpus(cell).clean, parts.fitted(cell).served
    some = parts.split(cell).own[:_NEIGHBOURS_OF]
    return {
        **_classified(cell, parts, marked, "served"),
        "overlap": float(neighbour_overlap(rows[some], marked[some]).mean()),
        "mean_cosine": float(row_cosines(rows, marked).mean()) if rows.shape == marked.shape else np.nan,
    }


def _stolen_utility(cell: Cell, parts: CellParts) -> dict[str, float]:
    """Return what the stealer has got: the same classifier on the copy's answers, and STS-B."""
    model, split, texts = parts.theft(cell).model, parts.split(cell), parts.corpus(cell).texts
    places = np.concatenate([split.train, split.test])
    answers = model.encode([texts[place] for place in places])
    rows = np.zeros((len(texts), answers.shape[1]), dtype=np.float32)
    rows[places] = answers
    return {**_classified(cell, parts, rows, "stolen"), "stolen_sts": _likeness(model, parts.inputs.pairs)}


def _likeness(model: Encoder, pairs: ScoredPairs | None) -> float:
    """Return whether the copy finds alike what people do; a simulated one knows no texts but the corpus' own."""
    if pairs is None:
        return np.nan
    try:
        first, second = (model.encode(list(side)) for side in (pairs.first, pairs.second))
    except InputError:
        return np.nan
    return similarity(first, second, pairs.scores)


def _classified(cell: Cell, parts: CellParts, rows: Floats, name: str) -> dict[str, float]:
    split, labels = parts.split(cell), parts.corpus(cell).data.labels
    train, test = split.train, split.test
    if not len(test) or len(np.unique(labels[train])) < 2:
        return {f"{name}_accuracy": np.nan, f"{name}_f1": np.nan}
    result = classify(rows[train], labels[train], rows[test], labels[test], seed=cell.seed)
    return {f"{name}_accuracy": result.accuracy, f"{name}_f1": result.macro_f1}


# ---- a portrait: how the regions fill, how far vectors move, what a map of them looks like


def _portrait(cell: Cell, parts: CellParts) -> dict[str, Any]:
    """Return the figures' data as JSON in the column ``extras``."""
    clean, served = parts.corpus(cell).clean, parts.fitted(cell).served
    cosines = row_cosines(clean, served)  # (n,)
    marked = cosines < 1 - 1e-4
    rng = np.random.default_rng(cell.seed)
    some = np.sort(rng.permutation(len(clean))[:_MAPPED])
    extras = {
        "cosine_quantiles": _rounded(np.quantile(cosines[marked], np.linspace(0, 1, 101))) if marked.any() else [],
        "marked_share": float(marked.mean()),
        "regions": _regions(cell, parts),
        "map_before": _map(clean[some], cell.seed),
        "map_after": _map(served[some], cell.seed),
        "map_marked": marked[some].tolist(),
    }
    return {"mean_cosine": float(cosines.mean()), "extras": json.dumps(extras)}


def _regions(cell: Cell, parts: CellParts) -> dict[str, list[float] | str]:
    """Return the shares of the texts by region, for each reduction; what a reduction cannot do is a sentence."""
    corpus, own = parts.corpus(cell), parts.split(cell).own
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
    for reducer in ("pca", "none"):
        found[f"{reducer}, uncentred"] = _rounded(
            uncentred_balance(corpus.clean[own], corpus.clean, reducer, cell.seed)
        )
    return found


def uncentred_balance(own: Floats, rows: Floats, reducer: str, seed: int) -> Doubles:
    """Return the shares of 16 regions between hyperplanes through the origin, as the paper has them: no mean is taken.

    Parameters
    ----------
    own, rows
        What a reduction is fitted on, (m, D), and what is counted, (n, D).
    reducer
        ``pca`` (four components) or ``none``.
    seed
        Of the normals.

    Examples
    --------
    >>> crowded = np.random.default_rng(0).standard_normal((400, 8)).astype(np.float32) + 9
    >>> bool(uncentred_balance(crowded, crowded, "none", 0).max() > 0.5)
    True
    """
    rng = np.random.default_rng([seed, 16])
    if reducer == "pca":
        _, axes = np.linalg.eigh(np.cov(own.astype(np.float64), rowvar=False))
        rows = rows @ axes[:, -4:].astype(np.float32)  # (n, 4)
    sides = rows @ haar(rng, 4, rows.shape[1]).T.astype(np.float32) > 0  # (n, 4)
    return np.bincount(sides @ (1 << np.arange(4)), minlength=16) / len(rows)


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
