"""What says the same in other words, for the attack by paraphrasing: the table, and paraphrases made beforehand.

    table:FILE.parquet                made beforehand: columns original and text
    table:FILE.parquet@CORPUS         the same with row numbers of a corpus: columns row and text
    apertium:spa,cat                  round trips through these languages, offline
    marian:THERE,BACK                 English to French and back by two Marian models (Opus-MT)
    nllb:MODEL                        English to French and back by an NLLB model
    dipper:MODEL                      the trained paraphraser DIPPER, lex 40 and div 40
    chat:URL#MODEL                    any OpenAI-compatible chat model with the paper's prompt
    gguf:FILE                         a small chat model of a GGUF file, in this process
    program:COMMAND                   any program that reads a text per line and writes a paraphrase per line

Another package adds its own by an entry point of the group ``regionmarker.paraphrasers``. What a slow one says is kept
by paraphrase_file.py (``regionmarker bench paraphrase``) as a table.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol, Self, cast, runtime_checkable

from regionmarker.corpus import read_texts
from regionmarker.errors import InputError
from regionmarker.files import atomic_path
from regionmarker.parquet import read_columns
from regionmarker.specs import Registry

_HERE = "regionmarker.benchmark.attacks.paraphrasers"


@runtime_checkable
class Paraphraser(Protocol):
    """Says the same in other words, or tries to."""

    @property
    def name(self) -> str:
        """The spec that loads it again."""

    def paraphrase(self, texts: Sequence[str], most: int, /) -> list[list[str]]:
        """Return for each text as many paraphrases as it has, ``most`` at the most; they need not differ."""


PARAPHRASERS = Registry(
    "paraphraser",
    "regionmarker.paraphrasers",
    {
        "table": f"{_HERE}:TableParaphraser",
        "apertium": f"{_HERE}.apertium:ApertiumParaphraser",
        "marian": f"{_HERE}.neural:MarianParaphraser",
        "nllb": f"{_HERE}.neural:NLLBParaphraser",
        "dipper": f"{_HERE}.neural:DipperParaphraser",
        "chat": f"{_HERE}.chat:ChatParaphraser",
        "gguf": f"{_HERE}.chat:LocalChatParaphraser",
        "program": f"{_HERE}.program:ProgramParaphraser",
    },
    {"table": ":FILE", "chat": ":URL#MODEL", "gguf": ":FILE", "program": ":COMMAND"},
    protocol=Paraphraser,
    promise="a name and paraphrase(texts, most)",
)


def different(texts: Sequence[str], original: str = "") -> list[str]:
    """Return the texts whose words differ from each other's and from the original's, in order.

    Case, spaces and punctuation are no difference: a paraphrase is other words.

    Examples
    --------
    >>> different(["A good film!", "a fine  film", "A fine film.", " "], "a good film")
    ['a fine film']
    """
    found: dict[str, str] = {}
    for text in texts:
        found.setdefault(_words(text), " ".join(text.split()))
    return [text for words, text in found.items() if words and words != _words(original)]


def _words(text: str) -> str:
    return " ".join(re.findall(r"\w+", text.casefold()))


def load_paraphraser(spec: str | Paraphraser) -> Paraphraser:
    """Load a paraphraser by its spec; an object that is one already is returned as it is.

    Examples
    --------
    >>> load_paraphraser("apertium:spa").name
    'apertium:spa'
    """
    return cast("Paraphraser", PARAPHRASERS.load(spec))


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
        file, _, corpus = rest.partition("@")
        if not file:
            raise InputError("name the table of paraphrases: table:FILE.parquet or table:FILE.parquet@CORPUS.parquet")
        return cls(f"table:{rest}", read_table(Path(file), Path(corpus) if corpus else None))

    def paraphrase(self, texts: Sequence[str], most: int, /) -> list[list[str]]:
        return [list(self._table.get(text, ()))[:most] for text in texts]


def read_table(path: Path, corpus: Path | None = None) -> dict[str, list[str]]:
    """Read a table: ``original`` and ``text``, or with a corpus ``row`` (its row number there) and ``text``."""
    key = "original" if corpus is None else "row"
    try:
        keys, texts = read_columns(path, [key, "text"])
    except InputError as error:
        if corpus is None and "no column original" in str(error):
            raise InputError(f"{error}, or name the corpus whose rows it numbers: table:FILE@CORPUS") from None
        raise
    if corpus is not None:
        originals = read_texts(corpus)
        outside = next((row for row in keys if not isinstance(row, int) or not 0 <= row < len(originals)), None)
        if outside is not None:
            raise InputError(f"{path} names row {outside}, but {corpus} has {len(originals)} texts")
        keys = [originals[row] for row in keys]
    table: dict[str, list[str]] = {}
    for original, text in zip(keys, texts, strict=True):
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
