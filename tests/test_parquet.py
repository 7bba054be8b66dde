"""Parquet files: opened after a first look, their columns as lists or as a matrix, and one sentence about the rest."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from regionmarker import corpus
from regionmarker.errors import InputError
from regionmarker.parquet import list_matrix, open_parquet, read_columns

TEXTS = ["one text", "another, with a comma", "a third"]
ROWS = [[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]]


@pytest.fixture
def table(tmp_path: Path) -> Path:
    path = tmp_path / "table.parquet"
    pq.write_table(pa.table({"id": [1, 2, 3], "text": TEXTS}), path)
    return path


def test_files_that_are_none_get_a_sentence(tmp_path: Path) -> None:
    torn = tmp_path / "torn.parquet"
    torn.write_bytes(b"PAR1 and then nothing")
    with pytest.raises(InputError, match=r"cannot read .*torn\.parquet: "), open_parquet(torn):
        pass
    with pytest.raises(InputError, match="cannot read the table of names: "), open_parquet(torn, "the table of names"):
        pass
    with pytest.raises(InputError, match="does not exist, or is not a file"):
        read_columns(tmp_path, ["text"])


def test_columns_come_in_the_order_of_their_names(table: Path) -> None:
    assert read_columns(table, ["text", "id"]) == [TEXTS, [1, 2, 3]]
    with pytest.raises(InputError, match="has no column split; it has id, text"):
        read_columns(table, ["text", "split"])


def test_a_file_of_more_rows_than_wanted_is_refused(table: Path) -> None:
    with pytest.raises(InputError, match="holds 3 rows, where 2 are the most"), open_parquet(table, most_rows=2):
        pass
    with open_parquet(table, most_rows=3, whole_look=True) as file:
        assert file.metadata.num_rows == 3


def test_a_column_of_lists_is_a_matrix_where_all_are_equally_long() -> None:
    lists = pa.array(ROWS)
    assert np.array_equal(list_matrix(lists), ROWS)
    assert np.array_equal(list_matrix(lists.cast(pa.list_(pa.float64(), 2))), ROWS)
    with pytest.raises(InputError, match="its rows have different lengths"):
        list_matrix(pa.array([[1.0, 0.0], [1.0]]))


def test_the_reader_of_corpora_still_offers_both_ways_in() -> None:
    assert (corpus.open_parquet, corpus.read_columns) == (open_parquet, read_columns)
