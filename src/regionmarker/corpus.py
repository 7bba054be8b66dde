"""Corpora on disk: texts, with their embeddings where the file has them, in blocks.

A corpus is a ``.txt`` file with one text per line, a ``.jsonl``, ``.csv`` or ``.parquet`` file with a ``text`` column,
or a folder of such files. It may bring its own ``embedding`` column; then no encoder is needed. Both columns may have
other names.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from regionmarker.errors import InputError
from regionmarker.parquet import list_matrix, open_parquet, read_columns
from regionmarker.vectors import Encoder, Floats, as_floats, embedded_blocks

__all__ = [
    "EMBEDDING",
    "FORMATS",
    "TEXT",
    "Block",
    "EmbeddedBlock",
    "MissingColumnError",
    "TextSet",
    "check_block",
    "corpus_files",
    "embed_in_blocks",
    "open_parquet",
    "read_blocks",
    "read_columns",
    "read_embedded",
    "read_texts",
]

TEXT, EMBEDDING = "text", "embedding"
FORMATS = (".txt", ".jsonl", ".csv", ".parquet")
_BLOCK = 4096
_LONGEST_LINE = 1 << 24  # letters; a vector of the widest kind has a hundredth
_EMBEDDED = 512  # texts that are embedded before somebody hears of it

Block = tuple[list[str], Floats | None]
EmbeddedBlock = tuple[list[str], Floats]


@dataclass(frozen=True)
class TextSet:
    """Texts with their clean embeddings, (n, D)."""

    texts: tuple[str, ...]
    embeddings: Floats

    @classmethod
    def of_blocks(cls, blocks: Iterable[EmbeddedBlock]) -> TextSet:
        """Join what :func:`read_embedded` yields.

        Examples
        --------
        >>> TextSet.of_blocks([(["a", "b"], np.eye(2, dtype=np.float32)), (["c"], np.ones((1, 2), dtype=np.float32))])
        <TextSet: 3 texts>
        """
        texts: list[str] = []
        rows: list[Floats] = []
        for block, embeddings in blocks:
            texts += block
            rows.append(embeddings)
        return cls(tuple(texts), np.concatenate(rows))

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, part: slice) -> TextSet:
        return TextSet(self.texts[part], self.embeddings[part])

    def __repr__(self) -> str:
        return f"<TextSet: {len(self)} texts>"


class MissingColumnError(InputError):
    """A corpus lacks a column that is needed.

    Attributes
    ----------
    where
        The file, or its line.
    column
        What is missing.
    there
        The columns that it has.
    holds_texts
        Whether the texts were expected there, or the embeddings.
    """

    def __init__(self, where: str, column: str, there: Iterable[str], *, holds_texts: bool) -> None:
        self.where, self.column, self.there, self.holds_texts = where, column, tuple(there), holds_texts
        super().__init__(f"{where} has no column {column}; it has {', '.join(self.there) or 'no columns'}")


class _Columns(NamedTuple):
    """Which columns to read; no embeddings where their column has no name."""

    text: str
    embedding: str | None
    embedding_needed: bool = False

    def check(self, where: str, there: Iterable[str]) -> None:
        names = tuple(there)
        if self.text not in names:
            raise MissingColumnError(where, self.text, names, holds_texts=True)
        if self.embedding_needed and self.embedding not in names:
            raise MissingColumnError(where, str(self.embedding), names, holds_texts=False)


def read_blocks(
    path: Path, *, text_column: str | None = None, embedding_column: str | None = None, block: int = _BLOCK
) -> Iterator[Block]:
    r"""Yield (texts, embeddings or None) blocks of a corpus file, or of every such file in a folder.

    Parameters
    ----------
    path
        The corpus.
    text_column
        The column with the texts; by default ``text``.
    embedding_column
        The column with the embeddings, which must be there; by default ``embedding``, where there is one.
    block
        How many texts at a time.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "corpus.txt"
    >>> _ = file.write_text("one\n\ntwo\n")
    >>> list(read_blocks(file))
    [(['one', 'two'], None)]
    """
    columns = _Columns(text_column or TEXT, embedding_column or EMBEDDING, embedding_column is not None)
    yield from _read(path, columns, block)


def _read(path: Path, columns: _Columns, block: int = _BLOCK) -> Iterator[Block]:
    empty = True
    for file in corpus_files(path):
        for texts, embeddings in _READERS[file.suffix](file, columns, block):
            empty = empty and not texts
            yield texts, embeddings
    if empty:
        raise InputError(f"{path} holds no texts")


def read_embedded(
    path: Path,
    encoder: Encoder | None = None,
    *,
    text_column: str | None = None,
    embedding_column: str | None = None,
    most: int | None = None,
    on_texts: Callable[[int], None] = lambda _count: None,
) -> Iterator[EmbeddedBlock]:
    """Yield (texts, embeddings) blocks of a corpus: embedded by ``encoder``, or read from the embedding column.

    Parameters
    ----------
    path, text_column, embedding_column
        As :func:`read_blocks` takes them.
    encoder
        Embeds the texts; ``None`` reads the embedding column, which must be there.
    most
        Stop after this number of texts.
    on_texts
        Called with the number of texts of each block.
    """
    text = text_column or TEXT
    columns = _Columns(text, None) if encoder is not None else _Columns(text, embedding_column or EMBEDDING, True)
    left = most
    for texts, embeddings in _read(path, columns):
        taken = texts[:left]
        on_texts(len(taken))
        yield taken, encoder.encode(taken) if encoder is not None else np.asarray(embeddings)[: len(taken)]
        if left is not None:
            left -= len(taken)
            if left <= 0:
                return


def embed_in_blocks(
    encoder: Encoder, texts: Sequence[str], on_texts: Callable[[int, int], None] = lambda _done, _total: None
) -> Floats:
    """Embed texts a block at a time, so that somebody can be told how far it is.

    Parameters
    ----------
    encoder, texts
        Who embeds what.
    on_texts
        Called with the number of texts done and the number in all.
    """
    rows, done = [], 0
    for block, embeddings in embedded_blocks(encoder, texts, _EMBEDDED):
        rows.append(embeddings)
        done += len(block)
        on_texts(done, len(texts))
    return np.concatenate(rows)


def read_texts(path: Path, *, text_column: str | None = None) -> list[str]:
    """Return all texts of a corpus."""
    return [text for texts, _ in _read(path, _Columns(text_column or TEXT, None)) for text in texts]


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
        if not file.is_file():  # a named pipe would keep whoever reads it waiting for ever
            raise InputError(f"{file} is not a file")
    return files


# One reader per format.


def _read_lines(path: Path, columns: _Columns, block: int) -> Iterator[Block]:
    columns.check(str(path), (TEXT,))
    lines = (line.strip() for line in _lines(path))
    texts = (line for line in lines if line)
    while part := list(islice(texts, block)):
        yield part, None


def _read_jsonl(path: Path, columns: _Columns, block: int) -> Iterator[Block]:
    yield from _blocks_of_records(path, _json_records(path, columns), columns, block)


def _read_csv(path: Path, columns: _Columns, block: int) -> Iterator[Block]:
    reader = csv.DictReader(_lines(path))
    columns.check(str(path), reader.fieldnames or ())
    try:
        yield from _blocks_of_records(path, enumerate(reader, start=2), columns, block)
    except csv.Error as error:
        raise InputError(f"{path}, line {reader.line_num}: {error}") from None


def _read_parquet(path: Path, columns: _Columns, block: int) -> Iterator[Block]:
    with open_parquet(path) as file:
        there = file.schema_arrow.names
        if file.metadata.num_rows:
            columns.check(str(path), there)
        embedding = columns.embedding if columns.embedding in there else None
        wanted = [columns.text] if embedding is None else [columns.text, embedding]
        row = 0
        for batch in file.iter_batches(batch_size=block, columns=wanted):
            batch.validate(full=True)
            texts = batch.column(columns.text).to_pylist()
            check_block(path, texts, row)
            yield texts, None if embedding is None else _embedding_rows(batch, embedding, path, row)
            row += len(texts)


_READERS = {".txt": _read_lines, ".jsonl": _read_jsonl, ".csv": _read_csv, ".parquet": _read_parquet}


def _embedding_rows(batch: Any, name: str, path: Path, first_row: int) -> Floats:
    column = batch.column(name)
    if column.null_count:
        null = int(np.argmax(column.is_null().to_numpy(zero_copy_only=False)))
        raise InputError(f"{path}: column {name} has a null at row {first_row + null}")
    try:
        return as_floats(list_matrix(column), what=f"{path}: column {name}")
    except (InputError, AttributeError, ValueError) as error:
        raise InputError(f"{path}, rows from {first_row}: column {name} is not usable: {error}") from None


def _lines(path: Path) -> Iterator[str]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            while line := file.readline(_LONGEST_LINE + 1):
                if len(line) > _LONGEST_LINE:
                    raise InputError(f"{path} has a line of more than {_LONGEST_LINE} letters")
                yield line
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8 text: {error.reason} at byte {error.start}") from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from None


def _json_records(path: Path, columns: _Columns) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in enumerate(_lines(path), start=1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:  # also a number of thousands of digits
            raise InputError(f"{path}, line {number}: not JSON: {getattr(error, 'msg', error)}") from None
        if not isinstance(record, dict):
            raise InputError(f"{path}, line {number}: not an object with the field {columns.text}")
        columns.check(f"{path}, line {number}", record)
        yield number, record


def _blocks_of_records(
    path: Path, records: Iterator[tuple[int, dict[str, Any]]], columns: _Columns, block: int
) -> Iterator[Block]:
    name = columns.embedding
    while part := list(islice(records, block)):
        texts = [record[columns.text] for _, record in part]
        check_block(path, texts, part[0][0])
        if name is None or not any(name in record for _, record in part):
            yield texts, None
            continue
        rows = [_vector(path, number, name, record.get(name)) for number, record in part]
        if len({len(row) for row in rows}) != 1:
            raise InputError(f"{path}, lines from {part[0][0]}: column {name} has different widths")
        yield texts, as_floats(np.array(rows, dtype=np.float64), what=f"{path}: column {name}")


def _vector(path: Path, number: int, name: str, value: Any) -> list[float]:
    try:
        vector = json.loads(value) if isinstance(value, str) else value
        return [float(entry) for entry in vector]
    except (TypeError, ValueError, OverflowError, RecursionError):
        raise InputError(f"{path}, line {number}: column {name} is not a list of numbers") from None


def check_block(path: Path, texts: list[Any], first: int) -> None:
    """Refuse a block that holds something else than texts; ``first`` is the number of its first row."""
    for row, text in enumerate(texts, start=first):
        if not isinstance(text, str) or not text.strip():
            raise InputError(f"{path}, row {row}: the text is empty or not a string; remove that row")
    try:
        "".join(texts).encode()
    except UnicodeEncodeError as error:  # JSON can name half of a letter, and nothing can be done with it
        half = error.object[error.start]
        row = first + next(place for place, text in enumerate(texts) if half in text)
        raise InputError(f"{path}, row {row}: the text holds half of a letter; remove that row") from None
