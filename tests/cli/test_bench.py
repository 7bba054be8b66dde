"""``regionmarker bench``: mistakes are one sentence and leave nothing behind; results become tables and a page."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from types import SimpleNamespace

import pytest

from regionmarker.benchmark.attacks.paraphrasers import read_table
from regionmarker.benchmark.grid import Cell, Store, Summary
from regionmarker.benchmark.grid.cell import NUMBERS
from regionmarker.cli import main
from regionmarker.progress import Bar

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


@pytest.mark.parametrize("quiet", [False, True])
def test_people_see_how_many_texts_and_cells_are_done(run, grid, tmp_path, monkeypatch, quiet):
    opened, told = [], []

    class Remembered(Bar):
        def part(self, description):
            return lambda done, total: told.append((description, done, total))

    @contextmanager
    def progress(_description, _total, *, quiet):
        opened.append(quiet)
        yield Remembered()

    def run_grid(_grid, out, *, say, tick, embedded, **_):
        say("embedding the corpora by public encoders ...")
        embedded(2048, 9600)
        tick(1, 30)
        return Summary(30, 30, 0, out / "results.parquet")

    monkeypatch.setattr("regionmarker.cli.bench.progress", progress)
    monkeypatch.setattr("regionmarker.benchmark.grid.run_grid", run_grid)
    text, options = GRID.replace("DEFENSE", "wet"), ["--json"] if quiet else []
    result = run("bench", "run", grid(text), "--out", str(tmp_path / "out"), *options)
    assert result.code == 0
    assert told == [("texts", 2048, 9600), ("cells", 1, 30)]
    assert opened == [quiet]  # nothing is drawn for a program
    assert ("embedding the corpora" in result.err) is not quiet


def test_a_missing_grid_is_told(run, tmp_path):
    result = run("bench", "run", str(tmp_path / "none.toml"), "--out", str(tmp_path / "out"))
    assert result.code == 2
    assert "cannot read the grid" in result.err


@pytest.fixture
def results(tmp_path, result_rows):
    """An output folder."""
    with Store.writing(tmp_path / "out") as store:
        store.plan([row["digest"] for row in result_rows])
        for row in result_rows:
            store.add(row["digest"], row)
    return tmp_path / "out"


@pytest.mark.parametrize("collected", [False, True], ids=["folder", "file"])
def test_results_become_tables_figures_and_a_page(run, results, tmp_path, collected):
    source, above = results, results
    if collected:
        source, above = tmp_path / "file" / "cells.parquet", tmp_path / "file"
        told = json.loads(run("bench", "collect", str(results), "--out", str(source), "--json").out)
        assert (told["cells"], told["failed"], told["not_computed_yet"], told["replaced"]) == (6, 0, 0, 0)
    for verb, name in (("table", "leaderboard.md"), ("figures", "attacks.svg"), ("page", "index.html")):
        result = run("bench", verb, str(source), "--json")
        assert result.code == 0, result.err
        assert name in json.loads(result.out)["files"]
        folder = above / {"table": "tables", "figures": "figures", "page": "page"}[verb]
        assert (folder / name).stat().st_size > 100


def test_the_leaderboard_is_printed(run, results):
    result = run("bench", "table", str(results))
    assert [line.split()[:2] for line in result.out.splitlines()] == [
        ["rank", "defense"], ["1", "WET"], ["2", "RegionMarker"],
    ]  # fmt: skip
    assert "leaderboard.csv" not in result.out + result.err
    assert "tables.md" in result.err.replace("\n", "")  # a long path is wrapped
    told = json.loads(run("bench", "table", str(results), "--json").out)
    assert [line["defense"] for line in told["leaderboard"]] == ["WET", "RegionMarker 0.1"]


def test_rows_are_summed_up(run, results):
    told = json.loads(run("bench", "summary", str(results), "--by", "scheme,attack", "--json").out)
    first, second = told["lines"]
    assert (first["scheme"], first["attack"], first["caught"], first["copies"]) == ("regionmarker", "cse", 1, 1)
    assert (second["blameless"], second["blameless_caught"]) == (2, 0)
    assert first["caught_low"] == pytest.approx(0.025)
    chosen = run("bench", "summary", str(results), "--where", "scheme=wet", "--level", "1e-7")
    assert "0 of 1" in chosen.out
    assert "caught at 1e-07" in " ".join(chosen.err.split())


def test_mistakes_of_collecting_and_summing_up_are_told(run, results, tmp_path):
    for arguments, message in (
        (["collect", str(results), "--out", str(tmp_path / "cells.csv")], "must end in .parquet"),
        (["collect", str(tmp_path / "none"), "--out", str(tmp_path / "c.parquet")], "is neither an output folder"),
        (["summary", str(results), "--where", "wet"], "write COLUMN=VALUE"),
        (["summary", str(results), "--where", "colour=red"], "no column 'colour'"),
        (["summary", str(results), "--where", "seed=9"], "look at --where"),
        (["summary", str(results), "--by", "colour"], "no column 'colour'"),
        (["summary", str(results), "--by", ","], "--by names no column"),
        (["summary", str(results), "--level", "2"], "--level must lie between 0 and 1"),
    ):
        result = run("bench", *arguments)
        assert result.code == 2, arguments
        assert message in result.err
        assert "Traceback" not in result.err
    assert not (tmp_path / "c.parquet").exists()


def test_a_folder_without_results_is_told(run, tmp_path):
    result = run("bench", "table", str(tmp_path))
    assert result.code == 2
    assert "holds no results" in result.err
    assert list(tmp_path.iterdir()) == []


def test_the_parts_are_listed(run):
    listed = json.loads(run("bench", "list", "--json").out)
    assert {"corpora", "defenses", "attacks", "paraphrasers", "stealers", "encoders"} == listed.keys()
    assert "marian" in listed["paraphrasers"]
    assert "regionmarker" in listed["defenses"]
    assert "cse" in listed["attacks"]


def test_paraphrases_become_a_table_that_a_grid_can_use(run, grid, tmp_path):
    (tmp_path / "texts.txt").write_text("a good film\na bad film\na good film\n")
    out = tmp_path / "said.parquet"
    program = f"{sys.executable} -c \"import sys; [print('truly', line.strip()) for line in sys.stdin]\""
    command = ("bench", "paraphrase", str(tmp_path / "texts.txt"), "--by", f"program:{program}", "--out", str(out))
    result = run(*command, "--encoder", "wordllama", "--floor", "0.1", "--json")
    assert result.code == 0, result.err
    told = json.loads(result.out)
    assert (told["texts"], told["paraphrases"], told["without"], told["passing"]) == (2, 2, 0, 1.0)
    assert read_table(out) == {"a good film": ["truly a good film"], "a bad film": ["truly a bad film"]}
    again = run(*command, "--json")
    assert json.loads(again.out)["mean_cosine"] == told["mean_cosine"]


def test_mistakes_of_paraphrasing_are_told_before_anything_is_written(run, tmp_path, monkeypatch):
    monkeypatch.delenv("REGIONMARKER_DATA", raising=False)
    out = tmp_path / "said.parquet"
    for corpus, options, message in (
        ("brown", ["--by", "apertium"], "brown does not exist"),
        ("python", ["--by", "parrot"], "unknown paraphraser 'parrot'"),
        ("python", ["--by", "apertium", "--most", "0"], "--most and --limit must be at least 1"),
        ("python", ["--by", "apertium", "--provider", "wordllama"], "is no stored one"),
        ("sst2", ["--by", "apertium", "--provider", "stored:mpnet768"], "give --data-dir"),
    ):
        result = run("bench", "paraphrase", corpus, "--out", str(out), *options)
        assert result.code == 2
        assert message in result.err
        assert "Traceback" not in result.err
        assert not out.exists()
    result = run("bench", "paraphrase", "python", "--by", "apertium", "--out", str(tmp_path / "said.csv"))
    assert "must end in .parquet" in result.err
