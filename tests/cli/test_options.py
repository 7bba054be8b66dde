"""Options that several verbs share: the columns of a corpus."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from regionmarker.cli import main
from regionmarker.cli.keygen import RESERVOIR
from regionmarker.marks import graded_settings

SMALL = ("--pool", "64", "--reservoir", "512")
COLUMNS = ("--text-column", "body", "--embedding-column", "vector")


@pytest.fixture
def renamed(corpus: Path) -> Path:
    """The corpus under other column names."""
    table = pq.read_table(corpus)
    path = corpus.with_name("renamed.parquet")
    pq.write_table(table.rename_columns(["id", "body", "vector", "note"]), path)
    return path


@pytest.fixture
def verbs(renamed: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, list[str]]:
    """Every verb that reads a corpus, with a key that it may use."""
    monkeypatch.chdir(renamed.parent)
    corpus = ["--corpus", str(renamed)]
    call(["keygen", *corpus, *COLUMNS, "--out", "k.rmkey", *SMALL, "--seed", "1"])
    suspect = ["--suspect", "wordllama", "--budget", "184", "--no-power", "--dry-run"]
    return {
        "keygen": ["keygen", *corpus, "--out", "other.rmkey", *SMALL, "--seed", "1"],
        "plan": ["plan", *corpus, "--kept=0.9", "--no-tenants", "--queries=700", "--budget=500"],
        "verify": ["verify", "--key", "k.rmkey", *corpus, *suspect],
        "impact": ["impact", "--key", "k.rmkey", *corpus, "--most", "200"],
    }


def call(arguments: list[str]) -> int:
    with pytest.raises(SystemExit) as left:
        main(arguments)
    return int(left.value.code or 0)


@pytest.mark.parametrize("verb", ["keygen", "plan", "verify", "impact"])
def test_every_verb_that_reads_a_corpus_takes_its_columns_by_name(
    verbs: dict[str, list[str]], verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    assert call([*verbs[verb], *COLUMNS, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("verb", ["keygen", "plan", "verify", "impact"])
def test_a_column_that_is_not_there_is_named_with_those_that_are(
    verbs: dict[str, list[str]], verb: str, capsys: pytest.CaptureFixture[str]
) -> None:
    there = "renamed.parquet has no {}; it has id, body, vector, note: {}"
    for options, message in (
        ([], there.format("column text", "name the column of the texts with --text-column")),
        (["--text-column", "bodies"], there.format("column bodies", "name the column of the texts with --text-column")),
        (
            ["--text-column", "body", "--embedding-column", "vectors"],
            there.format("column vectors", "give another --embedding-column, or --encoder"),
        ),
        (
            ["--text-column", "body"],
            "renamed.parquet has no embedding column: give --encoder, for example --encoder wordllama, "
            "or --embedding-column with one of its columns id, body, vector, note",
        ),
        (["--encoder", "wordllama", *COLUMNS], "give --encoder or --embedding-column, not both"),
    ):
        capsys.readouterr()
        assert call([*verbs[verb], *options]) == 2
        told = capsys.readouterr().err
        assert message in told
        assert len(told.strip().splitlines()) == 1


def test_the_same_key_comes_from_either_name(verbs: dict[str, list[str]], corpus: Path) -> None:
    from regionmarker import RegionMarker

    assert call(["keygen", "--corpus", str(corpus), "--out", "usual.rmkey", *SMALL, "--seed", "1"]) == 0
    assert RegionMarker.load("usual.rmkey").key_.id == RegionMarker.load("k.rmkey").key_.id


@pytest.mark.parametrize("option", ["--text-column", "--embedding-column", "--encoder"])
def test_columns_go_with_a_corpus(verbs: dict[str, list[str]], option: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert call(["verify", "--key", "k.rmkey", "--suspect", "wordllama", option, "wordllama"]) == 2
    assert f"{option} goes with --corpus: the key's own probes need none" in capsys.readouterr().err


def test_the_default_reservoir_is_that_of_the_library() -> None:
    assert RESERVOIR == graded_settings.RESERVOIR  # written again, because reading help must not load numpy
