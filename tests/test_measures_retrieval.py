"""nDCG: by hand, against scikit-learn, and on the real collection's layout."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from regionmarker.errors import InputError
from regionmarker.measures import Retrieval, ndcg


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


def test_a_collection_is_read(tmp_path: Path) -> None:
    tables = {
        "docs": {"id": [10, 20, 30], "text": ["ten", " ", "thirty"]},
        "queries": {"id": [1, 2], "text": ["one", "two"]},
        "qrels": {"query_id": [1, 1, 2, 2, 9], "doc_id": [10, 20, 30, 10, 10], "relevance": [4, 3, 1, -1, 2]},
    }
    for name, columns in tables.items():
        pq.write_table(pa.table(columns), tmp_path / f"tiny_{name}.parquet")
    task = Retrieval.read(tmp_path, "tiny")
    assert task.queries == ("one", "two")
    assert task.documents == ("ten", "thirty")  # the blank one has no vector
    assert task.relevant == {0: {0}, 1: {1}}


def test_the_real_collection_has_its_layout(data_dir: Path) -> None:
    task = Retrieval.read(data_dir)
    assert (len(task.queries), len(task.documents)) == (225, 1398)
    assert sum(len(found) for found in task.relevant.values()) > 1600
