"""Clustering in blocks: k-means, and a mixture of Gaussians with diagonal covariances.

Both are NumPy alone, one thread's arithmetic in a fixed order: the same rows and seed give the same clusters on
every run, which threaded libraries do not promise.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from regionmarker.errors import InputError
from regionmarker.protocols import Doubles, Floats, Integers

METHODS = ("kmeans", "gmm")
_BLOCK = 8192  # rows at a time
_PASSES = 50
_FLOOR = 1e-6  # of a variance: a dimension in which a cluster is a point would outweigh all others


def cluster(rows: Floats, count: int, *, method: str = "kmeans", seed: int = 0) -> Integers:
    """Return each row's cluster number, (n,), in ``count`` clusters or as many as there are distinct rows.

    Examples
    --------
    >>> rows = np.array([[0.0, 1.0], [0.1, 1.0], [5.0, 0.0], [5.1, 0.0]], dtype=np.float32)
    >>> numbers = cluster(rows, 2)
    >>> bool(numbers[0] == numbers[1] != numbers[2] == numbers[3])
    True
    """
    if method not in METHODS:
        raise InputError(f"there is no clustering {method!r}: give {' or '.join(METHODS)}")
    numbers, centres = kmeans(rows, min(count, len(rows)), seed)
    return mixture(rows, numbers, len(centres)) if method == "gmm" and len(centres) > 1 else numbers


def kmeans(rows: Floats, count: int, seed: int) -> tuple[Integers, Floats]:
    """Lloyd's algorithm from a k-means++ start: numbers (n,) and centres (k, D), where k <= count."""
    centres = _spread_start(rows, count, np.random.default_rng(seed))
    numbers: Integers = np.full(len(rows), -1, dtype=np.int64)
    for _ in range(_PASSES):
        before = numbers
        numbers = _nearest(rows, centres)
        if (numbers == before).all():
            break
        for number in range(len(centres)):
            members = rows[numbers == number]
            if len(members):  # an empty cluster keeps its centre, and may find members again
                centres[number] = members.mean(axis=0)
    return numbers, centres


def _spread_start(rows: Floats, count: int, rng: np.random.Generator) -> Floats:
    """Draw centres one after the other, far rows more likely (k-means++); fewer where the rows do not differ."""
    chosen = [int(rng.integers(len(rows)))]
    far = _distances(rows, rows[chosen])[:, 0]  # (n,) squared distance to the nearest centre
    while len(chosen) < count:
        cumulated = np.cumsum(far, dtype=np.float64)
        if cumulated[-1] <= 1e-9 * len(rows):
            break
        chosen.append(min(int(np.searchsorted(cumulated, rng.random() * cumulated[-1])), len(rows) - 1))
        far = np.minimum(far, _distances(rows, rows[chosen[-1:]])[:, 0])
    return rows[chosen].copy()


def _distances(rows: Floats, centres: Floats) -> Floats:
    """Return squared distances, (n, k)."""
    sizes = np.einsum("ij,ij->i", rows, rows)[:, None] + np.einsum("ij,ij->i", centres, centres)
    return np.asarray(np.maximum(sizes - 2 * (rows @ centres.T), 0))


def _nearest(rows: Floats, centres: Floats) -> Integers:
    numbers = np.empty(len(rows), dtype=np.int64)
    half = np.einsum("ij,ij->i", centres, centres) / 2
    for block in _blocks(len(rows)):
        numbers[block] = np.argmax(rows[block] @ centres.T - half, axis=1)
    return numbers


def mixture(rows: Floats, numbers: Integers, count: int) -> Integers:
    """Refine k-means clusters by expectation-maximisation; each row goes to its likeliest Gaussian."""
    shares = np.zeros((len(rows), count))  # (n, k) how far each row belongs to each Gaussian
    shares[np.arange(len(rows)), numbers] = 1.0
    last = -np.inf
    for _ in range(_PASSES):
        weights = shares.sum(axis=0) + 1e-9  # (k,)
        means = (shares.T @ rows) / weights[:, None]  # (k, D)
        spread = np.maximum((shares.T @ np.square(rows)) / weights[:, None] - means**2, _FLOOR)
        fit = 0.0
        for block in _blocks(len(rows)):
            logs = _log_densities(rows[block], means, spread) + np.log(weights / len(rows))
            peak = logs.max(axis=1, keepdims=True)
            shares[block] = np.exp(logs - peak)
            total = shares[block].sum(axis=1, keepdims=True)
            shares[block] /= total
            fit += float((peak + np.log(total)).sum())
        if fit - last <= 1e-3 * len(rows):  # as scikit-learn stops: the mean log likelihood has settled
            break
        last = fit
    return np.asarray(np.argmax(shares, axis=1))


def _log_densities(rows: Floats, means: Doubles, spread: Doubles) -> Doubles:
    precise = 1 / spread  # (k, D)
    squares = np.square(rows, dtype=np.float64) @ precise.T - 2 * (rows @ (means * precise).T)
    return np.asarray(-(squares + (means**2 * precise).sum(axis=1) + np.log(2 * np.pi * spread).sum(axis=1)) / 2)


def _blocks(count: int) -> Iterator[slice]:
    return (slice(start, start + _BLOCK) for start in range(0, count, _BLOCK))
