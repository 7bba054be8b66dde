"""The published mark on coarse grids: what carries no mark comes back as it came, the rest as the oracle has it."""

from __future__ import annotations

import numpy as np
import pytest
from tests.support.plans import make_plan, unit_rows

pytest.importorskip("numba", reason="numba is not installed")

from regionmarker.marking import engine
from regionmarker.marking.numba_coarse import write_coarse
from regionmarker.marking.numpy_engine import NumpyEngine
from regionmarker.marks.number_format import NumberFormat, in_format
from regionmarker.marks.plan import certain_squares

COARSE = [NumberFormat.float16, NumberFormat.bfloat16]


@pytest.mark.parametrize("in_place", [False, True])
@pytest.mark.parametrize("grid", COARSE)
@pytest.mark.parametrize("width", [37, 256])
def test_rows_without_a_mark_that_lie_on_the_lattice_come_back_as_they_came(grid, width, in_place):
    plan = make_plan(width, grid=grid)
    rows = unit_rows(np.random.default_rng(1), 301, width, grid)
    rows[::3] = unit_rows(np.random.default_rng(2), 101, width)  # these do not
    target_of_row = np.arange(301) % 4
    given = rows.copy()
    served = engine.blend(plan, given, target_of_row, given if in_place else None)
    kept = (target_of_row == 0) & in_format(rows, grid)
    assert 30 < kept.sum() < 150
    assert np.array_equal(served[kept].view(np.uint32), rows[kept].view(np.uint32))
    assert not (served[~kept] == rows[~kept]).all(axis=1).any()
    assert in_format(served, grid).all()


@pytest.mark.parametrize("grid", COARSE)
def test_one_number_off_the_lattice_is_enough_to_be_rounded(grid):
    plan, rows = make_plan(64, grid=grid), np.full((64, 64), 0.125, dtype=np.float32)
    np.fill_diagonal(rows, np.nextafter(np.float32(0.125), np.float32(1.0)))
    rows[5] = 0.125
    served = engine.blend(plan, rows, np.zeros(64, dtype=np.int64))
    assert np.array_equal(served, engine.blend(plan, rows, np.zeros(64, dtype=np.int64), using=NumpyEngine()))
    assert (served == 0.125).all(axis=1).tolist() == [row == 5 for row in range(64)]


@pytest.mark.parametrize("normalise", [False, True])
@pytest.mark.parametrize("grid", COARSE)
@pytest.mark.parametrize("width", [5, 37, 768])
def test_it_equals_the_oracle(grid, width, normalise):
    plan, targets = make_plan(width, grid=grid), np.arange(400) % 4
    for number_format in (NumberFormat.float32, grid):
        rows = unit_rows(np.random.default_rng(3), 400, width, number_format)
        scaled = rows * np.float32(3.7 if normalise else 1.0)
        fused = engine.blend(plan, scaled, targets, normalise=normalise)
        exact = engine.blend(plan, scaled, targets, normalise=normalise, using=NumpyEngine())
        assert np.mean(fused != exact) < 1e-4


@pytest.mark.parametrize("grid", COARSE)
def test_doubtful_rows_are_reported(grid):
    plan, rows = make_plan(40, grid=grid), unit_rows(np.random.default_rng(5), 7, 40)
    limits = certain_squares(plan, False)
    out, targets = np.empty_like(rows), np.zeros(7, dtype=np.int64)
    assert not write_coarse(plan, rows, targets, out, limits, False, False)
    for bad in (np.nan, np.inf, 0.0, 1.02):
        broken = rows.copy()
        broken[6] *= np.float32(bad)
        assert write_coarse(plan, broken, targets, out, limits, False, False)
