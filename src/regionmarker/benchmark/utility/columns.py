"""Columns of a Parquet file, by name."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from regionmarker.errors import InputError


def read_columns(path: Path, names: Sequence[str]) -> list[list[Any]]:
    """Return the named columns of a Parquet file as lists, in the order of the names.

    Examples
    --------
    >>> read_columns(Path("missing.parquet"), ["text"])
    Traceback (most recent call last):
    ...
    regionmarker.errors.InputError: missing.parquet does not exist
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if not path.exists():
        raise InputError(f"{path} does not exist")
    try:
        with pq.ParquetFile(path) as file:
            missing = [name for name in names if name not in file.schema_arrow.names]
            if missing:
                raise InputError(f"{path} has no column {missing[0]}; it has {', '.join(file.schema_arrow.names)}")
            table = file.read(columns=list(names))
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"cannot read {path}: {str(error).splitlines()[0]}") from None
    return [table.column(name).to_pylist() for name in names]
