"""Parquet files of strangers: opened after a first look in a child process, their columns as lists or as a matrix."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from regionmarker.errors import InputError
from regionmarker.first_look import first_look

_LOOK = "regionmarker.parquet:look_at_parquet"
_ROWS = 4096  # that a look at a whole file reads at a time


@contextmanager
def open_parquet(
    path: Path, what: str = "", *, whole_look: bool = False, most_rows: int = sys.maxsize
) -> Iterator[Any]:
    """Open a Parquet file for reading, after a first look in a child process, which a damaged footer may kill.

    Parameters
    ----------
    path
        The file.
    what
        What to call it in an error; by default its path.
    whole_look
        Read all its rows in the child first, not its footer alone.
    most_rows
        Refuse a file of more: a few kilobytes may hold a thousand million equal ones.

    Examples
    --------
    >>> with open_parquet(Path("missing.parquet")) as file:
    ...     pass
    Traceback (most recent call last):
    ...
    regionmarker.errors.InputError: missing.parquet does not exist, or is not a file
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    name = what or str(path)
    if not path.is_file():
        raise InputError(f"{name} does not exist, or is not a file")
    first_look(_LOOK, name, path=str(path), whole=whole_look, most_rows=most_rows)
    try:
        with pq.ParquetFile(path) as file:
            yield file
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InputError(f"cannot read {name}: {reason}") from None


def look_at_parquet(path: str, whole: bool, most_rows: int = sys.maxsize) -> None:
    """Read the footer of a Parquet file, or all of it; for :mod:`regionmarker.first_look`."""
    import pyarrow.parquet as pq

    with pq.ParquetFile(path) as file:
        read_names(file.schema_arrow)
        if file.metadata.num_rows > most_rows:
            raise InputError(f"{path} holds {file.metadata.num_rows} rows, where {most_rows} are the most")
        for batch in file.iter_batches(batch_size=_ROWS) if whole else ():
            batch.validate(full=True)


def read_names(schema: Any) -> None:
    """Read all names of an Arrow schema, those inside lists and structures too: bytes that may be no text."""
    for name, kind in zip(schema.names, schema.types, strict=True):
        str((name, str(kind)))


def read_columns(path: Path, names: Sequence[str]) -> list[list[Any]]:
    """Return the named columns of a Parquet file as lists, in the order of the names."""
    with open_parquet(path) as file:
        there = file.schema_arrow.names
        missing = [name for name in names if name not in there]
        if missing:
            raise InputError(f"{path} has no column {missing[0]}; it has {', '.join(there)}")
        table = file.read(columns=list(names))
    return [table.column(name).to_pylist() for name in names]


def list_matrix(column: Any) -> np.ndarray[Any, Any]:
    """Return an Arrow column of equally long lists of floats as a matrix (n, D), without copying where possible."""
    import pyarrow as pa

    width = column.type.list_size if pa.types.is_fixed_size_list(column.type) else None
    values = column.flatten().to_numpy(zero_copy_only=False)
    if width is None:
        lengths = np.unique(column.value_lengths().to_numpy(zero_copy_only=False))
        if len(lengths) != 1:
            raise InputError("its rows have different lengths")
        width = int(lengths[0])
    return np.asarray(values.reshape(len(column), width))
