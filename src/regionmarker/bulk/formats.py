"""What a shard can be: a Parquet file, an Arrow IPC file or stream, a .npy matrix, a fragment of a Lance data set.

A source gives a schema and batches of rows; what is written is always Parquet. Hugging Face's data sets on disk are
Arrow streams and need no library of theirs.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from regionmarker.errors import InputError, MissingExtraError, OutsideError, RegionMarkerError
from regionmarker.parquet import read_names

SUFFIXES = {
    ".parquet": "parquet", ".pq": "parquet", ".arrow": "arrow", ".feather": "arrow", ".ipc": "arrow", ".npy": "npy",
}  # fmt: skip
LANCE = "lance"
_PANIC = "PanicException"  # what a library in Rust raises when it gives up; it is no Exception, and has no module
_READ_BYTES = 4 << 20
_LOOK_ROWS = 4096
_CODECS = {
    "UNCOMPRESSED": "none", "SNAPPY": "snappy", "GZIP": "gzip", "BROTLI": "brotli", "ZSTD": "zstd", "LZ4": "lz4",
    "LZ4_RAW": "lz4",
}  # fmt: skip
_IPC_MAGIC = b"ARROW1"
_AS_BYTES = {pa.string(): pa.binary(), pa.large_string(): pa.large_binary()}


class Source(Protocol):
    """A shard opened for reading."""

    schema: Any

    def batches(self, rows: int) -> Iterator[Any]:
        """Yield record batches of at most ``rows`` rows."""

    def writer_options(self, column: str) -> dict[str, Any]:  # noqa: ARG002 - by default the same for all columns
        """Return the options of a Parquet writer that fit this shard; ``column`` holds the vectors."""
        return {}


@contextlib.contextmanager
def open_shard(path: Path, kind: str, column: str, part: int = 0) -> Iterator[Source]:
    """Open a shard: ``kind`` is one of the formats, ``part`` the fragment of a Lance data set."""
    with contextlib.ExitStack() as stack:
        with reading(path):
            if kind == "parquet":
                source: Source = ParquetSource(stack, path)
            elif kind == "arrow":
                source = ArrowSource(stack, path)
            elif kind == "npy":
                source = NumpySource(path, column)
            else:
                source = LanceSource(path, part)
        yield source


def look_at_shard(path: str, kind: str, column: str, part: int, whole: bool) -> None:
    """Open a shard and read what its marking relies on, or all of it; for :mod:`regionmarker.first_look`."""
    with open_shard(Path(path), kind, column, part) as source, reading(Path(path)):
        read_names(source.schema)
        source.writer_options(column)
        for _batch in source.batches(_LOOK_ROWS) if whole else ():
            pass


@contextlib.contextmanager
def reading(path: Path) -> Iterator[None]:
    """Turn the many ways in which a file cannot be read into one sentence."""
    try:
        yield
    except RegionMarkerError:
        raise
    except FileNotFoundError:
        raise InputError(f"{path} does not exist") from None
    except (pa.ArrowException, OSError, ValueError, EOFError, TypeError) as error:
        if isinstance(error, OSError) and error.errno is not None:  # the disk's complaint, not the library's
            raise OutsideError(f"cannot read {path}: {error.strerror}") from None
        raise InputError(f"cannot read {path}: {_first_line(error)}") from None
    except BaseException as error:
        if type(error).__name__ != _PANIC:
            raise
        raise InputError(f"cannot read {path}: {_first_line(error)}") from None


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]


def digest(path: Path, kind: str, part: int = 0) -> str:
    """Return the SHA-256 of a shard's bytes; of a Lance fragment, over its files in order of name.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "empty"
    >>> file.touch()
    >>> digest(file, "parquet")[:8]
    'e3b0c442'
    """
    with reading(path):
        if kind == LANCE:
            total = hashlib.sha256()
            for file in _fragment_files(path, part):
                total.update(digest(file, "file").encode())
            return total.hexdigest()
        with path.open("rb", buffering=0) as content:
            return hashlib.file_digest(content, "sha256").hexdigest()


class ParquetSource(Source):
    """A Parquet file, read in pieces: memory does not grow with the file or with its row groups."""

    def __init__(self, stack: contextlib.ExitStack, path: Path) -> None:
        self._path = path
        self._file = stack.enter_context(pq.ParquetFile(path, buffer_size=_READ_BYTES, pre_buffer=False))
        self.schema = self._file.schema_arrow

    def batches(self, rows: int) -> Iterator[Any]:
        with reading(self._path):
            for batch in self._file.iter_batches(batch_size=rows):
                yield _validated(batch)

    def writer_options(self, column: str) -> dict[str, Any]:
        """Keep each column's codec. Dictionaries and statistics help everything but vectors."""
        metadata = self._file.metadata
        if not metadata.num_row_groups:
            return {}
        group = metadata.row_group(0)
        chunks = [group.column(number) for number in range(group.num_columns)]
        codecs = {chunk.path_in_schema: _CODECS.get(chunk.compression, "zstd") for chunk in chunks}
        others = [path for path in codecs if not path.startswith(f"{column}.")]
        return {"compression": codecs, "use_dictionary": others, "write_statistics": others}


class ArrowSource(Source):
    """An Arrow IPC file or stream, mapped into memory."""

    def __init__(self, stack: contextlib.ExitStack, path: Path) -> None:
        self._path = path
        mapped = stack.enter_context(pa.memory_map(str(path)))
        is_file = path.stat().st_size >= len(_IPC_MAGIC) and mapped.read(len(_IPC_MAGIC)) == _IPC_MAGIC
        mapped.seek(0)
        reader = stack.enter_context(pa.ipc.open_file(mapped) if is_file else pa.ipc.open_stream(mapped))
        self._batches = (
            (reader.get_batch(number) for number in range(reader.num_record_batches)) if is_file else iter(reader)
        )
        self.schema = reader.schema

    def batches(self, rows: int) -> Iterator[Any]:
        with reading(self._path):
            for batch in map(_validated, self._batches):
                for start in range(0, len(batch), rows):
                    yield batch.slice(start, rows)


class NumpySource(Source):
    """A .npy matrix (n, D): it becomes one column of vectors."""

    def __init__(self, path: Path, column: str) -> None:
        self._path = path
        self._matrix = np.load(path, mmap_mode="r", allow_pickle=False)
        if self._matrix.ndim != 2 or self._matrix.dtype.kind != "f" or self._matrix.dtype.itemsize > 8:
            raise InputError(f"{path} must be a 2-d array of floats, but is {self._matrix.shape} {self._matrix.dtype}")
        self._type = self._matrix.dtype.newbyteorder("=")
        value = pa.from_numpy_dtype(self._type)
        self.schema = pa.schema([pa.field(column, pa.list_(value, self._matrix.shape[1]))])

    def batches(self, rows: int) -> Iterator[Any]:
        with reading(self._path):
            for start in range(0, len(self._matrix), rows):
                block = np.ascontiguousarray(self._matrix[start : start + rows], dtype=self._type)
                values = pa.FixedSizeListArray.from_arrays(pa.array(block.reshape(-1)), block.shape[1])
                yield pa.record_batch([values], schema=self.schema)

    def writer_options(self, column: str) -> dict[str, Any]:  # noqa: ARG002 - there is one column
        """Vectors alone: nothing compresses."""
        return {"compression": "none", "use_dictionary": False, "write_statistics": False}


class LanceSource(Source):
    """A fragment of a Lance data set."""

    def __init__(self, path: Path, part: int) -> None:
        self._path = path
        self._fragment = open_lance(path).get_fragment(part)
        self.schema = self._fragment.schema

    def batches(self, rows: int) -> Iterator[Any]:
        with reading(self._path):
            yield from self._fragment.to_batches(batch_size=rows)


def _validated(batch: Any) -> Any:
    """Refuse a batch with an offset or an index that points outside of it: nothing else would look at that."""
    batch.validate()
    for column in batch.columns:
        kind = _AS_BYTES.get(column.type)  # a text that is not UTF-8 is handed on as it came
        (column if kind is None else column.view(kind)).validate(full=True)
    return batch


def open_lance(path: Path) -> Any:
    """Open a Lance data set, or say which package reads it."""
    try:
        import lance
    except ImportError:
        raise MissingExtraError.for_module("pylance", "lance") from None
    return lance.dataset(str(path))


def _fragment_files(path: Path, part: int) -> list[Path]:
    fragment = open_lance(path).get_fragment(part)
    files = [path / "data" / file.path for file in fragment.data_files()]
    deleted = fragment.deletion_file()
    return sorted([*files, *([] if deleted is None else [path / deleted])])
