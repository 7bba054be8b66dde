"""Outsiders who look for marked rows in served vectors: angle search inside the top-k span, and without regions.

The maths is the package's own attack, `regionmarker.benchmark.attacks.plane_search`; here it gets a budget of time.
"""

from __future__ import annotations

import time

import numpy as np
import numpy.typing as npt
from sklearn.cluster import KMeans
from sklearn.decomposition import FastICA

from regionmarker.benchmark.attacks import plane_search as cells_maths
from regionmarker.benchmark.attacks.plane_search import WIDTH, OutsideView
from studies.subspace.region_key import Array, Ints

Floats = npt.NDArray[np.float64]
D, CELLS = 4, 16


def look(served: Array, features: Array, k: int) -> OutsideView:
    return OutsideView.of(served, features, k)


def cells_of(view: OutsideView, q: Array) -> Ints:
    return view.regions(q)


def evidence(cells: Ints, residuals: Array) -> float:
    return cells_maths.evidence(cells, residuals, CELLS)


def random_frame(k: int, rng: np.random.Generator) -> Array:
    return cells_maths.random_frame(k, D, rng)


def cell_scores(cells: Ints, residuals: Array) -> dict[str, Floats]:
    return dict(zip(("cell", "row"), cells_maths.region_scores(cells, residuals, CELLS), strict=True))


def search(view: OutsideView, method: str, seconds: float, seed: int) -> tuple[Array, float, int]:
    """Return the frame with the highest hard evidence found within the budget, that evidence, and the starts."""
    rng, deadline = np.random.default_rng([seed, 99]), time.process_time() + seconds
    k, starts = view.coordinates.shape[1], 0
    best: tuple[Array, float] = (random_frame(k, rng), -np.inf)
    while starts == 0 or time.process_time() < deadline:
        q = cells_maths.hessian_frame(view, D) if method == "gradient" and starts == 0 else random_frame(k, rng)
        if method == "gradient":
            q = cells_maths.ascend(view, q, 200)
            found = (q, view.evidence(q))
        else:
            found = climb_until(view, q, deadline, rng)
        best, starts = max(best, found, key=lambda pair: pair[1]), starts + 1
    if method == "gradient":
        best = climb_until(view, best[0], time.process_time() + 0.1 * seconds, rng)
    return best[0], best[1], starts


def climb_until(view: OutsideView, q: Array, deadline: float, rng: np.random.Generator) -> tuple[Array, float]:
    return cells_maths.climb(view, q, rng, stop=lambda: time.process_time() >= deadline)


def kmeans_scores(residuals: Array, seed: int) -> Floats:
    labels = KMeans(CELLS, n_init=2, random_state=seed).fit(residuals).labels_
    centres = np.stack([residuals[labels == c].mean(axis=0) for c in range(CELLS)])
    return (centres**2).sum(axis=1)[labels]


def ica_scores(residuals: Array, seed: int) -> Floats:
    """Independent components of the whitened residuals; the largest value among the three most skewed ones."""
    ica = FastICA(WIDTH, whiten=False, max_iter=60, tol=1e-3, random_state=seed)
    parts = ica.fit_transform(residuals)
    parts = parts / parts.std(axis=0)
    skew = (parts**3).mean(axis=0)
    chosen = np.argsort(-np.abs(skew))[:3]
    return (parts[:, chosen] * np.sign(skew[chosen])).max(axis=1)
