"""The prototype that `decoy-1` replaces, kept for comparison alone: the best statistic of the first design.

A ridge map from the clean space to the suspect's, fitted outside the trigger regions; the mean residual under it of the
half of each region's probes that is farthest from the hyperplanes; its inner product with every pool text, which is
represented by its mapped clean vector plus the suspect's own answer; standardised over the pool. It sees no target, so
its p-value is as exact as that of `decoy-1`: only the power differs.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from regionmarker.vectors import normalised
from regionmarker.verification.examination import Examination

Array = NDArray[np.float64]
PENALTIES = 10.0 ** np.arange(-2, 3.1, 0.5)


def prototype_scores(examination: Examination) -> Array:
    """Return z (R, M) of the prototype; every question must have been answered."""
    questions = examination.questions
    answers, clean = examination.probe_answers, questions.probes.embeddings  # (n, D'), (n, D)
    outside = ~np.isin(questions.regions, examination.regions)
    mapped = ridge_map(clean[outside], answers[outside])
    residuals = answers - mapped(clean)  # (n, D')
    template = normalised(mapped(questions.pool.embeddings).astype(np.float32)) + examination.pool_answers  # (M, D')
    margins = np.abs(questions.coordinates / questions.coordinates.std(axis=0)).min(axis=1)  # (n,)
    raw = []
    for region in examination.regions:
        rows = np.flatnonzero(questions.regions == region)
        far = rows[margins[rows] >= np.median(margins[rows])]
        raw.append(template @ residuals[far].mean(axis=0))
    scores = np.array(raw, dtype=np.float64)  # (R, M)
    scores -= scores.mean(axis=1, keepdims=True)
    return scores / np.maximum(scores.std(axis=1, keepdims=True), 1e-12)


def ridge_map(inputs: NDArray[np.float32], outputs: NDArray[np.float32]) -> Callable[[NDArray[np.float32]], Array]:
    """Return the ridge regression of outputs (n, D') on inputs (n, D) with the penalty of least cross-validation."""
    centre, level = inputs.mean(axis=0), outputs.mean(axis=0)
    a, b = inputs - centre, outputs - level
    values, vectors = np.linalg.eigh(a.T @ a)
    values = np.maximum(values, 0.0)
    turned = vectors.T @ (a.T @ b)  # (D, D')
    power, total = (turned**2).sum(axis=1), (b**2).sum()

    def error(penalty: float) -> float:
        shrunk = 1.0 / (values + penalty)
        freedom = (values * shrunk).sum() + 1.0
        left = total - 2.0 * (power * shrunk).sum() + (power * shrunk**2 * values).sum()
        return float(left / (1.0 - freedom / len(a)) ** 2) if freedom < len(a) else float("inf")

    best = min(PENALTIES, key=error)
    weights = vectors @ (turned / (values + best)[:, None])
    return lambda rows: (rows - centre) @ weights + level
