"""``regionmarker plan``."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from regionmarker.cli import main

QUICK = ["--dimension=2", "--ratio=0.5", "--strength=0.3", "--subspace=16", "--keys=1", "--confirm=1"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory, sentences: list[str], embeddings: np.ndarray) -> Path:
    rows = embeddings[:1500, :48]
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    path = tmp_path_factory.mktemp("corpus") / "own.parquet"
    pq.write_table(pa.table({"text": sentences[:1500], "embedding": list(rows.astype(np.float32))}), path)
    return path


def run(capsys: Any, *arguments: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as left:
        main(["plan", *map(str, arguments)])
    captured = capsys.readouterr()
    return int(left.value.code or 0), captured.out, captured.err


def test_a_plan_is_shown_saved_and_gone_on_with(corpus: Path, tmp_path: Path, capsys: Any) -> None:
    out = tmp_path / "plan"
    arguments = ["--corpus", corpus, *QUICK, "--utility-loss", "0.7", "--fidelity", "0.6", "--out", out]
    code, shown, told = run(capsys, *arguments)
    assert code == 0, told
    assert "dimension 2, ratio 0.5, strength 0.3, subspace 16" in shown
    assert "would you catch it" in shown
    assert "Settings against the wanted thief" in told
    assert "<svg" in (out / "plan.svg").read_text()
    trials = (out / "trials.jsonl").read_text()
    code, shown, told = run(capsys, *arguments, "--json")
    assert (code, told) == (0, "")
    assert json.loads(shown) == json.loads((out / "plan.json").read_text())
    assert (out / "trials.jsonl").read_text() == trials  # nothing was tried twice


def test_no_settings_within_the_utility_is_said(corpus: Path, capsys: Any) -> None:
    code, shown, told = run(capsys, "--corpus", corpus, *QUICK, "--utility-loss", "0.000001", "--fidelity", "0.4")
    assert code == 0
    assert shown == ""
    assert "allow more with --utility-loss" in " ".join(told.split())
    code, shown, told = run(capsys, "--corpus", corpus, *QUICK[2:], "--dimension=2", "--ratio=0.25", "--fidelity=0.4")
    assert (code, shown) == (0, "")
    assert "None of these keys can be made from this corpus: 1 of 250 targets cannot give" in " ".join(told.split())


def test_mistakes_are_one_sentence(corpus: Path, tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "few.txt").write_text("one\ntwo\n")
    for arguments, message in (
        (["--corpus", tmp_path / "few.txt"], "has no embedding column: give --encoder"),
        (["--corpus", tmp_path / "few.txt", "--encoder", "wordllama"], "at least 1000 distinct texts"),
        (["--corpus", corpus, "--cache", tmp_path / "c"], "--cache goes with --encoder"),
        (["--corpus", corpus, "--fidelity", "2"], "fidelity is 2.0"),
        (["--corpus", corpus, "--dimension", "2", "--dimension", "2"], "each of them once"),
        (["--corpus", tmp_path / "none.parquet"], "does not exist"),
    ):
        code, shown, told = run(capsys, *arguments)
        assert (code, shown) == (2, "")
        assert message in " ".join(told.split())
