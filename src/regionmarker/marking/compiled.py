"""What the compiled engines share: how they compile, the length of a row, the last rounding. Needs numba."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numba
import numpy as np
from numba import types as numba_types

from regionmarker.marking import simd
from regionmarker.marking.simd import LINE, WIDTH, load, muladd, no_doubles, prefetch, total
from regionmarker.marks import number_format, plan

STREAM_BYTES = 1 << 23
"""Outputs from this size on bypass the cache, as a large memcpy does: they would push out what they are made from."""

_OPTIONS: dict[str, Any] = {
    "nogil": True,
    "error_model": "numpy",  # dividing by zero gives infinity: such rows are found afterwards
    "_nrt": False,  # no reference counts: the caller holds the arrays, and the counting cost more than the arithmetic
}
_njit: Any = numba.njit  # typed in some versions of numba and not in others
types: Any = numba_types


def inner(function: Callable[..., Any]) -> Any:
    """Compile with what calls it."""
    return _njit(**_OPTIONS)(function)


def compiled(*signature: Any) -> Callable[[Callable[..., Any]], Any]:
    """Compile now, for read-only and writable arrays alike; keep the result where a cache can be written."""

    def compile_entry(function: Callable[..., Any]) -> Any:
        function.__qualname__ += _digest()
        try:
            return _njit(signature, cache=True, **_OPTIONS)(function)
        except RuntimeError:  # cannot cache: no place is writable
            return _njit(signature, **_OPTIONS)(function)

    return compile_entry


@cache
def _digest() -> str:
    """Tell versions of the sources apart: numba's cache watches the file of the compiled function only."""
    files = [*sorted(Path(__file__).parent.glob("*.py")), Path(plan.__file__), Path(number_format.__file__)]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:8]


def given(dtype: Any, dimensions: int) -> Any:
    """Return the type of an array that is only read."""
    return types.Array(dtype, dimensions, "C", readonly=True)


@inner
def squared_length(E: Any, r: int, ahead: int) -> Any:
    """Return |e|^2 of row r in float64, which no float32 entry can overflow, and ask for the row ``ahead``."""
    width = E.shape[1]
    whole = width - width % WIDTH
    low = high = no_doubles()
    for j in range(0, whole, WIDTH):
        if j & (LINE - 1) == 0:
            prefetch(E, ahead, j)
        x = load(E, r, j)
        low, high = simd.add_low_squares(low, x), simd.add_high_squares(high, x)
    square = total(low) + total(high)
    for j in range(whole, width):
        square += np.float64(E[r, j]) * np.float64(E[r, j])
    return square


@inner
def served(x: Any, keep: Any, pull: Any, scale: float) -> Any:
    """Return y / |y|, rounded once, for one number or one vector of them."""
    high = np.float32(scale)
    return simd.scaled(muladd(keep, x, pull), high, np.float32(scale - np.float64(high)))
