"""Tiles of any shape give the same bits: neither the processor nor a row's company decides what is served."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("numba", reason="numba is not installed")

import numba

from regionmarker.marking import tiles

WIDTH = 64
RNG = np.random.default_rng(0)
ROWS = RNG.standard_normal((12, WIDTH)).astype(np.float32)
TABLE = RNG.standard_normal((12, WIDTH)).astype(np.float32)


def projected(rows: int, planes: int) -> np.ndarray:
    tile = tiles.project(rows, planes)

    @numba.njit
    def run(E, H, u):
        for g in range(0, 12, planes):
            for r in range(0, 12, rows):
                tile(E, r, H, g, u, r)

    u = np.full((12, 12), np.nan, dtype=np.float32)
    run(ROWS, TABLE, u)
    return u


def mixed(rows: int, vectors: int, block: int = 32) -> tuple[np.ndarray, np.ndarray]:
    tile = tiles.mix(rows, vectors)
    amounts = np.linspace(-0.1, 0.1, 12 * 6).reshape(12, 6).astype(np.float32)
    units = np.linspace(0.9, 1.1, 6).reshape(1, 6).astype(np.float32)
    side_by_side = np.ascontiguousarray(TABLE.reshape(12, -1, block).transpose(1, 0, 2).reshape(-1, block))

    @numba.njit
    def run(X, r, d, units, a, y, squares):
        for j in range(0, WIDTH, block):
            for part in range(0, block, vectors * 16):
                tile(X, r, X, r, j + part, d, j // block * 12, part, units, a, y, squares)

    y, squares = np.full((6, WIDTH), np.nan, dtype=np.float32), np.zeros((6, 8))
    for first in range(0, 6, rows):  # tiles write the first rows: the others by a view of theirs
        mine = np.ascontiguousarray(amounts[:, first : first + rows])
        run(ROWS, 3 + first, side_by_side, units[:, first:].copy(), mine, y[first:], squares[first:])
    expected = units.T.astype(np.float64) * ROWS[3:9] + amounts.T.astype(np.float64) @ TABLE
    assert np.abs(y - expected).max() < 1e-5
    return y, squares


def test_projections_are_the_products_and_their_bits_do_not_depend_on_the_tile():
    u = projected(6, 4)
    assert np.abs(u - TABLE.astype(np.float64) @ ROWS.T.astype(np.float64)).max() < 1e-4
    for shape in ((3, 2), (1, 4), (1, 1), (4, 3)):
        assert np.array_equal(projected(*shape).view(np.uint32), u.view(np.uint32))


def test_mixtures_and_their_squares_do_not_depend_on_the_tile():
    y, squares = mixed(6, 2)
    assert np.allclose(squares.sum(axis=1), (y.astype(np.float64) ** 2).sum(axis=1), rtol=1e-12)
    for shape in ((6, 1), (1, 2), (3, 1)):
        other, sums = mixed(*shape)
        assert np.array_equal(other.view(np.uint32), y.view(np.uint32))
        assert np.array_equal(sums, squares)


@pytest.mark.parametrize(("features", "wide"), [("+avx2,+fma", False), ("+avx512f,+fma", True)])
def test_a_tile_fills_the_registers_and_cuts_tables_without_rest(monkeypatch, features, wide):
    from regionmarker.marks.plan import COLUMNS_AT_ONCE, PLANES_AT_ONCE

    monkeypatch.setattr(numba.config, "CPU_FEATURES", features)
    rows, planes, columns = tiles.shape()
    assert rows * planes * (1 if wide else 2) in range(8, 29 if wide else 13)
    assert PLANES_AT_ONCE % planes == COLUMNS_AT_ONCE % columns == 6 % rows == 0
