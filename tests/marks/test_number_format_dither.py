"""Dither: small, the same every time, and gone where it is rounded again."""

from __future__ import annotations

import numpy as np
import pytest

from regionmarker.marks.number_format import NumberFormat, dithered, in_format, round_to_format

COARSE = [NumberFormat.float16, NumberFormat.bfloat16]


@pytest.mark.parametrize("grid", COARSE)
def test_rounding_takes_it_away_again(embeddings, grid):
    rows = round_to_format(embeddings[:500], grid)
    moved = dithered(rows, grid)
    assert (moved != rows).mean() > 0.99
    assert (round_to_format(moved, grid) == rows).mean() > 0.99  # just below a power of two the grid is finer
    assert abs(float(np.mean((moved - rows) / np.abs(rows).clip(1e-6)))) < 1e-5


@pytest.mark.parametrize("grid", COARSE)
def test_it_is_the_same_every_time_and_no_batch_matters(embeddings, grid):
    rows = np.ascontiguousarray(embeddings[:300])
    together = dithered(rows, grid)
    assert np.array_equal(np.concatenate([dithered(row[None], grid) for row in rows[:20]]), together[:20])


@pytest.mark.parametrize("grid", COARSE)
def test_the_quick_look_at_the_grid_agrees_with_rounding(grid):
    rng = np.random.default_rng(0)
    values = np.concatenate(
        [rng.standard_normal(4000) * 10.0 ** rng.integers(-9, 5, 4000), 2.0 ** np.arange(-30.0, 18.0)]
    )
    for rows in (values.astype(np.float32), round_to_format(values, grid)):
        column = rows[np.isfinite(rows)][:, None]
        assert np.array_equal(in_format(column, grid), (round_to_format(column, grid) == column).all(axis=1))
