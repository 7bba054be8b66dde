"""Further innocents of the study of false positives: who is there, what they learnt from, and that they are kept."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from studies.innocents import further
from studies.innocents.suspects import Corpus

pytestmark = pytest.mark.usefixtures("quiet_torch")


@pytest.fixture
def case(tmp_path: Path, tiny_bert: str, sentences: list[str], embeddings: np.ndarray) -> tuple[Corpus, Path, Path]:
    pytest.importorskip("sentence_transformers", reason="needs sentence-transformers")
    texts = sentences[:200]
    data, models = tmp_path / "data", tmp_path / "models"
    data.mkdir()
    pq.write_table(pa.table({"split": ["train"] * 200, "text": texts, "label": [0, 1] * 100}), data / "sst2.parquet")
    for provider, rows in (("mpnet768", embeddings[:200]), ("nomic768", embeddings[:200, ::-1])):
        np.savez(data / f"provider_{provider}_sst2.npz", rows=np.arange(200), embeddings=rows)
    for name in ("minilm-l6", "granite-30m"):
        shutil.copytree(tiny_bert, models / name)
    clean = embeddings[:200] / np.linalg.norm(embeddings[:200], axis=1, keepdims=True)
    labels = np.array([0, 1] * 100)
    return Corpus(tuple(texts), labels, clean, clean[:, ::-1], np.arange(100, 200), np.arange(100)), data, models


def test_who_is_there_is_judged_and_who_is_not_is_told(
    case: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    corpus, data, models = case
    found = further.further_answers(corpus, data, models, tmp_path, epochs=1)
    names = ["granite-30m", "honest student", "student of another provider", "tuned for labels"]
    assert list(found) == names
    assert "e5-small: left out, because" in capsys.readouterr().out
    for rows in found.values():
        assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
        assert len(rows) == 200
    own = slice(100, 200)  # texts that no student learnt from
    honest = (found["honest student"][own] * corpus.clean[own]).sum(axis=1).mean()
    other = (found["student of another provider"][own] * corpus.clean[own, ::-1]).sum(axis=1).mean()
    assert min(honest, other) > 0.3
    assert abs((found["student of another provider"][own] * corpus.clean[own]).sum(axis=1).mean()) < 0.25
    monkeypatch.setattr(further, "_student", lambda *given: 1 / 0)
    again = further.further_answers(corpus, data, models, tmp_path, epochs=1)
    assert all(np.array_equal(again[name], found[name]) for name in names)  # nobody is trained twice
