"""Vectors: the types of arrays, what an encoder promises, and what counts as a usable matrix of embeddings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from regionmarker.errors import InputError

Floats: TypeAlias = NDArray[np.float32]  # a float32 array: embeddings are (n, D), one row per text

Doubles: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]
AnyArray: TypeAlias = NDArray[Any]

NORM_TOLERANCE = 0.01
"""How far from 1 the length of a served vector may be: float16 and bfloat16 rounding stays well inside."""

_BLOCK = 4096  # rows that are checked at once
_CACHED = 128  # rows that are scaled at once: they stay in the cache


@runtime_checkable
class Encoder(Protocol):
    """Text in, embeddings out.

    Examples
    --------
    >>> class Lengths:
    ...     name = "lengths"
    ...     def encode(self, texts):
    ...         return np.array([[len(text), 1.0] for text in texts], dtype=np.float32)
    >>> isinstance(Lengths(), Encoder)
    True
    """

    @property
    def name(self) -> str:
        """What the key remembers this encoder by."""

    def encode(self, texts: Sequence[str], /) -> Floats:
        """Embed ``texts`` in order: (len(texts), D) float32, rows of unit length."""


def embedded_blocks(encoder: Encoder, texts: Sequence[str], size: int) -> Iterator[tuple[list[str], Floats]]:
    """Yield (texts, embeddings) blocks of ``texts``, in order, each embedded at once.

    Examples
    --------
    >>> class Lengths:
    ...     name = "lengths"
    ...     def encode(self, texts):
    ...         return np.array([[len(text), 1.0] for text in texts], dtype=np.float32)
    >>> [(block, rows.tolist()) for block, rows in embedded_blocks(Lengths(), ["a", "bb", "ccc"], 2)]
    [(['a', 'bb'], [[1.0, 1.0], [2.0, 1.0]]), (['ccc'], [[3.0, 1.0]])]
    """
    for first in range(0, len(texts), size):
        block = list(texts[first : first + size])
        yield block, encoder.encode(block)


def as_matrix(embeddings: object, *, width: int | None = None, what: str = "embeddings") -> AnyArray:
    """Return ``embeddings`` as a 2-d array of float16, float32 or float64, or say what is wrong with it.

    Nothing is copied where the input is such an array already.

    Examples
    --------
    >>> as_matrix([[1.0, 0.0]]).shape
    (1, 2)
    >>> as_matrix([1.0, 0.0])
    Traceback (most recent call last):
    ...
    regionmarker.errors.InputError: embeddings must be a 2-d array, one row per text, but has shape (2,)
    """
    try:
        matrix = np.asarray(embeddings)
    except ValueError:
        raise InputError(f"{what} must be a 2-d array, but its rows have different lengths") from None
    if matrix.ndim != 2:
        raise InputError(f"{what} must be a 2-d array, one row per text, but has shape {matrix.shape}")
    if matrix.dtype not in (np.float16, np.float32, np.float64):
        raise InputError(f"{what} must be float16, float32 or float64, but has dtype {matrix.dtype}")
    if width is not None and matrix.shape[1] != width:
        raise InputError(f"{what} has width {matrix.shape[1]}, but the key was made for width {width}")
    if matrix.shape[1] == 0:
        raise InputError(f"{what} has no columns")
    return matrix


def as_floats(embeddings: object, *, width: int | None = None, what: str = "embeddings") -> Floats:
    """Return ``embeddings`` as a C-ordered float32 matrix; see :func:`as_matrix`."""
    matrix = as_matrix(embeddings, width=width, what=what)
    with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused with the rows
        return np.ascontiguousarray(matrix, dtype=np.float32)


def check_rows(embeddings: Floats, *, first_row: int = 0, tolerance: float = NORM_TOLERANCE) -> None:
    """Refuse rows that are not finite or not of unit length within ``tolerance``; (n, D).

    Examples
    --------
    >>> check_rows(np.array([[1.0, 0.0], [0.0, 0.0]], dtype=np.float32))
    Traceback (most recent call last):
    ...
    regionmarker.errors.InputError: row 1 is zero: an embedding must be a finite vector of unit length (...)
    """
    for start in range(0, len(embeddings), _BLOCK):
        block = embeddings[start : start + _BLOCK]
        with np.errstate(over="ignore", invalid="ignore"):
            norms = np.sqrt(np.einsum("ij,ij->i", block, block, dtype=np.float64))  # (n,)
        bad = ~(np.abs(norms - 1.0) <= tolerance)  # written so that NaN is bad
        if bad.any():
            raise InputError(describe_bad_row(norms, bad, first_row + start))


def describe_bad_row(norms: AnyArray, bad: AnyArray, first_row: int) -> str:
    """Name the first bad row, what is wrong with it, and what to do."""
    row, total = int(np.argmax(bad)), int(bad.sum())
    norm = float(norms[row])
    if not np.isfinite(norm):
        wrong = "holds NaN or infinity"
    elif norm == 0.0:
        wrong = "is zero"
    else:
        wrong = f"has length {norm:.4g}"
    such = "1 such row in all" if total == 1 else f"{total} such rows in all"
    return f"row {first_row + row} {wrong}: an embedding must be a finite vector of unit length ({such})"


def normalised(embeddings: Floats, *, first_row: int = 0) -> Floats:
    """Return the rows scaled to unit length (float64 inside, rounded once); zero and non-finite rows are refused."""
    unit: Floats = np.empty(embeddings.shape, dtype=np.float32)
    norms = np.empty(len(embeddings))
    for start in range(0, len(embeddings), _CACHED):
        block = slice(start, start + _CACHED)
        rows = embeddings[block].astype(np.float64)
        norms[block] = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        with np.errstate(all="ignore"):  # refused below
            unit[block] = rows / norms[block, None]
    bad = ~(np.isfinite(norms) & (norms > 0))
    if bad.any():
        raise InputError(describe_bad_row(norms, bad, first_row))
    return unit
