"""Paraphrases that were made beforehand, in a Parquet file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from regionmarker.corpus import read_texts
from regionmarker.errors import InputError
from regionmarker.files import atomic_path


class TableParaphraser:
    """Looks paraphrases up; a text that is not in the table has none.

    Parameters
    ----------
    name
        The spec, or what tables shall call it.
    table
        The paraphrases of each text, in order.

    Examples
    --------
    >>> table = TableParaphraser("mine", {"a good film": ["a fine film", "a good movie"]})
    >>> table.paraphrase(["a good film", "a bad film"], 1)
    [['a fine film'], []]
    """

    def __init__(self, name: str, table: Mapping[str, Sequence[str]]) -> None:
        self.name, self._table = name, table

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r}, {len(self._table)} texts)"

    @classmethod
    def from_spec(cls, rest: str) -> Self:
        """Load ``table:FILE`` or ``table:FILE@CORPUS``."""
        file, _, corpus = rest.partition("@")
        if not file:
            raise InputError("name the table of paraphrases: table:FILE.parquet or table:FILE.parquet@CORPUS.parquet")
        return cls(f"table:{rest}", read_table(Path(file), Path(corpus) if corpus else None))

    def paraphrase(self, texts: Sequence[str], most: int, /) -> list[list[str]]:
        """Return the first ``most`` of each text."""
        return [list(self._table.get(text, ()))[:most] for text in texts]


def read_table(path: Path, corpus: Path | None = None) -> dict[str, list[str]]:
    """Read a table: ``original`` and ``text``, or with a corpus ``row`` (its row number there) and ``text``."""
    columns = _columns(path)
    key = "original" if corpus is None else "row"
    for name in (key, "text"):
        if name not in columns:
            hint = "" if corpus else ", or name the corpus whose rows it numbers: table:FILE@CORPUS"
            raise InputError(f"{path} has no column {name}: it has {', '.join(columns)}{hint}")
    keys = columns[key]
    if corpus is not None:
        originals = read_texts(corpus)
        outside = next((row for row in keys if not isinstance(row, int) or not 0 <= row < len(originals)), None)
        if outside is not None:
            raise InputError(f"{path} names row {outside}, but {corpus} has {len(originals)} texts")
        keys = [originals[row] for row in keys]
    table: dict[str, list[str]] = {}
    for original, text in zip(keys, columns["text"], strict=True):
        if isinstance(original, str) and isinstance(text, str):
            table.setdefault(original, []).append(text)
    return table


def write_table(path: Path, texts: Sequence[str], paraphrases: Sequence[Sequence[str]]) -> None:
    """Write a table that :func:`read_table` reads, such as the answers of a chat model, which come but once.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "paraphrases.parquet"
    >>> write_table(file, ["a good film"], [["a fine film", "a good movie"]])
    >>> read_table(file)
    {'a good film': ['a fine film', 'a good movie']}
    """
    import pyarrow as pa
    from pyarrow import parquet

    if len(texts) != len(paraphrases):
        raise InputError(f"there are {len(texts)} texts but paraphrases of {len(paraphrases)}: give some for each")
    pairs = [(text, other) for text, others in zip(texts, paraphrases, strict=True) for other in others]
    columns = {"original": [pair[0] for pair in pairs], "text": [pair[1] for pair in pairs]}
    schema = pa.schema([("original", pa.string()), ("text", pa.string())])
    with atomic_path(path) as temporary:
        parquet.write_table(pa.table(columns, schema=schema), temporary)


def _columns(path: Path) -> dict[str, list[Any]]:
    from pyarrow import ArrowException, parquet

    try:
        return dict(parquet.read_table(path).to_pydict())
    except (OSError, ArrowException) as error:
        raise InputError(f"cannot read the table {path}: {str(error).splitlines()[0][:200]}") from error
