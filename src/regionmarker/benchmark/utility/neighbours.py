"""Which texts lie nearest, and how many of them marking leaves there."""

from __future__ import annotations

import numpy as np

from regionmarker.protocols import Doubles, Floats, Integers

_BLOCK = 1024


def nearest(rows: Floats, count: int, among: Floats | None = None) -> Integers:
    """Return the places of each row's ``count`` nearest other rows by cosine, (n, count), in no particular order.

    ``among`` holds other vectors of the same texts, in which the neighbours are looked for; by default ``rows``.
    """
    others = rows if among is None else among
    found = np.empty((len(rows), count), dtype=np.int64)
    for start in range(0, len(rows), _BLOCK):
        similarity = rows[start : start + _BLOCK] @ others.T  # (b, n)
        similarity[np.arange(len(similarity)), np.arange(start, start + len(similarity))] = -np.inf
        found[start : start + _BLOCK] = np.argpartition(-similarity, count - 1, axis=1)[:, :count]
    return found


def neighbour_overlap(before: Floats, after: Floats, count: int = 10) -> Doubles:
    """Return, for each row, the share of its nearest neighbours that marking kept, (n,).

    Examples
    --------
    >>> rows = np.random.default_rng(0).standard_normal((50, 8)).astype(np.float32)
    >>> float(neighbour_overlap(rows, rows).mean())
    1.0
    """
    old, new = np.sort(nearest(before, count), axis=1), np.sort(nearest(after, count), axis=1)
    shared = (old[:, :, None] == new[:, None, :]).any(axis=2)  # (n, count)
    return np.asarray(shared.mean(axis=1))
