"""Corpora on disk: every format, columns under any name, and one sentence about what is wrong."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from regionmarker.corpus import (
    MissingColumnError,
    TextSet,
    read_blocks,
    read_embedded,
    read_texts,
)
from regionmarker.errors import InputError
from regionmarker.vectors import Floats
from tests.support.damage import flips, footer_bytes

TEXTS = ["one text", "another, with a comma", "a third"]
ROWS = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]], dtype=np.float32)


class Lengths:
    """An encoder that counts."""

    name = "lengths"

    def __init__(self) -> None:
        self.asked: list[str] = []

    def encode(self, texts: list[str], /) -> Floats:
        self.asked += texts
        return np.array([[len(text), 1.0] for text in texts], dtype=np.float32)


def parquet(path: Path, text: str, embedding: str) -> None:
    pq.write_table(pa.table({"id": [1, 2, 3], text: TEXTS, embedding: list(ROWS)}), path)


def jsonl(path: Path, text: str, embedding: str) -> None:
    lines = [json.dumps({"id": 1, text: one, embedding: row.tolist()}) for one, row in zip(TEXTS, ROWS, strict=True)]
    path.write_text("\n".join(lines))


def csv(path: Path, text: str, embedding: str) -> None:
    lines = [f'1,"{one}","{json.dumps(row.tolist())}"' for one, row in zip(TEXTS, ROWS, strict=True)]
    path.write_text("\n".join([f"id,{text},{embedding}", *lines]))


WRITERS = {".parquet": parquet, ".jsonl": jsonl, ".csv": csv}
every_format = pytest.mark.parametrize(("suffix", "write"), WRITERS.items(), ids=WRITERS)
Write = Callable[[Path, str, str], None]


@every_format
def test_the_usual_columns_need_no_name(tmp_path: Path, suffix: str, write: Write) -> None:
    path = tmp_path / f"corpus{suffix}"
    write(path, "text", "embedding")
    ((texts, rows),) = read_blocks(path)
    assert texts == TEXTS == read_texts(path)
    assert rows is not None
    assert np.array_equal(rows, ROWS)


@every_format
def test_columns_may_have_any_name(tmp_path: Path, suffix: str, write: Write) -> None:
    path = tmp_path / f"corpus{suffix}"
    write(path, "body", "vector")
    assert read_texts(path, text_column="body") == TEXTS
    ((texts, rows),) = read_blocks(path, text_column="body")
    assert (texts, rows) == (TEXTS, None)  # the usual embedding column is not there, and none was named
    found = TextSet.of_blocks(read_embedded(path, text_column="body", embedding_column="vector"))
    assert found.texts == tuple(TEXTS)
    assert np.array_equal(found.embeddings, ROWS)


@every_format
def test_a_missing_column_is_named_with_those_that_are_there(tmp_path: Path, suffix: str, write: Write) -> None:
    path = tmp_path / f"corpus{suffix}"
    write(path, "body", "vector")
    with pytest.raises(MissingColumnError, match=r"has no column text; it has id, body, vector$") as error:
        read_texts(path)
    assert error.value.holds_texts
    for named in (None, "vectors"):
        wanted = named or "embedding"
        with pytest.raises(MissingColumnError, match=rf"has no column {wanted}; it has id, body, vector$") as error:
            list(read_embedded(path, text_column="body", embedding_column=named))
        assert not error.value.holds_texts


def test_a_text_file_has_one_column(tmp_path: Path) -> None:
    path = tmp_path / "corpus.txt"
    path.write_text("one\n\n two \n")
    assert read_texts(path) == read_texts(path, text_column="text") == ["one", "two"]
    with pytest.raises(MissingColumnError, match="has no column body; it has text"):
        read_texts(path, text_column="body")
    with pytest.raises(MissingColumnError, match="has no column embedding; it has text"):
        list(read_embedded(path))


def test_with_an_encoder_the_embedding_column_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "corpus.parquet"
    pq.write_table(pa.table({"text": TEXTS, "embedding": ["not", "a", "vector"]}), path)
    found = TextSet.of_blocks(read_embedded(path, Lengths()))
    assert found.embeddings[:, 0].tolist() == [len(text) for text in TEXTS]
    with pytest.raises(InputError, match="column embedding is not usable"):
        list(read_embedded(path))


def test_a_folder_is_read_in_the_order_of_names_and_only_as_far_as_wanted(tmp_path: Path) -> None:
    parquet(tmp_path / "b.parquet", "text", "embedding")
    jsonl(tmp_path / "a.jsonl", "text", "embedding")
    (tmp_path / "c.txt").write_text("last\n")
    encoder, counted = Lengths(), []
    found = TextSet.of_blocks(read_embedded(tmp_path, encoder, most=4, on_texts=counted.append))
    assert encoder.asked == list(found.texts) == [*TEXTS, TEXTS[0]]
    assert counted == [3, 1]
    assert read_texts(tmp_path) == [*TEXTS, *TEXTS, "last"]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ('{"text": "one", "embedding": [1]}\n{"text": ', "line 2: not JSON"),
        ('["one"]', "line 1: not an object with the field text"),
        (
            '{"text": "one", "embedding": [1]}\n{"text": " ", "embedding": [1]}',
            "row 2: the text is empty or not a string",
        ),
        ('{"text": "one", "embedding": "x"}', "line 1: column embedding is not a list of numbers"),
        ('{"text": "one", "embedding": [1]}\n{"text": "two", "embedding": [1, 2]}', "lines from 1: .*different widths"),
        ('{"text": "one", "embedding": [1.0]}\n{"text": "two"}', "line 2 has no column embedding; it has text"),
        ("", "holds no texts"),
        ('{"text": "one", "embedding": ' + "[" * 100_000, "line 1: not JSON: maximum recursion depth"),
        ('{"text": "one", "embedding": [' + "1" * 5000 + "]}", "line 1: not JSON: Exceeds the limit"),
        ('{"text": "one", "embedding": [1' + "0" * 400 + "]}", "line 1: column embedding is not a list of numbers"),
        ('{"text": "one", "embedding": "' + "[" * 5000 + '"}', "line 1: column embedding is not a list of numbers"),
        (r'{"text": "\ud800", "embedding": [1.0]}', "row 1: the text holds half of a letter"),
        ("x" * (1 << 24) + "x", "has a line of more than 16777216 letters"),
    ],
)
def test_what_is_wrong_with_a_line_is_one_sentence(tmp_path: Path, lines: str, message: str) -> None:
    path = tmp_path / "corpus.jsonl"
    path.write_text(lines)
    with pytest.raises(InputError, match=message):
        list(read_embedded(path))


@pytest.mark.parametrize("name", ["pipe.txt", "pipe.jsonl", "pipe.csv", "pipe.parquet"])
def test_a_pipe_in_place_of_a_corpus_keeps_nobody_waiting(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    for place in (tmp_path / name, tmp_path):
        with pytest.raises(InputError, match="is not a file"):
            read_texts(place)


def test_a_parquet_file_that_is_none_gets_a_sentence(tmp_path: Path) -> None:
    torn = tmp_path / "torn.parquet"
    torn.write_bytes(b"PAR1 and then nothing")
    with pytest.raises(InputError, match=r"cannot read .*torn\.parquet: "):
        read_texts(torn)


def test_400_flipped_parquet_files_are_read_or_refused_in_a_sentence(tmp_path):
    path = tmp_path / "corpus.parquet"
    pq.write_table(pa.table({"text": TEXTS, "embedding": list(ROWS)}), path)
    content = path.read_bytes()
    refused = []
    for damaged in [*flips(content, 300, last=footer_bytes(content)), *flips(content, 100, seed=1)]:
        path.write_bytes(damaged)
        try:
            list(read_blocks(path))
        except InputError as error:
            refused.append(str(error))
    assert 100 < len(refused) < 400
    assert all(str(path) in said for said in refused)


def test_a_footer_that_kills_pyarrow_is_a_sentence(tmp_path, monkeypatch):
    """pyarrow dies over the footers that bulk jobs read; here the death is made."""
    path = tmp_path / "corpus.parquet"
    pq.write_table(pa.table({"text": TEXTS}), path)
    monkeypatch.setattr("regionmarker.parquet._LOOK", "tests.support.looks:crash")
    with pytest.raises(InputError, match=r"corpus\.parquet: the library that reads it crashed"):
        read_texts(path)
