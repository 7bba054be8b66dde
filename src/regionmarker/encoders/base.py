"""What every encoder promises, checked in one place.

An encoder answers float32 rows of unit length, one for each text, in order. The rows are not normalised blindly: an
upstream that serves float16 or bfloat16 numbers has rows whose length is 1 only to within that rounding, and dividing
them by their length would take them off the upstream's grid, on which the marked rows have to lie as well. So a
row whose length is 1 to within the coarsest of these grids is left as it is, bit for bit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NoReturn

import numpy as np

from regionmarker.errors import InputError, RegionMarkerError
from regionmarker.vectors import AnyArray, Encoder, Floats

UNIT_TOLERANCE = 2.0**-8
"""How far from 1 the length of a row may be: bfloat16 rounds each number by at most this fraction."""

_BLOCK = 4096  # rows at a time: the float64 working copy stays small however many rows there are


def check_texts(texts: Sequence[str]) -> list[str]:
    """Return ``texts`` as a list, or say which one cannot be embedded.

    Examples
    --------
    >>> check_texts(("one", "two"))
    ['one', 'two']
    >>> check_texts(["one", " "])
    Traceback (most recent call last):
    ...
    regionmarker.errors.InputError: text 1 is empty: remove it, an empty text has no embedding
    """
    if isinstance(texts, str | bytes):
        raise InputError("texts must be a list of strings, but one string was given: write [text]")
    try:
        found = texts if isinstance(texts, list) else list(texts)
    except TypeError:
        raise InputError(f"texts must be a list of strings, but a {type(texts).__name__} was given") from None
    for position, text in enumerate(found):
        if not isinstance(text, str):
            raise InputError(f"text {position} must be a string, but is of type {type(text).__name__}")
        if not text or text.isspace():
            raise InputError(f"text {position} is empty: remove it, an empty text has no embedding")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise InputError(f"text {position} holds half a surrogate pair: read its file again as UTF-8") from None
    return found


def check_answer(
    answer: object,
    positions: Sequence[int],
    *,
    source: str,
    width: int | None = None,
    error: type[RegionMarkerError] = InputError,
) -> Floats:
    """Return an encoder's answer as fresh float32 rows of unit length, or say for which text it is not usable.

    Parameters
    ----------
    answer
        What came back: an array, or a list of rows, one for each text.
    positions
        Where the texts stand in the user's list; errors name these. ``range(len(texts))`` for all of a list.
    source
        Who answered: errors begin with it.
    width
        The width that is expected, where it is known.
    error
        What to raise: ``OutsideError`` where a server is at fault.

    Examples
    --------
    >>> check_answer([[3.0, 4.0]], range(1), source="mine")
    array([[0.6, 0.8]], dtype=float32)
    >>> check_answer([[3.0, 4.0], [0.0, 0.0]], range(2), source="mine")
    Traceback (most recent call last):
    ...
    regionmarker.errors.InputError: mine gave a zero vector for text 1
    """
    matrix = _as_matrix(answer, positions, source, error)
    if len(matrix) != len(positions):
        raise error(f"{source} was asked {len(positions)} texts and gave {len(matrix)} vectors")
    if width is not None and matrix.shape[1] != width:
        where = f"from text {positions[0]} on" if len(positions) else "now"
        raise error(f"{source} changed its width: {width} before, {matrix.shape[1]} {where}")
    rows = np.empty(matrix.shape, dtype=np.float32)
    for start in range(0, len(matrix), _BLOCK):
        block = matrix[start : start + _BLOCK].astype(np.float64)
        with np.errstate(over="ignore", invalid="ignore"):
            norms = np.sqrt(np.einsum("ij,ij->i", block, block))  # (n,)
        bad = ~(np.isfinite(norms) & (norms > 0))  # written so that NaN is bad
        if bad.any():
            row = int(np.argmax(bad))
            wrong = "a zero vector" if norms[row] == 0 else "a vector that is not finite"
            raise error(f"{source} gave {wrong} for text {positions[start + row]}")
        scale = np.where(np.abs(norms - 1.0) <= UNIT_TOLERANCE, 1.0, norms)
        rows[start : start + _BLOCK] = block / scale[:, None]
    return rows


def _as_matrix(answer: Any, positions: Sequence[int], source: str, error: type[RegionMarkerError]) -> AnyArray:
    try:
        matrix = np.asarray(answer)
    except (ValueError, TypeError, OverflowError):
        _explain_ragged(answer, positions, source, error)
    if matrix.size == 0 and len(positions) == 0:
        return np.empty((0, matrix.shape[1] if matrix.ndim == 2 else 0), dtype=np.float32)
    if matrix.ndim != 2 or matrix.shape[1] == 0:
        raise error(f"{source} must give one row of numbers for each text, but gave an array of shape {matrix.shape}")
    if matrix.dtype.kind not in "fiu":
        raise error(f"{source} must give numbers, but gave dtype {matrix.dtype}")
    return matrix


def _explain_ragged(answer: Any, positions: Sequence[int], source: str, error: type[RegionMarkerError]) -> NoReturn:
    try:
        widths = [len(row) for row in answer]
    except TypeError:
        widths = []
    for position, width in zip(positions, widths, strict=False):
        if width != widths[0]:
            raise error(f"{source} changed its width: {widths[0]} before, {width} from text {position} on")
    raise error(f"{source} must give one row of numbers for each text, but gave a {type(answer).__name__}")


class CheckedEncoder(ABC):
    """Base of the encoders: asks for texts batch by batch, checks each answer, puts them in order.

    A subclass has one method to write, :meth:`_embed`.

    Parameters
    ----------
    name
        What keys and caches remember the encoder by; where it can, a spec that loads it again.
    batch_size
        How many texts :meth:`_embed` gets at a time; None for all of them.
    width
        The width of its vectors, where it is known beforehand.
    revision
        Whatever else decides the vectors, such as the version of the weights; part of a cache's key.

    Examples
    --------
    >>> class Lengths(CheckedEncoder):
    ...     def _embed(self, texts, positions):
    ...         return [[len(text), 1.0] for text in texts]
    >>> Lengths("lengths", batch_size=2).encode(["a", "bb", "ccc"]).shape
    (3, 2)
    """

    blame: ClassVar[type[RegionMarkerError]] = InputError
    """What a wrong answer raises."""

    def __init__(
        self, name: str, *, batch_size: int | None = None, width: int | None = None, revision: str = ""
    ) -> None:
        if batch_size is not None and batch_size < 1:
            raise InputError(f"batch_size must be at least 1, but is {batch_size}")
        self.name = self.called = name  # called: in errors, where people know it by another name
        self.batch_size = batch_size
        self.width = width
        self.revision = revision

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def encode(self, texts: Sequence[str], /, *, positions: Sequence[int] | None = None) -> Floats:
        """Embed ``texts`` in order: (len(texts), D) float32, rows of unit length.

        ``positions`` says where the texts stand in a longer list, for the messages of errors.
        """
        texts = check_texts(texts)
        positions = range(len(texts)) if positions is None else positions
        answers = np.empty((0, 0 if texts else self._find_width()), dtype=np.float32)
        first = 0
        while first < len(texts):
            last = first + (self.batch_size or len(texts))  # looked up anew: a server may make us shrink it
            where = positions[first:last]
            answer = self._embed(texts[first:last], where)
            rows = check_answer(answer, where, source=self.called, width=self.width, error=self.blame)
            self.width = rows.shape[1]
            if first == 0:
                answers = np.empty((len(texts), self.width), dtype=np.float32)
            answers[first:last] = rows
            first = last
        return answers

    def _find_width(self) -> int:
        """Return the width where nothing was asked; 0 where only an answer could tell."""
        return self.width or 0

    @abstractmethod
    def _embed(self, texts: list[str], positions: Sequence[int]) -> object:
        """Embed one batch: anything that :func:`check_answer` takes."""


class ObjectEncoder(CheckedEncoder):
    """Any object with ``encode(list[str])``, its answers checked.

    Parameters
    ----------
    encoder
        The object. Its ``revision`` and ``batch_size`` are used where it has them.
    name
        Without one, the object's ``name``, or else the name of its class.

    Examples
    --------
    >>> class Lengths:
    ...     def encode(self, texts):
    ...         return np.array([[len(text), 1.0] for text in texts])
    >>> encoder = ObjectEncoder(Lengths())
    >>> encoder.name, encoder.encode(["a", "bb"]).dtype
    ('Lengths', dtype('float32'))
    """

    def __init__(self, encoder: object, *, name: str | None = None) -> None:
        if isinstance(encoder, type) or not callable(getattr(encoder, "encode", None)):
            what = f"the class {encoder.__name__}" if isinstance(encoder, type) else f"a {type(encoder).__name__}"
            raise InputError(f"an encoder is a spec or an object with encode(texts), but {what} was given")
        given = name or getattr(encoder, "name", None)
        self.is_named = isinstance(given, str) and bool(given)
        """Whether the name tells this model from others of its class: a cache insists on it."""
        batch_size, revision = getattr(encoder, "batch_size", None), getattr(encoder, "revision", None)
        super().__init__(
            str(given) if self.is_named else type(encoder).__name__,
            batch_size=batch_size if isinstance(batch_size, int) and batch_size > 0 else None,
            revision=revision if isinstance(revision, str) else "",
        )
        self._encoder: Any = encoder

    def _embed(self, texts: list[str], positions: Sequence[int]) -> object:  # noqa: ARG002
        answer: object = self._encoder.encode(texts)
        return answer


class LookupEncoder:
    """Answers from a table of texts that were embedded before; an encoder for the others is loaded when first needed.

    Examples
    --------
    >>> known = LookupEncoder("known", ["a", "b"], np.eye(2, dtype=np.float32))
    >>> known.encode(["b"]).tolist()
    [[0.0, 1.0]]
    >>> known.encode(["c"])
    Traceback (most recent call last):
    ...
    regionmarker.errors.InputError: the vectors of known are stored, but not that of 'c'
    """

    def __init__(
        self, name: str, texts: Sequence[str], rows: Floats, load: Callable[[], Encoder] | None = None
    ) -> None:
        self.name = name
        self._row_of = {text: row for row, text in enumerate(texts)}
        self._rows, self._load = rows, load
        self._encoder: Encoder | None = None

    def __repr__(self) -> str:
        return f"LookupEncoder({self.name!r})"

    def knows(self, texts: Sequence[str]) -> bool:
        """Return whether all these texts are in the table, or can be embedded."""
        return self._load is not None or all(text in self._row_of for text in texts)

    def encode(self, texts: Sequence[str], /) -> Floats:
        rows = np.array([self._row_of.get(text, -1) for text in texts], dtype=np.int64)
        found = self._rows[rows]  # a copy
        new = np.flatnonzero(rows < 0)
        if len(new):
            found[new] = self._own(texts[int(new[0])]).encode([texts[int(row)] for row in new])
        return found

    def _own(self, text: str) -> Encoder:
        if self._load is None:
            raise InputError(f"the vectors of {self.name} are stored, but not that of {text[:40]!r}")
        if self._encoder is None:
            self._encoder = self._load()
        return self._encoder
