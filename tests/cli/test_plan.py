"""``regionmarker plan``."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from regionmarker.cli import main

QUICK = ["--kept=0.9", "--kept=0.8", "--no-tenants", "--queries=700", "--budget=500"]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory, sentences: list[str], embeddings: np.ndarray) -> Path:
    rows = embeddings[:1700, :64]
    rows = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    path = tmp_path_factory.mktemp("corpus") / "own texts.parquet"
    pq.write_table(pa.table({"text": sentences[:1700], "embedding": list(rows.astype(np.float32))}), path)
    return path


def run(capsys: Any, *arguments: object) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as left:
        main([*map(str, arguments)])
    captured = capsys.readouterr()
    return int(left.value.code or 0), captured.out, captured.err


def test_a_plan_is_shown_saved_and_gone_on_with(corpus: Path, tmp_path: Path, capsys: Any) -> None:
    out = tmp_path / "plan"
    arguments = ["plan", "--corpus", corpus, *QUICK, "--fidelity", "0.6", "--out", out]
    code, shown, told = run(capsys, *arguments)
    assert code == 0, told
    assert "would you catch it" in shown
    assert "Copies of fidelity 0.6" in told
    assert "could not be met" not in told
    assert "<svg" in (out / "plan.svg").read_text()
    trials = (out / "trials.jsonl").read_text()
    code, shown, told = run(capsys, *arguments, "--json")
    assert (code, told) == (0, "")
    found = json.loads(shown)
    assert found == json.loads((out / "plan.json").read_text())
    assert (out / "trials.jsonl").read_text() == trials  # nothing was tried twice
    assert [(one["kept"], one["tenants"]) for one in found["outcomes"]] == [(0.9, False), (0.8, False)]
    assert found["met"]


def test_the_keygen_line_makes_the_key(corpus: Path, tmp_path: Path, capsys: Any, monkeypatch: Any) -> None:
    monkeypatch.chdir(tmp_path)
    code, shown, told = run(
        capsys, "plan", "--corpus", corpus, *QUICK, "--fidelity", "0.5", "--level", "0.01", "--json"
    )
    assert code == 0, told
    line = json.loads(shown)["keygen"]
    program, *words = shlex.split(line)
    assert program == "regionmarker"
    code, shown, told = run(capsys, *words, "--json")
    assert code == 0, told
    made = json.loads(shown)
    assert made["kept"] in (0.9, 0.8)
    assert (made["level"], made["marks_tenants"]) == (0.01, False)
    assert (tmp_path / "provider.rmkey").exists()


def test_a_fidelity_that_cannot_be_met_is_said(corpus: Path, capsys: Any) -> None:
    code, shown, told = run(capsys, "plan", "--corpus", corpus, *QUICK, "--fidelity", "0.9999", "--queries", "100")
    assert code == 0
    assert "Fidelity 0.9999 could not be met: from 100 queries" in " ".join(told.split())
    assert "would you catch it" in shown


def test_the_keygen_line_is_not_broken_on_a_narrow_screen(corpus: Path, capsys: Any, monkeypatch: Any) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    _, shown, _ = run(capsys, "plan", "--corpus", corpus, *QUICK, "--fidelity", "0.6")
    line = shown.strip().splitlines()[-1].strip()
    assert shlex.split(line)[:4] == ["regionmarker", "keygen", "--corpus", str(corpus)]
    assert line.endswith("--out provider.rmkey")


def test_mistakes_are_one_sentence(corpus: Path, tmp_path: Path, capsys: Any) -> None:
    (tmp_path / "few.txt").write_text("one\ntwo\n")
    for arguments, message in (
        (["--corpus", tmp_path / "few.txt"], "has no embedding column: give --encoder"),
        (["--corpus", tmp_path / "few.txt", "--encoder", "wordllama"], "at least 1000 distinct texts"),
        (["--corpus", corpus, "--cache", tmp_path / "c"], "--cache goes with --encoder"),
        (["--corpus", corpus, "--fidelity", "2"], "fidelity is 2.0"),
        (["--corpus", corpus, "--kept", "0.9", "--kept", "0.9"], "each of them once"),
        (["--corpus", corpus, "--kept", "1.5"], "kept is 1.5"),
        (["--corpus", corpus, "--queries", "5000"], "queries is 5000, but must lie between 100 and 1360"),
        (["--corpus", corpus, "--budget", "9"], "budget is 9"),
        (["--corpus", tmp_path / "none.parquet"], "does not exist"),
    ):
        code, shown, told = run(capsys, "plan", *arguments)
        assert (code, shown) == (2, "")
        assert message in " ".join(told.split())
