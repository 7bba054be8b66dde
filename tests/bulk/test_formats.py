"""Every format in, Parquet out: same rows, same types, same metadata, the mark added."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.support.shards import matrix, vectors

from regionmarker.errors import InputError, MissingExtraError

ROWS = 60


@pytest.fixture
def table(embeddings, sentences) -> pa.Table:
    """Columns of many kinds around the vectors."""
    return pa.table(
        {
            "id": pa.array(range(ROWS)),
            "embedding": vectors(embeddings[:ROWS]),
            "tags": pa.array([[text[:3], None] if row % 2 else None for row, text in enumerate(sentences[:ROWS])]),
            "category": pa.array(["a", "b", None] * (ROWS // 3)).dictionary_encode(),
            "score": pa.array([float("nan") if row == 3 else row / 7 for row in range(ROWS)], pa.float64()),
        }
    ).replace_schema_metadata({"owner": "tests", "license": "none"})


def check(found: pa.Table, before: pa.Table, marker) -> None:
    assert found.schema.equals(before.schema, check_metadata=True)
    assert np.array_equal(matrix(found), marker.transform(matrix(before)))
    for name in set(before.schema.names) - {"embedding"}:
        assert str(found.column(name).to_pylist()) == str(before.column(name).to_pylist())


def test_parquet_keeps_codecs_column_by_column(mark, tmp_path, table, bulk_marker):
    source = tmp_path / "in"
    (source / "year=2024").mkdir(parents=True)
    path = source / "year=2024" / "a.parquet"
    codecs = {"id": "zstd", "embedding.list.element": "none", "tags.list.element": "gzip", "category": "snappy"}
    pq.write_table(table, path, compression=codecs, row_group_size=25)
    assert mark(source, tmp_path / "out", verify_output=True).whole
    written = tmp_path / "out" / "year=2024" / "a.parquet"
    check(pq.ParquetFile(written).read(), pq.ParquetFile(path).read(), bulk_marker)
    before, after = (pq.ParquetFile(name).metadata.row_group(0) for name in (path, written))
    for place in range(before.num_columns):
        assert before.column(place).compression == after.column(place).compression


@pytest.mark.parametrize("stream", [False, True])
def test_arrow_files_and_streams(mark, tmp_path, table, bulk_marker, stream):
    source = tmp_path / "in"
    source.mkdir()
    maker = pa.ipc.new_stream if stream else pa.ipc.new_file
    with maker(source / "a.arrow", table.schema) as writer:
        writer.write_table(table, max_chunksize=25)
    assert mark(source, tmp_path / "out", verify_output=True).whole
    check(pq.ParquetFile(tmp_path / "out" / "a.parquet").read(), table, bulk_marker)


@pytest.mark.parametrize("dtype", ["<f2", "<f4", ">f4", "<f8"])
def test_numpy_matrices(mark, tmp_path, embeddings, bulk_marker, dtype):
    native = np.dtype(dtype).newbyteorder("=")
    rows = embeddings[:ROWS].astype(dtype)
    np.save(tmp_path / "a.npy", np.asfortranarray(rows))
    mark(tmp_path / "a.npy", tmp_path / "out.parquet", verify_output=True)
    found = pq.read_table(tmp_path / "out.parquet")
    assert found.schema.field("embedding").type == pa.list_(pa.from_numpy_dtype(native), rows.shape[1])
    served = bulk_marker.transform(np.ascontiguousarray(rows, dtype=native))
    assert np.array_equal(matrix(found), served)


@pytest.mark.parametrize("kind", [pa.float16(), pa.float32(), pa.float64()])
@pytest.mark.parametrize("listed", [pa.list_, pa.large_list])
def test_lists_and_nulls_of_every_float(mark, tmp_path, embeddings, bulk_marker, kind, listed):
    rows = [None if row % 5 == 2 else embeddings[row].astype(kind.to_pandas_dtype()) for row in range(ROWS)]
    pq.write_table(pa.table({"embedding": pa.array(rows, listed(kind))}), tmp_path / "in.parquet")
    mark(tmp_path / "in.parquet", tmp_path / "out.parquet", verify_output=True)
    column = pq.read_table(tmp_path / "out.parquet").column("embedding")
    assert column.type == pq.read_schema(tmp_path / "in.parquet").field("embedding").type
    for row, vector in zip(rows, column.to_pylist(), strict=True):
        if row is None:
            assert vector is None
        else:
            assert np.array_equal(bulk_marker.transform(row[None])[0], np.array(vector, dtype=np.float32))


def test_hugging_face_folders(mark, tmp_path, embeddings, bulk_marker):
    datasets = pytest.importorskip("datasets", reason="datasets is not installed")
    data = datasets.Dataset.from_dict({"id": range(ROWS), "embedding": embeddings[:ROWS].tolist()})
    data = data.cast_column("embedding", datasets.Sequence(datasets.Value("float32")))
    parts = datasets.DatasetDict({"train": data.select(range(40)), "test": data.select(range(40, ROWS))})
    parts.save_to_disk(tmp_path / "in", num_shards={"train": 2, "test": 1})
    (tmp_path / "in" / "train" / "cache-0123.arrow").write_bytes(b"a leftover of the library's cache")
    assert mark(tmp_path / "in", tmp_path / "out", verify_output=True).whole
    names = sorted(
        path.relative_to(tmp_path / "out").as_posix() for path in (tmp_path / "out").glob("*/data-*.parquet")
    )
    assert names == [
        "test/data-00000-of-00001.parquet", "train/data-00000-of-00002.parquet", "train/data-00001-of-00002.parquet",
    ]  # fmt: skip
    table = pa.concat_tables(pq.ParquetFile(tmp_path / "out" / name).read() for name in [*names[1:], names[0]])
    assert b"huggingface" in table.schema.metadata
    assert table.column("id").to_pylist() == list(range(ROWS))
    served = np.array(table.column("embedding").to_pylist(), dtype=np.float32)
    assert np.array_equal(served, bulk_marker.transform(embeddings[:ROWS]))


def test_lance_data_sets(mark, tmp_path, table, bulk_marker):
    lance = pytest.importorskip("lance", reason="pylance is not installed")
    plain = table.select(["id", "embedding"])
    lance.write_dataset(plain, tmp_path / "in.lance", max_rows_per_file=25).delete("id = 5")
    outcome = mark(tmp_path / "in.lance", tmp_path / "out", verify_output=True)
    assert outcome.manifest["totals"]["shards"] == 3
    found = pq.read_table(tmp_path / "out")
    kept = [row for row in range(ROWS) if row != 5]
    assert found.column("id").to_pylist() == kept
    assert np.array_equal(matrix(found), bulk_marker.transform(matrix(plain)[kept]))
    assert mark(tmp_path / "in.lance", tmp_path / "out").already_done == 3


def test_without_its_library_lance_is_a_clear_error(mark, tmp_path, monkeypatch):
    import sys

    (tmp_path / "in.lance" / "data").mkdir(parents=True)
    monkeypatch.setitem(sys.modules, "lance", None)
    with pytest.raises(MissingExtraError, match=r'pylance is not installed: pip install "regionmarker\[lance\]"'):
        mark(tmp_path / "in.lance", tmp_path / "out")


def test_names_that_would_meet_are_refused(mark, tmp_path, embeddings):
    source = tmp_path / "in"
    source.mkdir()
    np.save(source / "a.npy", embeddings[:5])
    pq.write_table(pa.table({"embedding": vectors(embeddings[:5])}), source / "a.parquet")
    with pytest.raises(InputError, match=r"a.npy and a.parquet would both become a.parquet"):
        mark(source, tmp_path / "out")


def test_what_is_no_shard_is_said(mark, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "notes.txt").write_text("notes")
    for source, message in (("empty", "holds no file of vectors"), ("notes.txt", "is not a file of vectors")):
        with pytest.raises(InputError, match=message):
            mark(tmp_path / source, tmp_path / "out")
    np.save(tmp_path / "cube.npy", np.zeros((2, 2, 2), dtype=np.float32))
    np.save(tmp_path / "whole.npy", np.zeros((2, 2), dtype=np.int64))
    for name in ("cube", "whole"):
        with pytest.raises(InputError, match="must be a 2-d array of floats"):
            mark(tmp_path / f"{name}.npy", tmp_path / "out.parquet")
    (tmp_path / "torn.arrow").write_bytes(b"ARROW1 and no more")
    with pytest.raises(InputError, match=r"cannot read torn.arrow"):
        mark(tmp_path / "torn.arrow", tmp_path / "out.parquet")
    assert not (tmp_path / "out.parquet").exists()


def test_a_file_among_files_leaves_its_manifest_and_nothing_else(mark, tmp_path, embeddings):
    np.save(tmp_path / "a.npy", embeddings[:20])
    mark(tmp_path / "a.npy", tmp_path / "out.parquet")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.npy", "out.parquet", "out.parquet.manifest.json"]
    with pytest.raises(InputError, match="exists already"):
        mark(tmp_path / "a.npy", tmp_path / "out.parquet")
