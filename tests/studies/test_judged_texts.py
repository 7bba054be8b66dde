"""Judged texts are read as their files hold them."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from regionmarker.errors import InputError
from studies._judged_texts import Retrieval, SentencePairs


def test_pairs_are_read_by_split(tmp_path: Path) -> None:
    path = tmp_path / "pairs.parquet"
    columns = {"split": ["a", "b"], "sentence1": ["x", "y"], "sentence2": ["u", "v"], "label": [1, 0]}
    pq.write_table(pa.table(columns), path)
    assert SentencePairs.read(path, split="b", score="label") == SentencePairs(("y",), ("v",), (0.0,))
    assert SentencePairs.read(path, score="label").first == ("x", "y")
    with pytest.raises(InputError, match="no rows of the split 'c'"):
        SentencePairs.read(path, split="c", score="label")
    with pytest.raises(InputError, match="no column score; it has split, sentence1, sentence2, label"):
        SentencePairs.read(path)
    with pytest.raises(InputError, match="does not exist"):
        SentencePairs.read(tmp_path / "other.parquet")
    path.write_bytes(b"no parquet at all")
    with pytest.raises(InputError, match="cannot read"):
        SentencePairs.read(path)


def test_the_real_corpora_have_their_layout(data_dir: Path) -> None:
    assert len(SentencePairs.read(data_dir / "stsb.parquet", split="test").scores) == 1379
    assert sum(SentencePairs.read(data_dir / "mrpc.parquet", score="label").scores) == 3900


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


def test_a_collection_is_made_by_hand() -> None:
    task = Retrieval(("wings",), ("on wings", "on soup"), {0: frozenset({0})})
    assert len(task.documents) == 2
