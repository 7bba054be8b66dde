"""One function per question; each returns one flat row for one corpus, space and key."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from sklearn.metrics import roc_auc_score

from studies.subspace import attack
from studies.subspace.corpora import Corpus
from studies.subspace.power import power_of
from studies.subspace.region_key import (
    Array,
    Ints,
    Key,
    draw_normals,
    make_key,
    mark,
    projections,
    region_numbers,
    region_shares,
)  # fmt: skip

Row = dict[str, object]
NEIGHBOURS, ASKED = 10, 2000  # nearest neighbours; rows whose neighbours are looked up
ROWS = 4000  # served vectors that an outsider has
# The outsiders need no uncentred space; the control was not built for the full one.
LEFT_OUT = {("angles", "raw"), ("angles_more", "raw"), ("control", "raw"), ("control", "full")}


def key_for(corpus: Corpus, space: str, seed: int) -> Key | None:
    return make_key(corpus.reduction, corpus.clean, corpus.clean[corpus.pool], space, seed)


def balance(corpus: Corpus, space: str, seed: int) -> Row:
    """How the 16 regions fill, and how often a paraphrase stays in its region."""
    rng = np.random.default_rng([seed, 2025])
    matrix, thresholds = draw_normals(corpus.reduction, space, rng)
    share = np.sort(region_shares(matrix, thresholds, corpus.clean))[::-1]
    held = share[share > 0]
    before = region_numbers(projections(matrix, thresholds, corpus.clean[corpus.originals]))
    after = region_numbers(projections(matrix, thresholds, corpus.paraphrases))
    near = (corpus.paraphrases * corpus.clean[corpus.originals]).sum(axis=1) >= 0.8
    return {
        "min_share": float(share[-1]),
        "max_share": float(share[0]),
        "populated": int((share >= 0.01).sum()),
        "entropy": float(-(held * np.log(held)).sum() / np.log(len(share))),
        "shares": share.round(5).tolist(),
        "stays": float((before == after).mean()),
        "stays_near": float((before == after)[near].mean()),
    }


def nearest(rows: Array, asked: Ints) -> Ints:
    similarity = rows[asked] @ rows.T
    similarity[np.arange(len(asked)), asked] = -np.inf
    return np.argpartition(-similarity, NEIGHBOURS, axis=1)[:, :NEIGHBOURS]


_neighbours: dict[str, Ints] = {}


def utility(corpus: Corpus, space: str, seed: int) -> Row:
    """Compare the vectors and their ten nearest neighbours before and after marking."""
    key = key_for(corpus, space, seed)
    if key is None:
        return {"failed": True}
    asked = np.random.default_rng(11).choice(len(corpus.clean), min(ASKED, len(corpus.clean)), replace=False)
    if corpus.name not in _neighbours:
        _neighbours[corpus.name] = nearest(corpus.clean, asked)
    served, which = mark(key, corpus.clean)
    cosine, marked = (served * corpus.clean).sum(axis=1), which >= 0
    pairs = zip(_neighbours[corpus.name], nearest(served, asked), strict=True)
    overlap = np.array([len(np.intersect1d(a, b)) / NEIGHBOURS for a, b in pairs])
    return {
        "marked": float(marked.mean()),
        "cos_marked": float(cosine[marked].mean()),
        "cos_all": float(cosine.mean()),
        "cos_min": float(cosine.min()),
        "overlap": float(overlap.mean()),
        "overlap_marked": float(overlap[marked[asked]].mean()),
    }


def angles(corpus: Corpus, space: str, seed: int, seconds: float = 15.0, rows: int = ROWS) -> Row:
    """AUC of outsiders against the true marked flag; `seconds` of CPU for the gradient, a third of it for climbing."""
    key = key_for(corpus, space, seed)
    if key is None:
        return {"failed": True}
    asked = corpus.queries[:rows]
    served, which = mark(key, corpus.clean[asked])
    width = served.shape[1] if space in ("full", "raw") else int(space)
    view = attack.look(served, corpus.public[asked], width)
    true = np.linalg.qr(view.axes @ key.matrix.T)[0]
    frames = {"oracle": true, "random": attack.random_frame(width, np.random.default_rng([seed, 5]))}
    out: Row = {"marked": float((which >= 0).mean())}
    for method, budget in (("gradient", seconds), ("climb", seconds / 3)):
        frames[method], _, out[f"{method}_starts"] = attack.search(view, method, budget, seed)
    for name, frame in frames.items():
        cells = attack.cells_of(view, frame)
        for label, residuals in (("v", view.residuals), ("x", view.plain)):
            for kind, score in attack.cell_scores(cells, residuals).items():
                out[f"{name}_{kind}_{label}"] = float(roc_auc_score(which >= 0, score))
        out[f"{name}_evidence"] = attack.evidence(cells, view.residuals)
        out[f"{name}_align"] = float((np.linalg.svd(frame.T @ true)[1] ** 2).mean())
    out["kmeans"] = float(roc_auc_score(which >= 0, attack.kmeans_scores(view.plain, seed)))
    out["ica"] = float(roc_auc_score(which >= 0, attack.ica_scores(view.plain, seed)))
    return out


def power(corpus: Corpus, space: str, seed: int) -> Row:
    key = key_for(corpus, space, seed)
    return {"failed": True} if key is None else power_of(corpus, key)


_unmarked: dict[tuple[str, str], tuple[attack.OutsideView, Array]] = {}


def control(corpus: Corpus, space: str, seed: int) -> Row:
    """Show the same outsiders *unmarked* vectors and hold the same flag against them: what meaning alone gives them."""
    key = key_for(corpus, space, seed)
    if key is None:
        return {"failed": True}
    asked = corpus.queries[:ROWS]
    clean = corpus.clean[asked]
    flag = mark(key, clean)[1] >= 0
    if (corpus.name, space) not in _unmarked:
        view = attack.look(clean, corpus.public[asked], int(space))
        _unmarked[corpus.name, space] = view, attack.search(view, "gradient", 6.0, 0)[0]
    view, frame = _unmarked[corpus.name, space]
    true = np.linalg.qr(view.axes @ key.matrix.T)[0]
    out: Row = {"kmeans": float(roc_auc_score(flag, attack.kmeans_scores(view.plain, seed)))}
    out["ica"] = float(roc_auc_score(flag, attack.ica_scores(view.plain, seed)))
    for name, normals in (("gradient", frame), ("oracle", true)):
        cells = attack.cells_of(view, normals)
        out[f"{name}_cell_v"] = float(roc_auc_score(flag, attack.cell_scores(cells, view.residuals)["cell"]))
        out[f"{name}_row_x"] = float(roc_auc_score(flag, attack.cell_scores(cells, view.plain)["row"]))
    return out


def angles_more(corpus: Corpus, space: str, seed: int) -> Row:
    """Run `angles` with twice the served vectors and four times the time."""
    everything = np.concatenate([corpus.queries, corpus.probes, corpus.pool])
    return angles(replace(corpus, queries=everything), space, seed, seconds=60.0, rows=8000)
