"""One batch: every row gets its tenant's mark."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from tests.support.shards import ROWS, matrix, vectors

from regionmarker import RegionMarker


def test_each_row_gets_its_tenants_mark(mark, tmp_path, embeddings, bulk_marker, bulk_keys):
    tenants = [("acme", "globex", "")[row % 3] for row in range(ROWS)]
    source = tmp_path / "in"
    source.mkdir()
    table = pa.table({"embedding": vectors(embeddings[:ROWS]), "customer": tenants})
    pq.write_table(table, source / "a.parquet")
    mark(source, tmp_path / "out", tenant_column="customer", verify_output=True)
    served = matrix(pq.read_table(tmp_path / "out"))
    for row, tenant in enumerate(tenants):
        assert np.array_equal(served[row], bulk_marker.transform(embeddings[row][None], tenant)[0])
    strangers = table.set_column(1, "customer", pa.array([*tenants[:-2], "initech", None]))
    pq.write_table(strangers, source / "a.parquet")
    serving = RegionMarker.load(bulk_keys / "key-serving.rmkey")
    outcome = mark(source, tmp_path / "out2", tenant_column="customer", marker=serving, on_bad_row="set-aside")
    (entry,) = outcome.manifest["shards"]
    assert entry["set_aside"] == [ROWS - 2, ROWS - 1]
    assert entry["set_aside_reason"].startswith(f"row {ROWS - 2} tenant 'initech' is not in this serving key")
