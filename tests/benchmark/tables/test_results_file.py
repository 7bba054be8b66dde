"""One file of results: each cell once, checked, the same bytes from the same folders."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from regionmarker.benchmark.grid import Store
from regionmarker.benchmark.grid.cell import schema
from regionmarker.benchmark.tables.results_file import (
    MEANINGS,
    check_rows,
    collect,
    read_results,
    results_schema,
    write_results,
)
from regionmarker.errors import InputError


@pytest.fixture
def folder(tmp_path):
    """Makes an output folder with these rows; a digest more is planned and not computed."""

    def make(name, rows):
        with Store.writing(tmp_path / name) as store:
            store.plan([*(row["digest"] for row in rows), "still to come"])
            for row in rows:
                store.add(row["digest"], row)
        return tmp_path / name

    return make


def test_every_column_has_a_meaning():
    assert list(MEANINGS) == results_schema().names
    assert [name for name in results_schema().names if name not in schema(scores=False).names] == ["grids"]


def test_rows_of_a_folder_and_of_its_file_are_the_same(folder, rows, tmp_path):
    grid = folder("quick", rows)
    found = collect([grid])
    assert (len(found.rows), found.missing, found.replaced) == (len(rows), 1, 0)
    assert {tuple(row["grids"]) for row in found.rows} == {("quick",)}
    file = write_results(found.rows, tmp_path / "new" / "results.parquet")
    assert read_results(file).rows == found.rows
    assert [row["digest"] for row in found.rows] == [row["digest"] for row in rows]


def test_the_same_folders_give_the_same_bytes(folder, rows, tmp_path):
    grids = [folder("one", rows[:9]), folder("two", rows[5:])]
    files = [write_results(collect(grids).rows, tmp_path / name) for name in ("a.parquet", "b.parquet")]
    assert files[0].read_bytes() == files[1].read_bytes()
    again = write_results(collect([files[0], *grids]).rows, tmp_path / "c.parquet")  # a file and what is in it already
    assert again.read_bytes() == files[0].read_bytes()


def test_a_cell_of_two_grids_is_one_row(folder, rows):
    later = {**rows[0], "seconds_fit": 99.0}
    found = collect([folder("one", rows[:2]), folder("two", [later])])
    assert len(found.rows) == 2
    assert found.rows[0]["grids"] == ["one", "two"]
    assert found.rows[0]["seconds_fit"] == rows[0]["seconds_fit"]


def test_a_cell_computed_anew_replaces_the_one_named_later(folder, rows):
    newer = {**rows[0], "digest": "of other code", "decoy_p": 0.25}
    found = collect([folder("new", [newer]), folder("old", rows[:2])])
    assert found.replaced == 1
    assert [row["decoy_p"] for row in found.rows] == [0.25, rows[1]["decoy_p"]]
    assert found.rows[0]["grids"] == ["new", "old"]


def test_the_same_cell_with_another_number_is_refused(folder, rows):
    forged = {**rows[0], "decoy_p": 1e-9}
    with pytest.raises(InputError, match=r"has decoy_p 1e-09, and 0\.5 in one"):
        collect([folder("one", rows[:2]), folder("two", [forged])])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"decoy_p": 1.5}, "row 2 has decoy_p 1.5, which must lie between 0 and 1"),
        ({"corpus": None}, "row 2 has no corpus"),
        ({"grids": []}, "row 2 has no grids"),
    ],
)
def test_rows_are_checked(rows, change, message):
    some = [{**row, "grids": ["g"]} for row in rows[:2]]
    some[1] |= change
    with pytest.raises(InputError, match=message):
        check_rows(some, "results.parquet")


def test_a_row_twice_is_refused(rows):
    with pytest.raises(InputError, match="row 2 repeats the cell"):
        check_rows([{**rows[0], "grids": ["g"]}] * 2, "results.parquet")


def test_a_column_of_a_later_version_is_empty(tmp_path, rows):
    file = tmp_path / "results.parquet"
    table = pa.Table.from_pylist([{**rows[0], "grids": ["g"]}], schema=results_schema())
    pq.write_table(table.drop_columns(["attack_cosine"]), file)
    assert read_results(file).rows == [{**table.to_pylist()[0], "attack_cosine": None}]


def test_other_files_are_told_apart(tmp_path, rows):
    file = tmp_path / "results.parquet"
    pq.write_table(pa.table({"corpus": ["sst2"]}), file)
    with pytest.raises(InputError, match="has no column digest: write it by regionmarker bench collect"):
        read_results(file)
    table = pa.Table.from_pylist([{**rows[0], "grids": ["g"]}], schema=results_schema())
    place = table.schema.get_field_index("seed")
    pq.write_table(table.set_column(place, "seed", pa.array(["0"])), file)
    with pytest.raises(InputError, match="column seed is string, and must be int64"):
        read_results(file)
    file.write_bytes(b"no Parquet")
    with pytest.raises(InputError, match="cannot read"):
        read_results(file)
