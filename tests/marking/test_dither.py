"""The compiled dither is the one of ``number_format``, to the bit, and sees which rows lie on the lattice."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("numba", reason="numba is not installed")

import numba

from regionmarker.marking.dither import dither_row, lattice
from regionmarker.marks.number_format import NumberFormat, dithered, in_format, round_to_format

COARSE = [NumberFormat.float16, NumberFormat.bfloat16]


@numba.njit
def dither_all(E, X, grid, squares, on_grid):
    for r in range(E.shape[0]):
        squares[r], on_grid[r] = dither_row(E, r, X, r, grid, r)


def run(rows, grid):
    moved, squares = np.empty_like(rows), np.empty(len(rows))
    on_grid = np.zeros(len(rows), dtype=np.bool_)
    dither_all(rows, moved, lattice(grid), squares, on_grid)
    return moved, squares, on_grid


@pytest.mark.parametrize("grid", COARSE)
@pytest.mark.parametrize("width", [1, 16, 37, 256])
def test_it_equals_the_plain_one_to_the_bit(grid, width):
    rng = np.random.default_rng(width)
    rows = (rng.standard_normal((200, width)) * 10.0 ** rng.integers(-12, 2, (200, width))).astype(np.float32)
    rows[rng.random(rows.shape) < 0.1] = 0.0
    rows[::2] = round_to_format(rows[::2], grid)
    rows[7, 0] = np.float32(1e-40)  # not normal in any format
    moved, squares, on_grid = run(rows, grid)
    assert np.array_equal(moved.view(np.uint32), dithered(rows, grid).view(np.uint32))
    assert np.array_equal(on_grid, in_format(rows, grid))
    assert np.allclose(squares, (rows.astype(np.float64) ** 2).sum(axis=1), rtol=1e-5)


@pytest.mark.parametrize("grid", COARSE)
def test_one_number_off_the_lattice_is_enough(grid):
    rows = np.full((37, 37), 0.125, dtype=np.float32)
    np.fill_diagonal(rows, np.nextafter(np.float32(0.125), np.float32(1.0)))
    rows[5] = 0.125
    assert run(rows, grid)[2].tolist() == [row == 5 for row in range(37)]


@pytest.mark.parametrize("grid", COARSE)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_what_is_not_finite_is_on_no_lattice(grid, bad):
    rows = np.full((2, 32), 0.125, dtype=np.float32)
    rows[1, 20] = bad
    _, squares, on_grid = run(rows, grid)
    assert on_grid.tolist() == [True, False]
    assert not np.isfinite(squares[1])
