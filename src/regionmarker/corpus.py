"""The key: everything secret about one mark, as plain values and arrays."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from regionmarker.errors import InputError
from regionmarker.vectors import Floats, as_floats


@dataclass(frozen=True)
class TextSet:
    """Texts with their clean embeddings, (n, D)."""

    texts: tuple[str, ...]
    embeddings: Floats

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, part: slice) -> TextSet:
        return TextSet(self.texts[part], self.embeddings[part])

    def __repr__(self) -> str:
        return f"<TextSet: {len(self)} texts>"


# Corpora on disk, read in blocks: .txt (a text a line), .jsonl, .csv and .parquet with a ``text`` column.
#
# A corpus may bring its own ``embedding`` column; then no encoder is needed.

TEXT, EMBEDDING = "text", "embedding"
FORMATS = (".txt", ".jsonl", ".csv", ".parquet")
_BLOCK = 4096

Block = tuple[list[str], Floats | None]


def read_blocks(path: Path, block: int = _BLOCK) -> Iterator[Block]:
    r"""Yield (texts, embeddings or None) blocks of a corpus file, or of every such file in a folder.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "corpus.txt"
    >>> _ = file.write_text("one\n\ntwo\n")
    >>> list(read_blocks(file))
    [(['one', 'two'], None)]
    """
    files = corpus_files(path)
    empty = True
    for file in files:
        for texts, embeddings in _READERS[file.suffix](file, block):
            empty = empty and not texts
            yield texts, embeddings
    if empty:
        raise InputError(f"{path} holds no texts")


def read_texts(path: Path) -> list[str]:
    """Return all texts of a corpus."""
    return [text for texts, _ in read_blocks(path) for text in texts]


def corpus_files(path: Path) -> list[Path]:
    """Return the files of a corpus: the file itself, or all of one folder in order of name."""
    if not path.exists():
        raise InputError(f"{path} does not exist")
    files = sorted(file for file in path.iterdir() if file.suffix in FORMATS) if path.is_dir() else [path]
    if not files:
        raise InputError(f"{path} holds no corpus file: use {', '.join(FORMATS)}")
    for file in files:
        if file.suffix not in FORMATS:
            raise InputError(f"{file} is not a corpus file: use {', '.join(FORMATS)}")
    return files


def _read_lines(path: Path, block: int) -> Iterator[Block]:
    lines = (line.strip() for line in _lines(path))
    texts = (line for line in lines if line)
    while part := list(islice(texts, block)):
        yield part, None


def _read_jsonl(path: Path, block: int) -> Iterator[Block]:
    yield from _blocks_of_records(path, _json_records(path), block)


def _read_csv(path: Path, block: int) -> Iterator[Block]:
    reader = csv.DictReader(_lines(path))
    if TEXT not in (reader.fieldnames or ()):
        raise _missing_column(path, list(reader.fieldnames or ()))
    try:
        yield from _blocks_of_records(path, enumerate(reader, start=2), block)
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num}: {error}") from None


def _read_parquet(path: Path, block: int) -> Iterator[Block]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            names = file.schema_arrow.names
            if TEXT not in names:
                raise _missing_column(path, names)
            wanted = [name for name in (TEXT, EMBEDDING) if name in names]
            row = 0
            for batch in file.iter_batches(batch_size=block, columns=wanted):
                texts = batch.column(TEXT).to_pylist()
                _check_texts(path, texts, row)
                yield texts, _embedding_rows(batch, path, row) if EMBEDDING in names else None
                row += len(texts)
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"cannot read {path}: {_first_line(error)}") from None


_READERS = {".txt": _read_lines, ".jsonl": _read_jsonl, ".csv": _read_csv, ".parquet": _read_parquet}


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


def _embedding_rows(batch: Any, path: Path, first_row: int) -> Floats:
    column = batch.column(EMBEDDING)
    if column.null_count:
        raise InputError(f"{path}: column embedding has a null at row {first_row + _first_null(column)}")
    try:
        return as_floats(list_matrix(column), what=f"{path}: column embedding")
    except (InputError, AttributeError, ValueError) as error:
        raise InputError(f"{path}, rows from {first_row}: column embedding is not usable: {error}") from None


def _first_null(column: Any) -> int:
    return int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))


def _lines(path: Path) -> Iterator[str]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            yield from file
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text: {error.reason} at byte {error.start}") from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None


def _json_records(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(_lines(path), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except json.JSONDecodeError as error:
            raise InputError(f"{path}, line {number}: not JSON: {error.msg}") from None
        if not isinstance(record, dict) or TEXT not in record:
            raise InputError(f"{path}, line {number}: there is no field text")
        yield number, record


def _blocks_of_records(path: Path, records: Iterator[tuple[int, dict[str, Any]]], block: int) -> Iterator[Block]:
    while part := list(islice(records, block)):
        texts = [record[TEXT] for _, record in part]
        _check_texts(path, texts, part[0][0])
        if not any(EMBEDDING in record for _, record in part):
            yield texts, None
            continue
        rows = [_vector(path, number, record.get(EMBEDDING)) for number, record in part]
        if len({len(row) for row in rows}) != 1:
            raise InputError(f"{path}, lines from {part[0][0]}: embeddings have different widths")
        yield texts, as_floats(np.array(rows, dtype=np.float64), what=f"{path}: field embedding")


def _vector(path: Path, number: int, value: Any) -> list[float]:
    try:
        vector = json.loads(value) if isinstance(value, str) else value
        return [float(entry) for entry in vector]
    except (TypeError, ValueError):
        raise InputError(f"{path}, line {number}: embedding is not a list of numbers") from None


def _check_texts(path: Path, texts: list[Any], first: int) -> None:
    for place, text in enumerate(texts):
        if not isinstance(text, str) or not text.strip():
            raise InputError(f"{path}, row {first + place}: the text is empty or not a string; remove that row")


def _missing_column(path: Path, names: list[str]) -> InputError:
    return InputError(f"{path} has no column text; it has {', '.join(names) or 'no columns'}")


def _first_line(error: BaseException) -> str:
    return str(error).splitlines()[0] if str(error) else type(error).__name__


# Columns of a Parquet file, by name.


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
