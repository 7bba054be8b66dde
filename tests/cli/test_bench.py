"""``regionmarker bench``: mistakes are one sentence and leave nothing behind; results become tables and a page."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from regionmarker.benchmark.grid import Cell, Store
from regionmarker.benchmark.grid.cell import NUMBERS
from regionmarker.cli import main

GRID = """
[[block]]
corpora = ["python"]
provider = "wordllama"
defenses = ["DEFENSE"]
"""


@pytest.fixture
def run(capsys):
    """Call the command line in this process: one for every mistake would take a minute."""

    def call(*arguments):
        with pytest.raises(SystemExit) as left:
            main(list(arguments))
        said = capsys.readouterr()
        return SimpleNamespace(code=left.value.code or 0, out=said.out, err=said.err)

    return call


@pytest.fixture
def result_rows():
    """A copy that is caught and two blameless suspects, of two defenses."""
    cells = [
        Cell("sst2", "p", defense, ("cse",), "head:x", suspect, queries=10, seed=1)
        for defense in ("regionmarker", "wet")
        for suspect in ("copy", "unmarked copy", "wordllama")
    ]
    return [
        {**cell.columns(), **dict.fromkeys(NUMBERS, 0.5), "digest": cell.defense[0] + cell.suspect[0],
         "decoy_p": 1e-6 if cell.guilty else 0.5, "published_copy": True}
        for cell in cells
    ]  # fmt: skip


@pytest.fixture
def grid(tmp_path):
    def write(text):
        path = tmp_path / "grid.toml"
        path.write_text(text)
        return str(path)

    return write


def test_mistakes_are_told_before_anything_is_written(run, grid, tmp_path, monkeypatch):
    monkeypatch.delenv("REGIONMARKER_DATA", raising=False)
    out = tmp_path / "out"
    for options, text, message in (
        ([], "[[block]", "is not TOML"),
        ([], GRID.replace("DEFENSE", "garlic"), "unknown defense 'garlic'"),
        ([], GRID.replace("wordllama", "stored:mpnet768"), "lies in a data folder: give --data-dir"),
        (["--data-dir", str(tmp_path / "nowhere")], GRID.replace("DEFENSE", "wet"), "the data folder"),
        (["--engine", "steam"], GRID.replace("DEFENSE", "wet"), "unknown engine 'steam'"),
        (["--engine", "ray"], GRID.replace("DEFENSE", "wet"), "its Ray workers were retired, use --engine processes"),
        (["--workers", "-1"], GRID.replace("DEFENSE", "wet"), "--workers must be at least 1"),
        (["--encoder", "minilm"], GRID.replace("DEFENSE", "wet"), "write NAME=SPEC"),
        (["--encoder", "minilm=wordllama"], GRID.replace("DEFENSE", "wet"), "the grid names no such encoder"),
    ):
        result = run("bench", "run", grid(text), "--out", str(out), *options)
        assert result.code == 2
        assert message in result.err
        assert "Traceback" not in result.err
        assert not out.exists()


def test_a_missing_grid_is_told(run, tmp_path):
    result = run("bench", "run", str(tmp_path / "none.toml"), "--out", str(tmp_path / "out"))
    assert result.code == 2
    assert "cannot read the grid" in result.err


def test_results_become_tables_figures_and_a_page(run, tmp_path, result_rows):
    out = tmp_path / "out"
    with Store.writing(out) as store:
        store.plan([row["digest"] for row in result_rows])
        for row in result_rows:
            store.add(row["digest"], row)
    for verb, name in (("table", "leaderboard.md"), ("figures", "attacks.svg"), ("page", "index.html")):
        result = run("bench", verb, str(out), "--json")
        assert result.code == 0, result.err
        assert name in json.loads(result.out)["files"]
        folder = out / {"table": "tables", "figures": "figures", "page": "page"}[verb]
        assert (folder / name).stat().st_size > 100


def test_a_folder_without_results_is_told(run, tmp_path):
    result = run("bench", "table", str(tmp_path))
    assert result.code == 2
    assert "holds no results" in result.err
    assert list(tmp_path.iterdir()) == []


def test_the_parts_are_listed(run):
    listed = json.loads(run("bench", "list", "--json").out)
    assert {"corpora", "defenses", "attacks", "stealers", "encoders"} == listed.keys()
    assert "regionmarker" in listed["defenses"]
    assert "cse" in listed["attacks"]
