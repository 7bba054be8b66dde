"""Neighbours that stay, rank correlation with people's judgement, and nDCG by hand and by scikit-learn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from regionmarker.errors import InputError
from regionmarker.measures import ndcg, nearest, neighbour_overlap, row_cosines, similarity


def test_the_nearest_are_those_that_sorting_finds(embeddings: np.ndarray) -> None:
    rows = embeddings[:1100]  # more than one block
    similar = rows @ rows.T
    np.fill_diagonal(similar, -2)
    expected = np.sort(np.argsort(-similar, axis=1)[:, :10], axis=1)
    assert (np.sort(nearest(rows, 10), axis=1) == expected).mean() > 0.999


def test_overlap_is_the_share_that_stays() -> None:
    before = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]], dtype=np.float32)
    after = before[[0, 2, 1, 3]]  # rows 1 and 2 change places
    assert neighbour_overlap(before, before, 1).tolist() == [1, 1, 1, 1]
    assert neighbour_overlap(before, after, 1).tolist() == [0, 0, 0, 0]


def test_marking_keeps_most_neighbours_and_the_cosine_that_algebra_promises(
    marker: Any, embeddings: np.ndarray
) -> None:
    rows = embeddings[:500]
    served = marker.transform(rows)
    assert 0.7 < neighbour_overlap(rows, served).mean() < 1
    assert row_cosines(rows, served).min() >= 0.968  # strength 0.2, whatever the target


def test_it_is_spearmans_of_cosines(embeddings: np.ndarray) -> None:
    from scipy.stats import spearmanr

    left, right = embeddings[:60], embeddings[60:120] * 3
    scores = np.random.default_rng(0).integers(0, 6, 60)  # many ties
    cosines = (left * embeddings[60:120]).sum(axis=1)
    assert similarity(left, right, scores) == pytest.approx(spearmanr(cosines, scores).statistic, abs=1e-6)


def test_pairs_without_an_order_have_no_correlation(embeddings: np.ndarray) -> None:
    assert np.isnan(similarity(embeddings[:5], embeddings[5:10], [1.0] * 5))


def test_what_does_not_fit_together_is_refused(embeddings: np.ndarray) -> None:
    with pytest.raises(InputError, match="at least 3 pairs"):
        similarity(embeddings[:2], embeddings[:2], [1.0, 2.0])
    with pytest.raises(InputError, match="cannot be scored"):
        similarity(embeddings[:5], embeddings[:5], [1.0, 2.0])
    with pytest.raises(InputError, match="cannot be scored"):
        similarity(embeddings[:5], embeddings[:4], [1.0] * 5)


def test_by_hand() -> None:
    documents = np.array([[1.0, 0.0], [0.8, 0.6], [0.0, 1.0], [-1.0, 0.0]], dtype=np.float32)
    query = np.array([[1.0, 0.0]], dtype=np.float32)  # finds 0, 1, 2, 3 in this order
    second, third = 1 / np.log2(3), 1 / np.log2(4)
    assert ndcg(query, documents, {0: {1, 2}}) == pytest.approx((second + third) / (1 + second))
    assert ndcg(query, documents, {0: {1, 2}}, at=2) == pytest.approx(second / (1 + second))
    assert ndcg(query, documents, {0: {1, 2}}, at=1) == 0
    assert ndcg(query * 7, documents * 3, {0: {0}}) == 1


def test_it_is_scikit_learns(embeddings: np.ndarray) -> None:
    metrics = pytest.importorskip("sklearn.metrics", reason="needs scikit-learn")
    queries, documents = embeddings[:30], embeddings[30:330]
    rng = np.random.default_rng(0)
    relevant = {place: set(rng.choice(300, size=rng.integers(1, 20), replace=False).tolist()) for place in range(30)}
    truth = np.array([[document in relevant[query] for document in range(300)] for query in range(30)]).astype(float)
    expected = metrics.ndcg_score(truth, queries @ documents.T, k=10, ignore_ties=True)
    assert ndcg(queries, documents, relevant) == pytest.approx(expected, abs=1e-6)


def test_queries_without_an_answer_do_not_count(embeddings: np.ndarray) -> None:
    rows = embeddings[:9]
    assert ndcg(rows, rows, {0: {0}, 1: set()}) == ndcg(rows, rows, {0: {0}}) == 1.0
    with pytest.raises(InputError, match="at least one relevant document"):
        ndcg(rows, rows, {0: set()})
    with pytest.raises(InputError, match="queries have width 5, but documents 256"):
        ndcg(rows[:, :5], rows, {0: {0}})
