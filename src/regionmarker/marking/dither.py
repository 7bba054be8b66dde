"""Dither: give a coarse row back the precision that its grid took away, before it is mixed and rounded again.

An upstream that answers in float16 or bfloat16 has rounded its vectors once. A marked row that starts from such a
vector is rounded twice, and the second rounding of numbers that lie on a lattice leaves a pattern: some values come up
too often. It is faint, and a classifier that counts repeated values finds it (measured: AUC 0.54 on bfloat16, and 0.75
where the upstream rescales its bfloat16 numbers in float32). So each entry first gets a noise of up to half a unit in
its last place: e + noise is as good a guess at what the upstream rounded as e itself, and it lies on no lattice.

The noise is a hash of the entry's bits and its column: the same row is always served the same way, in any batch.
Rows without a mark that lie on the grid need none of it, and are served as they are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from regionmarker.marking.grid import FORMATS, Grid
from regionmarker.protocols import Floats

COLUMN_STEP = 0x9E3779B9
FIRST_FACTOR, SECOND_FACTOR = 0x85EBCA6B, 0xC2B2AE35  # MurmurHash3's finaliser: all bits reach all bits
_EXPONENT = np.uint32(0x7F800000)


def dithered(rows: Floats, grid: Grid) -> Floats:
    """Return rows (n, D) with every entry moved by up to half a unit in the last place of ``grid``.

    Examples
    --------
    >>> row = np.float32([[0.5, -0.25, 0.125]])
    >>> moved = dithered(row, Grid.float16)
    >>> bool((moved != row).all()), bool((np.abs(moved - row) <= np.abs(row) * 2.0**-11).all())
    (True, True)
    """
    bits = np.ascontiguousarray(rows, dtype=np.float32).view(np.uint32)
    columns = (np.arange(rows.shape[1], dtype=np.uint64) * COLUMN_STEP).astype(np.uint32)  # wraps on purpose
    mixed = bits + columns
    mixed ^= mixed >> np.uint32(16)
    mixed *= np.uint32(FIRST_FACTOR)
    mixed ^= mixed >> np.uint32(13)
    mixed *= np.uint32(SECOND_FACTOR)
    mixed ^= mixed >> np.uint32(16)
    share = mixed.astype(np.float32) * np.float32(2.0**-32) - np.float32(0.5)  # uniform in -1/2 .. 1/2
    power = np.maximum(powers_below(bits), np.float32(FORMATS[grid].least_power))
    with np.errstate(invalid="ignore"):  # infinities become NaN; such rows are refused
        return np.asarray(bits.view(np.float32) + share * (power * np.float32(2.0 ** -FORMATS[grid].fraction_bits)))


def powers_below(bits: NDArray[np.uint32]) -> Floats:
    """Return the power of two at or below each float32, given as its bits."""
    return (bits & _EXPONENT).view(np.float32)
