"""What marking does to vectors, in four measures.

row_cosines          how far it moves each vector: cos(e, e_p)
neighbour_overlap    which nearest neighbours stay
similarity           whether cosines still rank pairs of sentences as people do: STS-B's measure
ndcg                 whether queries still find their documents: nDCG@10, as on Cranfield
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

import numpy as np

from regionmarker.errors import InputError
from regionmarker.vectors import AnyArray, Doubles, Floats, Integers, as_floats

_BLOCK = 1024  # rows whose similarities to all others are held at once


def row_cosines(before: Floats, after: Floats) -> Doubles:
    """Return cos(e, e_p) row by row, (n,).

    Examples
    --------
    >>> row_cosines(np.eye(2, dtype=np.float32), np.ones((2, 2), dtype=np.float32)).round(3).tolist()
    [0.707, 0.707]
    """
    dots = np.einsum("ij,ij->i", before, after, dtype=np.float64)
    norms = np.linalg.norm(before.astype(np.float64), axis=1) * np.linalg.norm(after.astype(np.float64), axis=1)
    return np.asarray(dots / norms)


def nearest(rows: Floats, count: int, among: Floats | None = None) -> Integers:
    """Return the numbers of each row's ``count`` nearest other rows by cosine, (n, count), in no particular order.

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
    old, new = nearest(before, count), nearest(after, count)
    shared = (old[:, :, None] == new[:, None, :]).any(axis=2)  # (n, count)
    return np.asarray(shared.mean(axis=1))


def similarity(first: object, second: object, scores: Sequence[float] | AnyArray) -> float:
    """Return the Spearman correlation of cosines with scores; vectors (n, D) and (n, D), scores (n,).

    Examples
    --------
    >>> left = np.eye(3, dtype=np.float32)
    >>> right = np.array([[1, 0, 0], [1, 1, 0], [1, 0, 0]], dtype=np.float32)
    >>> similarity(left, right, [5.0, 3.0, 0.5])
    1.0
    """
    left, right = as_floats(first, what="vectors"), as_floats(second, what="vectors")
    judged = np.asarray(scores, dtype=np.float64)
    if left.shape != right.shape or judged.shape != (len(left),):
        raise InputError(f"pairs of shapes {left.shape} and {right.shape} cannot be scored by {judged.shape} numbers")
    if len(left) < 3:
        raise InputError(f"a correlation needs at least 3 pairs, but there are {len(left)}")
    return spearman(row_cosines(left, right), judged)


def spearman(left: Doubles, right: Doubles) -> float:
    """Return the rank correlation of two lists of numbers, (n,) and (n,); NaN where either has no order.

    Examples
    --------
    >>> spearman(np.array([1.0, 2.0, 3.0]), np.array([1.0, 4.0, 9.0]))
    1.0
    """
    from scipy.stats import rankdata  # takes half a second to import; its spearmanr warns where there is no order

    ranks = np.stack([rankdata(left), rankdata(right)])
    if (ranks.std(axis=1) == 0).any():
        return float("nan")
    return float(np.corrcoef(ranks)[0, 1])


def ndcg(queries: object, documents: object, relevant: Mapping[int, Set[int]], *, at: int = 10) -> float:
    """Return the mean nDCG of the nearest ``at`` documents by cosine, over the queries that have an answer.

    Parameters
    ----------
    queries, documents
        Their vectors, (q, D) and (n, D).
    relevant
        The numbers of each query's documents, every one of them worth the same.

    Examples
    --------
    >>> documents = np.eye(4, dtype=np.float32)
    >>> ndcg(documents[:2], documents, {0: {0}, 1: {1}})
    1.0
    >>> ndcg(documents[:1], documents, {0: {3}}, at=1)
    0.0
    """
    asked, found = as_floats(queries, what="queries"), as_floats(documents, what="documents")
    if asked.shape[1] != found.shape[1]:
        raise InputError(f"queries have width {asked.shape[1]}, but documents {found.shape[1]}")
    answered = sorted(query for query, documents in relevant.items() if documents)
    if not answered or at < 1:
        raise InputError("nDCG needs a query with at least one relevant document, and at least one rank")
    units = found / np.linalg.norm(found, axis=1, keepdims=True)
    discounts = 1 / np.log2(np.arange(2, at + 2))  # (at,)
    scores = []
    for query in answered:
        similar = units @ asked[query]  # (n,); the query's own length changes no order
        order = np.argsort(-similar, kind="stable")[:at]
        gains = np.array([document in relevant[query] for document in order.tolist()])
        ideal = discounts[: min(at, len(relevant[query]))].sum()
        scores.append(float(discounts[: len(gains)] @ gains / ideal))
    return float(np.mean(scores))
