"""The key and the mark, as small functions.

RegionMarker is not used here, for three reasons. The study draws hundreds of keys from one PCA of each corpus, where
`RegionMarker.fit` surveys the corpus again for every key. Its keys come from a master secret by HKDF, and its shares
of regions from a sample of the corpus, so no seed of it gives the keys that were measured. And its output grid is left
out on purpose: these outsiders look at meaning, not at bits. Regions, mixing and scaling are the same; "full" is
RegionMarker's `pca` with `subspace` equal to the width, "raw" its reducer `none`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float32]
Ints = npt.NDArray[np.int64]

DIMENSION, TRIGGERS, STRENGTH, FLOOR = 4, 3, 0.2, 0.01


@dataclass(frozen=True)
class Reduction:
    """What is fitted once per corpus: the mean, the principal directions and the spectrum."""

    mean: Array
    components: Array  # (D, D), rows by falling variance
    spectrum: Array


@dataclass(frozen=True)
class Key:
    """d hyperplanes folded into one matrix with thresholds, the trigger regions and their target vectors."""

    matrix: Array  # (d, D)
    thresholds: Array  # (d,)
    triggers: Ints  # (R,)
    target_rows: Ints  # (R,) row numbers in the pool
    targets: Array  # (R, D)
    populated: int  # regions that hold at least FLOOR of the corpus


def unit(rows: Array) -> Array:
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def fit_reduction(corpus: Array) -> Reduction:
    mean = corpus.mean(axis=0)
    covariance = (corpus - mean).T.astype(np.float64) @ (corpus - mean) / len(corpus)
    values, vectors = np.linalg.eigh(covariance)
    return Reduction(mean, vectors.T[::-1].astype(np.float32), values[::-1].astype(np.float32))


def draw_normals(reduction: Reduction, space: str, rng: np.random.Generator) -> tuple[Array, Array]:
    """Haar normals in the top-k span ("4", "8", ...), in the whole space ("full") or there without centring ("raw")."""
    width = reduction.components.shape[1]
    k = width if space in ("full", "raw") else int(space)
    q, r = np.linalg.qr(rng.standard_normal((k, DIMENSION)))
    q *= np.sign(np.diag(r))
    matrix = (q.T @ reduction.components[:k]).astype(np.float32)
    thresholds = np.zeros(DIMENSION, np.float32) if space == "raw" else matrix @ reduction.mean
    return matrix, thresholds


def projections(matrix: Array, thresholds: Array, rows: Array) -> Array:
    return rows @ matrix.T - thresholds


def region_numbers(values: Array) -> Ints:
    return (values > 0) @ (1 << np.arange(values.shape[1]))


def make_key(reduction: Reduction, corpus: Array, pool: Array, space: str, seed: int) -> Key | None:
    """None when fewer than R regions are populated (the paper's 'without reduction' can end there)."""
    rng = np.random.default_rng([seed, 2025])
    matrix, thresholds = draw_normals(reduction, space, rng)
    share = region_shares(matrix, thresholds, corpus)
    candidates = np.flatnonzero(share >= FLOOR)
    if len(candidates) < TRIGGERS:
        return None
    triggers = rng.choice(candidates, TRIGGERS, replace=False)
    rows = rng.choice(len(pool), TRIGGERS, replace=False)
    return Key(matrix, thresholds, triggers, rows, pool[rows], len(candidates))


def region_shares(matrix: Array, thresholds: Array, corpus: Array) -> npt.NDArray[np.float64]:
    regions = region_numbers(projections(matrix, thresholds, corpus))
    return np.bincount(regions, minlength=1 << len(matrix)) / len(corpus)


def trigger_of(key: Key, rows: Array) -> Ints:
    """Return the index of the trigger region of every row, -1 outside."""
    regions = region_numbers(projections(key.matrix, key.thresholds, rows))
    lookup = np.full(1 << len(key.matrix), -1)
    lookup[key.triggers] = np.arange(len(key.triggers))
    return lookup[regions]


def mark(key: Key, rows: Array) -> tuple[Array, Ints]:
    which = trigger_of(key, rows)
    weight = np.where(which >= 0, np.float32(STRENGTH), np.float32(0))[:, None]
    blended = ((1 - weight) * rows + weight * key.targets[which]).astype(np.float32)
    return unit(blended), which
