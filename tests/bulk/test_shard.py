"""One shard: bad rows are set aside, torn files are left out, and a disk that lies is noticed."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.support.shards import ROWS, digests, shard_table, temporary_files

from regionmarker.errors import OutsideError


def test_bad_rows_and_torn_shards_are_refused_and_the_rest_is_done(mark, shards, tmp_path, embeddings):
    source = shards(4)
    bad = embeddings[:ROWS].copy()
    bad[17, 3] = np.nan
    pq.write_table(shard_table(bad, 0), source / "part-001.parquet")
    (source / "part-002.parquet").write_bytes((source / "part-000.parquet").read_bytes()[:-50])
    outcome = mark(source, tmp_path / "out")
    assert not outcome.whole
    reasons = {entry.shard: entry.reason for entry in outcome.refused}
    assert reasons.keys() == {"part-001.parquet", "part-002.parquet"}
    assert reasons["part-001.parquet"].startswith("part-001.parquet: row 17 holds NaN or infinity; mend it")
    assert reasons["part-002.parquet"].startswith("cannot read part-002.parquet")
    assert outcome.manifest["totals"]["refused"] == 2
    assert sorted(digests(tmp_path / "out")) == ["part-000.parquet", "part-003.parquet"]
    for shard in (1, 2):
        pq.write_table(shard_table(embeddings, shard), source / f"part-{shard:03d}.parquet")
    mended = mark(source, tmp_path / "out")
    assert (mended.whole, mended.already_done) == (True, 2)


def test_bad_rows_are_set_aside_with_their_numbers(mark, tmp_path, embeddings, bulk_marker):
    rows = [row.copy() for row in embeddings[:ROWS]]
    rows[3][0], rows[9], rows[20], rows[30] = np.inf, rows[9][:100], None, rows[30] * 2
    source = tmp_path / "in"
    source.mkdir()
    table = pa.table({"id": range(ROWS), "embedding": pa.array(rows, pa.list_(pa.float32()))})
    pq.write_table(table, source / "a.parquet")
    outcome = mark(source, tmp_path / "out", on_bad_row="set-aside", verify_output=True)
    assert not outcome.whole
    (entry,) = outcome.manifest["shards"]
    assert (entry["status"], entry["rows"], entry["rows_set_aside"]) == ("done", ROWS - 3, 3)
    assert (entry["set_aside"], entry["set_aside_reason"]) == ([3, 9, 30], "row 3 holds NaN or infinity")
    aside = pq.read_table(tmp_path / "out.set-aside" / "a.parquet")
    assert aside.column("id").to_pylist() == aside.column("regionmarker_row").to_pylist() == [3, 9, 30]
    served = pq.read_table(tmp_path / "out").to_pylist()
    for row in served:
        expected = None if row["id"] == 20 else bulk_marker.transform(embeddings[row["id"]][None])[0].tolist()
        assert row["embedding"] == expected
    assert temporary_files(tmp_path) == []


def test_verifying_notices_a_disk_that_lies(mark, shards, tmp_path, monkeypatch):
    from regionmarker.bulk.pipeline import DigestingFile

    honest = DigestingFile.close

    def lying(self):
        path = Path(self._file.name)
        closed = self.closed
        honest(self)
        if not closed:
            content = bytearray(path.read_bytes())
            content[300] ^= 1
            path.write_bytes(content)

    source = shards(1)
    monkeypatch.setattr(DigestingFile, "close", lying)
    with pytest.raises(OutsideError, match=r"part-000.parquet: what was written is not what was meant"):
        mark(source, tmp_path / "out", verify_output=True)
    assert digests(tmp_path / "out") == {}
