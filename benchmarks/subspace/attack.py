"""Outsiders who look for marked rows in served vectors: angle search inside the top-k span, and without regions."""

from __future__ import annotations

import time
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from region_key import Array, Ints, region_numbers
from sklearn.cluster import KMeans
from sklearn.decomposition import FastICA

Floats = npt.NDArray[np.float64]
D, CELLS, WIDTH = 4, 16, 64
SMALL = 0.01  # cells smaller than this share count for less: they are topics, not trigger regions
SIGNS = np.where((np.arange(CELLS)[:, None] >> np.arange(D)) & 1, 1.0, -1.0).astype(np.float32)


@dataclass(frozen=True)
class View:
    """What the outsider computes from public features and served vectors; no secret goes in."""

    coordinates: Array  # (n, k) centred principal coordinates of the served vectors
    scale: Array  # (k,) their deviations
    residuals: Array  # (n, WIDTH) whitened leave-one-out residuals, linear part in `coordinates` removed
    plain: Array  # (n, WIDTH) the same without that removal
    axes: Array  # (k, D_served) directions of the coordinates


def loo_residuals(features: Array, served: Array, penalty: float) -> Array:
    """Leave-one-out residuals of a ridge map with intercept."""
    x = (features - features.mean(axis=0)).astype(np.float32)
    gram = x.T.astype(np.float64) @ x + penalty * np.eye(x.shape[1])
    hat = (x @ np.linalg.inv(gram)).astype(np.float32)
    centred = served - served.mean(axis=0)
    fitted = hat @ (x.T @ centred)
    leverage = (hat * x).sum(axis=1) + 1 / len(x)
    return (centred - fitted) / (1 - leverage)[:, None]


def principal_axes(centred: Array, k: int) -> tuple[Array, Array]:
    values, vectors = np.linalg.eigh(centred.T @ centred / len(centred))
    return np.ascontiguousarray(vectors[:, ::-1][:, :k].T), np.sqrt(values[::-1][:k])


def whiten(rows: Array) -> Array:
    centred = rows - rows.mean(axis=0)
    axes, deviation = principal_axes(centred, WIDTH)
    return np.ascontiguousarray(centred @ axes.T / deviation, np.float32)


def look(served: Array, features: Array, k: int) -> View:
    centred = served - served.mean(axis=0)
    axes, _ = principal_axes(centred, k)
    coordinates = np.ascontiguousarray(centred @ axes.T)
    both = np.hstack([features, coordinates[:, :64]])
    return View(
        coordinates,
        coordinates.std(axis=0),
        whiten(loo_residuals(both, served, 1.0)),
        whiten(loo_residuals(features, served, 1.0)),
        axes,
    )


def cells_of(view: View, q: Array) -> Ints:
    return region_numbers(view.coordinates @ q)


def evidence(cells: Ints, residuals: Array) -> float:
    """Between-cell sum of squares of whitened residuals (near 15 WIDTH by chance), small cells damped."""
    onehot = np.zeros((CELLS, len(cells)), np.float32)
    onehot[cells, np.arange(len(cells))] = 1
    count = onehot.sum(axis=1) + SMALL * len(cells)
    return float((((onehot @ residuals) ** 2).sum(axis=1) / count).sum())


def random_frame(k: int, rng: np.random.Generator) -> Array:
    return np.linalg.qr(rng.standard_normal((k, D)))[0].astype(np.float32)


def hessian_frame(view: View) -> Array:
    """Spectral start: principal Hessian directions of the residuals over the whitened coordinates."""
    z = view.coordinates / view.scale
    total = np.zeros((z.shape[1], z.shape[1]))
    for column in view.residuals.T:
        m = (z * column[:, None]).T @ z / len(z)
        total += m @ m
    vectors = np.linalg.eigh(total)[1][:, -D:] / view.scale[:, None]
    return np.linalg.qr(vectors)[0].astype(np.float32)


def soft_gradient(v: Array, residuals: Array, width: Array) -> Array:
    """Gradient of the soft between-cell evidence with respect to the projections v (n, d)."""
    s = np.tanh(v / width)
    half = [[(1 - s[:, j]) / 2, (1 + s[:, j]) / 2] for j in range(D)]
    bit = (SIGNS > 0).astype(int)
    member = np.stack([half[0][b[0]] * half[1][b[1]] * half[2][b[2]] * half[3][b[3]] for b in bit], axis=1)
    count = member.sum(axis=0) + SMALL * len(v)
    mean = (member.T @ residuals) / count[:, None]
    slope = 2 * residuals @ mean.T - (mean**2).sum(axis=1)
    grad = np.empty_like(v)
    for j in range(D):
        others = [[half[i][b[i]] for i in range(D) if i != j] for b in bit]
        rest = np.stack([o[0] * o[1] * o[2] for o in others], axis=1)
        grad[:, j] = (slope * rest) @ (SIGNS[:, j] / 2)
    return grad * (1 - s**2) / width


def ascend(view: View, q: Array, steps: int) -> Array:
    """Adam with QR retraction on the Stiefel manifold, the soft signs sharpened along the way."""
    first, second = np.zeros_like(q), np.zeros_like(q)
    for step in range(steps):
        v = view.coordinates @ q
        width = v.std(axis=0) * (0.8 * 0.15 ** (step / steps))
        grad = view.coordinates.T @ soft_gradient(v, view.residuals, width)
        grad -= q @ ((q.T @ grad + grad.T @ q) / 2)
        first, second = 0.9 * first + 0.1 * grad, 0.99 * second + 0.01 * grad**2
        move = first / (np.sqrt(second.mean()) + 1e-9)
        q = np.linalg.qr(q + 0.15 * (1 - 0.9 * step / steps) * move / np.sqrt(len(q)))[0].astype(np.float32)
    return q


def climb(view: View, q: Array, deadline: float, rng: np.random.Generator, patience: int = 150) -> tuple[Array, float]:
    """Hill climbing on the hard evidence: turn one normal towards a random direction of the span."""
    best, failures, angle = evidence(cells_of(view, q), view.residuals), 0, 0.5
    while failures < patience and time.process_time() < deadline:
        turned = q.copy()
        j = rng.integers(D)
        other = rng.standard_normal(len(q)).astype(np.float32)
        other -= q[:, j] * (q[:, j] @ other)
        other /= np.linalg.norm(other)
        theta = angle * rng.standard_normal()
        turned[:, j] = np.cos(theta) * q[:, j] + np.sin(theta) * other
        u, _, vt = np.linalg.svd(turned, full_matrices=False)
        turned = u @ vt
        value = evidence(cells_of(view, turned), view.residuals)
        if value > best:
            q, best, failures = turned, value, 0
        else:
            failures += 1
            angle = max(0.03, angle * 0.99)
    return q, best


def search(view: View, method: str, seconds: float, seed: int) -> tuple[Array, float, int]:
    """Return the frame with the highest hard evidence found within the budget, that evidence, and the starts."""
    rng, deadline = np.random.default_rng([seed, 99]), time.process_time() + seconds
    k, starts = view.coordinates.shape[1], 0
    best: tuple[Array, float] = (random_frame(k, rng), -np.inf)
    while starts == 0 or time.process_time() < deadline:
        q = hessian_frame(view) if method == "gradient" and starts == 0 else random_frame(k, rng)
        if method == "gradient":
            q = ascend(view, q, 200)
            found = (q, evidence(cells_of(view, q), view.residuals))
        else:
            found = climb(view, q, deadline, rng)
        best, starts = max(best, found, key=lambda pair: pair[1]), starts + 1
    if method == "gradient":
        best = climb(view, best[0], time.process_time() + 0.1 * seconds, rng)
    return best[0], best[1], starts


def cell_scores(cells: Ints, residuals: Array) -> dict[str, Floats]:
    """Two ways to rank rows: how significant the row's cell is; likelihood ratio of the cell's (shrunk) shift."""
    means = np.zeros((CELLS, residuals.shape[1]))
    count = np.bincount(cells, minlength=CELLS)
    for c in np.flatnonzero(count):
        means[c] = residuals[cells == c].mean(axis=0)
    size = (means**2).sum(axis=1)
    excess = np.maximum(size - residuals.shape[1] / np.maximum(count, 1), 0)
    means *= np.where(size > 0, excess / np.maximum(size, 1e-12), 0)[:, None]
    ratio = (residuals * means[cells]).sum(axis=1) - (means**2).sum(axis=1)[cells] / 2
    return {"cell": excess[cells], "row": ratio}


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
