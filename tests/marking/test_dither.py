"""The compiled dither is the one of ``number_format``, to the bit, and sees which rows lie on the lattice."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("numba", reason="numba is not installed")

import numba

from regionmarker.marking.dither import distance, dither_row, lattice, rounded
from regionmarker.marks.number_format import NumberFormat, dithered, in_format, round_to_format

COARSE = [NumberFormat.float16, NumberFormat.bfloat16]


@numba.njit
def dither_all(E, X, grid, squares, off):
    for r in range(E.shape[0]):
        squares[r] = dither_row(E, r, X, r, grid)
        for j in range(E.shape[1]):
            off[r, j] = distance(E[r, j], grid[0], grid[2])


def run(rows, grid):
    moved, squares = np.empty_like(rows), np.empty(len(rows))
    off = np.empty_like(rows)
    dither_all(rows, moved, lattice(grid), squares, off)
    return moved, squares, off


@pytest.mark.parametrize("grid", COARSE)
@pytest.mark.parametrize("width", [1, 16, 37, 256])
def test_it_equals_the_plain_one_to_the_bit(grid, width):
    rng = np.random.default_rng(width)
    rows = (rng.standard_normal((200, width)) * 10.0 ** rng.integers(-12, 2, (200, width))).astype(np.float32)
    rows[rng.random(rows.shape) < 0.1] = 0.0
    rows[::2] = round_to_format(rows[::2], grid)
    rows[7, 0] = np.float32(1e-40)  # not normal in any format
    moved, squares, off = run(rows, grid)
    assert np.array_equal(moved.view(np.uint32), dithered(rows, grid).view(np.uint32))
    assert np.array_equal(off == 0.0, round_to_format(rows, grid) == rows)
    assert np.array_equal((off == 0.0).all(axis=1), in_format(rows, grid))
    assert np.allclose(squares, (rows.astype(np.float64) ** 2).sum(axis=1), rtol=1e-5)


@pytest.mark.parametrize("grid", COARSE)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_is_on_no_lattice_and_has_no_length(grid, bad):
    rows = np.full((2, 37), 0.125, dtype=np.float32)
    rows[1, 20] = bad
    _, squares, off = run(rows, grid)
    assert np.array_equal(off != 0.0, ~np.isfinite(rows))
    assert np.isfinite(squares).tolist() == [True, False]


@numba.njit
def round_all(y, scale, grid, out):
    for i in range(y.shape[0]):
        out[i] = rounded(y[i], scale, grid)


@pytest.mark.parametrize("grid", COARSE)
def test_a_product_is_rounded_once_even_where_float32_would_see_a_tie(grid):
    """Numbers whose product with the scale lies within a few float32 steps of the middle between two of the format."""
    rng = np.random.default_rng(0)
    fraction = {NumberFormat.float16: 10, NumberFormat.bfloat16: 7}[grid]
    middles = (rng.integers(2**fraction, 2 ** (fraction + 1), 20_000) + 0.5) * 2.0 ** -rng.integers(15, 24, 20_000)
    wrong_by_way_of_float32 = 0
    for scale in (1.0, 1.0 + 3e-8, 0.9871234567891234, 1.0630147523441125):
        for sign in (1.0, -1.0):
            y = (sign * middles / scale).astype(np.float32)
            y = np.concatenate([y, np.nextafter(y, np.float32(1.0)), np.nextafter(y, np.float32(-1.0))])
            found, exact = np.empty_like(y), y.astype(np.float64) * scale
            round_all(y, scale, lattice(grid), found)
            assert np.array_equal(found.view(np.uint32), round_to_format(exact, grid).view(np.uint32))
            wrong_by_way_of_float32 += (round_to_format(exact.astype(np.float32), grid) != found).sum()
    assert wrong_by_way_of_float32 > 1000
