"""Rank correlation with people's judgement."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from regionmarker.errors import InputError
from regionmarker.measures import SentencePairs, similarity


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
