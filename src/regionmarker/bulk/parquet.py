"""One Parquet file in, one marked Parquet file out, streamed: memory does not grow with the file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from regionmarker.corpus import EMBEDDING, list_matrix
from regionmarker.errors import InputError
from regionmarker.files import atomic_path
from regionmarker.marking.marker import RegionMarker

_BATCH_ROWS = 8192


def mark_file(
    marker: RegionMarker,
    source: Path,
    target: Path,
    *,
    tenant: str = "",
    column: str = EMBEDDING,
    on_rows: Callable[[int, int], None] = lambda _done, _total: None,
) -> int:
    """Mark one column of a Parquet file and keep everything else; return the number of rows.

    ``target`` appears only when it is whole. ``on_rows`` is told how many rows are done and how many there are.
    """
    if target.resolve() == source.resolve():
        raise InputError(f"{target} is the input itself: choose another output file")
    with _opened(source) as file:
        place = _column_place(file.schema_arrow, column, source)
        with atomic_path(target) as temporary:
            rows = 0
            with pq.ParquetWriter(temporary, file.schema_arrow, **_layout(file, place)) as writer:
                for batch in file.iter_batches(batch_size=_BATCH_ROWS):
                    marked = _marked(batch.column(place), marker, tenant, f"{source}: column {column}", rows)
                    writer.write_batch(batch.set_column(place, file.schema_arrow.field(place), marked))
                    rows += len(batch)
                    on_rows(rows, file.metadata.num_rows)
    return rows


@contextmanager
def _opened(source: Path) -> Iterator[Any]:
    try:
        with pq.ParquetFile(source) as file:
            yield file
    except FileNotFoundError:
        raise InputError(f"{source} does not exist") from None
    except pa.ArrowException as error:
        raise InputError(f"cannot read {source}: {str(error).splitlines()[0]}") from None


def _column_place(schema: Any, column: str, source: Path) -> int:
    place = int(schema.get_field_index(column))
    if place < 0:
        raise InputError(f"{source} has no column {column}; it has {', '.join(schema.names)}")
    kind = schema.field(place).type
    if not (pa.types.is_list(kind) or pa.types.is_fixed_size_list(kind) or pa.types.is_large_list(kind)):
        raise InputError(f"{source}: column {column} is {kind}, not a list of floats")
    if not pa.types.is_floating(kind.value_type):
        raise InputError(f"{source}: column {column} holds {kind.value_type}, not floats")
    return place


def _layout(file: Any, place: int) -> dict[str, Any]:
    """Write as the input was written: its codec; a dictionary never helps floats."""
    groups = file.metadata.num_row_groups
    codec = file.metadata.row_group(0).column(0).compression.lower() if groups else "snappy"
    others = [name for position, name in enumerate(file.schema_arrow.names) if position != place]
    return {"compression": "none" if codec == "uncompressed" else codec, "use_dictionary": others}


def _marked(column: Any, marker: RegionMarker, tenant: str, what: str, first_row: int) -> Any:
    """Mark the rows of one batch; null rows stay null."""
    present = column.drop_null()
    try:
        matrix = list_matrix(present)
        served = marker.transform(matrix, tenant=tenant)
    except InputError as error:
        raise InputError(f"{what}, in the batch from row {first_row}: {error}") from None
    values = pa.array(served.astype(matrix.dtype, copy=False).reshape(-1))
    kind = column.type
    if pa.types.is_fixed_size_list(kind):
        dense = pa.FixedSizeListArray.from_arrays(values, type=kind)
    else:
        offsets = np.arange(len(present) + 1, dtype=np.int64) * matrix.shape[1]
        maker = pa.LargeListArray if pa.types.is_large_list(kind) else pa.ListArray
        dense = maker.from_arrays(
            pa.array(offsets, pa.int64() if maker is pa.LargeListArray else pa.int32()), values, type=kind
        )
    if not column.null_count:
        return dense
    valid = column.is_valid().to_numpy(zero_copy_only=False)
    places = np.where(valid, np.cumsum(valid) - 1, -1)
    return dense.take(pa.array(places, mask=~valid))
