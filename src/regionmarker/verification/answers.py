"""What a suspect answered, and digests of every response that it gave.

A digest of a response shows later that the answers were not made up afterwards, as soon as both sides hold the bytes;
the digest of the request beside it binds the response to the texts that were asked.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from regionmarker.corpus import EMBEDDING, TEXT, check_block, read_blocks
from regionmarker.encoders.base import check_answer
from regionmarker.encoders.cache import text_digest
from regionmarker.errors import InputError
from regionmarker.files import atomic_path
from regionmarker.parquet import list_matrix, open_parquet
from regionmarker.vectors import AnyArray, Floats

Lookup: TypeAlias = Callable[[Sequence[str]], Floats]
"""Gives the answers to some texts, a row each; NaN where there is none."""

_UNIT = 1e-6  # rows this close to unit length stay as they are, so that saving and reading keeps every bit
_SAME = 0.9999  # cosine above which two answers to one text count as the same answer
_BLOCK = 512  # answers that are read before their width is looked at
WIDEST = 8192  # numbers of an answer: judging takes time and memory with the square of it
MOST_ROWS = 1 << 20  # of a file of answers; no key asks a hundredth of that
_METADATA = b"regionmarker"
_DOMAIN = b"regionmarker answers 1"


@dataclass(frozen=True)
class Exchange:
    """One request and the response to it.

    Attributes
    ----------
    number
        Its place in the transcript, from 1.
    time
        When the response had arrived: UTC, ISO 8601.
    asked
        The SHA-256 of each text, in the order of the request.
    response
        The SHA-256 of the response's bytes as they came, before anything read or changed them.

    Examples
    --------
    >>> one = Exchange(1, "2026-01-01T00:00:00+00:00", (text_digest("a").hex(),), "00" * 32)
    >>> one.count, one.request[:16]
    (1, 'bf5d3affb73efd2e')
    """

    number: int
    time: str
    asked: tuple[str, ...]
    response: str

    @property
    def count(self) -> int:
        return len(self.asked)

    @property
    def request(self) -> str:
        """The SHA-256 of the texts' SHA-256s, one after the other: no two lists of texts share it."""
        return sha256(b"".join(map(bytes.fromhex, self.asked))).hexdigest()

    def to_dict(self) -> dict[str, object]:
        """Return what may be shown to anyone: digests, time and count."""
        names = ("number", "time", "count", "request", "response")
        return {name: getattr(self, name) for name in names}


@dataclass(frozen=True, repr=False, eq=False)
class Answers:
    """The answers of one suspect.

    Parameters
    ----------
    suspect
        Who answered.
    texts
        The texts that were asked, each once.
    vectors
        The answers (n, D'), of any length; a row that is NaN throughout is a missing answer.
    exchanges
        The transcript: every response that was received, also those that could not be used.

    Attributes
    ----------
    vectors
        The answers scaled to unit length, (n, D') float32.
    reused
        How many of the answers were kept from earlier asking, so that nothing was asked for them.

    Examples
    --------
    >>> answers = Answers("mine", ("one", "two"), np.array([[3.0, 4.0], [np.nan, np.nan]], dtype=np.float32))
    >>> answers
    <Answers of mine: 2 texts, width 2, 1 missing>
    >>> answers.lookup(["one", "three"])
    array([[0.6, 0.8],
           [nan, nan]], dtype=float32)
    """

    suspect: str
    texts: tuple[str, ...]
    vectors: Floats
    exchanges: tuple[Exchange, ...] = ()
    reused: int = 0

    def __post_init__(self) -> None:
        texts = tuple(self.texts)
        if len(set(texts)) != len(texts):
            raise InputError(f"the answers of {self.suspect} hold a text twice: give each text once")
        object.__setattr__(self, "texts", texts)
        object.__setattr__(self, "exchanges", tuple(self.exchanges))
        object.__setattr__(self, "vectors", _unit_rows(self.vectors, len(texts), self.suspect))

    def __repr__(self) -> str:
        missing = f", {self.missing} missing" if self.missing else ""
        return f"<Answers of {self.suspect}: {len(self)} texts, width {self.width}{missing}>"

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def width(self) -> int:
        """The width D' of the suspect's vectors."""
        return int(self.vectors.shape[1])

    @cached_property
    def missing(self) -> int:
        """How many texts have no answer."""
        return int(np.isnan(self.vectors[:, 0]).sum())

    @cached_property
    def _row_of(self) -> dict[str, int]:
        return {text: row for row, text in enumerate(self.texts)}

    def lookup(self, texts: Sequence[str]) -> Floats:
        """Return the answers to ``texts``, (len(texts), D'), with NaN where there is none."""
        rows = np.array([self._row_of.get(text, len(self)) for text in texts], dtype=np.int64)
        nothing = np.full((1, self.width), np.nan, dtype=np.float32)
        return np.asarray(np.concatenate([self.vectors, nothing])[rows])

    def joined(self, others: Answers) -> Answers:
        """Return these answers and ``others``, to further texts of the same suspect; what has no answer is left out.

        Examples
        --------
        >>> one = Answers("mine", ("one",), np.eye(2, dtype=np.float32)[:1])
        >>> one.joined(Answers("mine", ("two",), np.eye(2, dtype=np.float32)[1:]))
        <Answers of mine: 2 texts, width 2>
        """
        there = np.asarray(np.isfinite(others.vectors).all(axis=1))
        texts = [text for text, answered in zip(others.texts, there.tolist(), strict=True) if answered]
        if not texts:
            return self
        exchanges = (*self.exchanges, *others.exchanges)
        return Answers(
            self.suspect,
            (*self.texts, *texts),
            np.concatenate([self.vectors, others.vectors[there]]),
            tuple(replace(exchange, number=number) for number, exchange in enumerate(exchanges, start=1)),
            self.reused + others.reused,
        )

    def called(self, name: str) -> Answers:
        """Return the same answers under a name for people, with the address behind it.

        Examples
        --------
        >>> Answers("https://host/v1#m", ("one",), np.ones((1, 2), dtype=np.float32)).called("Acme Embed").suspect
        'Acme Embed (https://host/v1#m)'
        """
        return replace(self, suspect=f"{name} ({self.suspect})")

    @cached_property
    def digest(self) -> str:
        """The SHA-256 of all answers, whatever the order of the texts."""
        whole = sha256(_DOMAIN + len(self).to_bytes(8, "little") + self.width.to_bytes(8, "little"))
        for name, row in sorted((text_digest(text), row) for row, text in enumerate(self.texts)):
            vector = self.vectors[row]
            whole.update(name + (b"\0" if np.isnan(vector[0]) else b"\1" + vector.astype("<f4").tobytes()))
        return whole.hexdigest()

    # ---- files

    def to_parquet(self, path: str | Path) -> None:
        """Write columns ``text`` and ``embedding`` (null where missing), with the transcript in the metadata."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        answered = ~np.isnan(self.vectors[:, 0])
        rows = [row if there else None for row, there in zip(self.vectors, answered, strict=True)]
        exchanges = [[one.number, one.time, one.asked, one.response] for one in self.exchanges]
        about = json.dumps({"suspect": self.suspect, "exchanges": exchanges}).encode()
        table = pa.table({TEXT: pa.array(self.texts, pa.string()), EMBEDDING: pa.array(rows, pa.list_(pa.float32()))})
        with atomic_path(Path(path)) as temporary:
            pq.write_table(table.replace_schema_metadata({_METADATA: about}), temporary)

    @classmethod
    def from_file(cls, path: str | Path) -> Answers:
        """Read answers from a .parquet, .jsonl or .csv file with ``text`` and ``embedding``; nulls are missing answers.

        A file that :meth:`to_parquet` wrote brings its suspect's name and its transcript along. Any other file is its
        own transcript: the digest of its bytes.
        """
        path = Path(path)
        texts, vectors = _read_answers(path)
        suspect, exchanges = _metadata(path) or (f"file:{path.name}", (_file_exchange(path, texts),))
        return cls(suspect, texts, vectors, exchanges)


def _unit_rows(vectors: AnyArray, count: int, suspect: str) -> Floats:
    """Scale answers to unit length; whole rows of NaN stay."""
    matrix = np.asarray(vectors)
    if matrix.ndim != 2 or len(matrix) != count or matrix.shape[1] == 0:
        raise InputError(f"the answers of {suspect} must be one row for each of {count} texts, not {matrix.shape}")
    _check_width(matrix.shape[1], suspect)
    there = np.flatnonzero(~np.isnan(matrix).all(axis=1))
    rows = check_answer(matrix[there], [int(row) for row in there], source=suspect).astype(np.float64)
    norms = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    unit = np.full(matrix.shape, np.nan, dtype=np.float32)
    unit[there] = rows / np.where(np.abs(norms - 1.0) <= _UNIT, 1.0, norms)[:, None]
    unit.setflags(write=False)
    return unit


def _check_width(width: int, source: str) -> None:
    if width > WIDEST:
        raise InputError(
            f"the answers of {source} have {width} numbers each, and {WIDEST} are the most: project them to fewer "
            "dimensions, all with one matrix"
        )


def _read_answers(path: Path) -> tuple[tuple[str, ...], Floats]:
    """Read (texts, vectors); a text that stands there twice with one answer counts once."""
    vectors: dict[str, tuple[int, Floats]] = {}  # with the row it stands in
    names: dict[str, None] = {}  # all texts, in the order of the file
    width = None
    for first, texts, there, matrix in _blocks(path):
        names.update(dict.fromkeys(texts))
        _check_width(matrix.shape[1], str(path))
        places = [first + int(row) for row in there]
        answered = check_answer(matrix, places, source=str(path), width=width)
        width = answered.shape[1] if len(answered) else width
        for row, place, vector in zip(there, places, answered, strict=True):
            before, known = vectors.setdefault(texts[row], (place, vector))
            if known @ vector < _SAME * np.sqrt((known @ known) * (vector @ vector)):
                raise InputError(f"{path} answers the same text differently in rows {before} and {place}: remove one")
    if width is None:
        raise InputError(f"{path} holds no answer at all")
    nothing = (-1, np.full(width, np.nan, dtype=np.float32))
    return tuple(names), np.stack([vectors.get(text, nothing)[1] for text in names])


def _blocks(path: Path) -> Iterator[tuple[int, list[str], Sequence[int], AnyArray]]:
    """Yield the number of a block's first row, its texts, which of them are answered, and those answers."""
    if path.suffix == ".parquet":
        yield from _parquet_blocks(path)
        return
    first = 0
    for texts, matrix in read_blocks(path, block=_BLOCK):
        if matrix is None:
            raise _no_answers(path)
        yield first, texts, range(len(texts)), matrix
        first += len(texts)


def _parquet_blocks(path: Path) -> Iterator[tuple[int, list[str], Sequence[int], AnyArray]]:
    first = 0
    with open_parquet(path, whole_look=True, most_rows=MOST_ROWS) as file:
        if not {TEXT, EMBEDDING} <= set(file.schema_arrow.names):
            raise _no_answers(path)
        for batch in file.iter_batches(batch_size=_BLOCK, columns=[TEXT, EMBEDDING]):
            batch.validate(full=True)
            texts = batch.column(TEXT).to_pylist()
            check_block(path, texts, first)
            answered = batch.column(EMBEDDING).is_valid()
            there = [int(row) for row in np.flatnonzero(answered.to_numpy(zero_copy_only=False))]
            yield first, texts, there, _matrix(path, first, batch.column(EMBEDDING).filter(answered))
            first += len(texts)


def _matrix(path: Path, first: int, column: Any) -> AnyArray:
    try:
        return list_matrix(column) if len(column) else np.empty((0, 0), dtype=np.float32)
    except (InputError, AttributeError, ValueError) as error:
        raise InputError(f"{path}, rows from {first}: column embedding is not usable: {error}") from None


def _no_answers(path: Path) -> InputError:
    return InputError(f"{path} must have the columns text and embedding: the suspect's answer beside each text")


def _metadata(path: Path) -> tuple[str, tuple[Exchange, ...]] | None:
    """Return the suspect's name and the transcript that :meth:`Answers.to_parquet` wrote, if it did."""
    if path.suffix != ".parquet":
        return None
    with open_parquet(path) as file:
        about = (file.schema_arrow.metadata or {}).get(_METADATA)
    if about is None:
        return None
    try:
        document = json.loads(about)
        exchanges = [
            Exchange(int(number), _checked_time(time), tuple(map(_checked_digest, asked)), _checked_digest(response))
            for number, time, asked, response in document["exchanges"]
        ]
        return str(document["suspect"]), tuple(exchanges)
    except (ValueError, TypeError, KeyError, OverflowError, RecursionError):
        raise InputError(f"the transcript in {path} is damaged: write the file again, or remove its metadata") from None


def _checked_time(time: str) -> str:
    """Refuse a time that is none, or that lies outside of the calendar when it is told in UTC."""
    datetime.fromisoformat(time).astimezone(UTC)
    return time


def _checked_digest(digest: str) -> str:
    return bytes.fromhex(digest).hex()


def _file_exchange(path: Path, texts: Sequence[str]) -> Exchange:
    try:
        time = datetime.fromtimestamp(path.stat().st_mtime, UTC).isoformat(timespec="seconds")
    except (ValueError, OverflowError, OSError):
        raise InputError(f"{path} was written at no time that a calendar has: run touch {path}") from None
    asked = tuple(text_digest(text).hex() for text in texts)
    return Exchange(1, time, asked, sha256(path.read_bytes()).hexdigest())
