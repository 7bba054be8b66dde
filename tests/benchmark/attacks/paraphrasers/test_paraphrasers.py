"""Paraphrases from a file."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from regionmarker.benchmark.attacks.paraphrasers import load_paraphraser, read_table, write_table
from regionmarker.errors import InputError


def write(path: Path, **columns: list[object]) -> Path:
    pq.write_table(pa.table(columns), path)
    return path


def test_reads_originals_and_texts(tmp_path: Path) -> None:
    file = write(tmp_path / "p.parquet", original=["a", "b", "a"], text=["x", "y", "z"])
    paraphraser = load_paraphraser(f"table:{file}")
    assert paraphraser.paraphrase(["a", "c", "b"], 5) == [["x", "z"], [], ["y"]]
    assert paraphraser.paraphrase(["a"], 1) == [["x"]]
    assert paraphraser.name == f"table:{file}"
    assert "2 texts" in repr(paraphraser)


def test_reads_row_numbers_of_a_corpus(tmp_path: Path) -> None:
    file = write(tmp_path / "p.parquet", row=[2, 0], text=["x", "y"])
    corpus = write(tmp_path / "corpus.parquet", text=["a", "b", "c"])
    assert load_paraphraser(f"table:{file}@{corpus}").paraphrase(["a", "b", "c"], 5) == [["y"], [], ["x"]]


def test_writes_what_it_reads(tmp_path: Path) -> None:
    file = tmp_path / "p.parquet"
    write_table(file, ["a", "b"], [["x", "y"], []])
    assert read_table(file) == {"a": ["x", "y"]}
    write_table(file, [], [])
    assert read_table(file) == {}
    assert list(tmp_path.iterdir()) == [file]  # and nothing half-written beside it
    with pytest.raises(InputError, match="2 texts but paraphrases of 1"):
        write_table(file, ["a", "b"], [["x"]])


def test_says_what_is_wrong_with_a_table(tmp_path: Path) -> None:
    file = write(tmp_path / "p.parquet", row=[2], text=["x"])
    corpus = write(tmp_path / "corpus.parquet", text=["a", "b"])
    broken = tmp_path / "broken.parquet"
    broken.write_text("not a table")
    for spec, message in [
        (f"table:{file}", "has no column original; it has row, text, or name the corpus"),
        (f"table:{file}@{corpus}", "names row 2, but .*corpus.parquet has 2 texts"),
        (f"table:{broken}", "cannot read .*broken.parquet"),
        (f"table:{corpus}@{corpus}", "has no column row; it has text$"),
    ]:
        with pytest.raises(InputError, match=message):
            load_paraphraser(spec)


def test_the_stored_round_trips_are_found_by_their_rows(data_dir: Path) -> None:
    spec = f"table:{data_dir / 'paraphrases_sst2.parquet'}@{data_dir / 'sst2.parquet'}"
    texts = pq.read_table(data_dir / "sst2.parquet", columns=["text"])["text"].to_pylist()
    assert load_paraphraser(spec).paraphrase([texts[66]], 5)[0][0] == "Never we feel anything for these characters"
