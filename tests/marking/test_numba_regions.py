"""The compiled kernel of the published mark, called directly: any number of hyperplanes, odd rows, doubtful rows."""

from __future__ import annotations

import numpy as np
import pytest
from tests.support.plans import make_plan, unit_rows

pytest.importorskip("numba", reason="numba is not installed")

from regionmarker.marking.numba_regions import any_doubtful, find_regions
from regionmarker.marking.numpy_engine import NumpyEngine
from regionmarker.marks.plan import certain_squares


@pytest.mark.parametrize("dimension", [1, 4, 5, 9])
def test_padding_sets_no_bit_and_the_last_row_needs_no_partner(dimension):
    plan, rows = make_plan(53, dimension=dimension), unit_rows(np.random.default_rng(0), 301, 53)
    margins = rows.astype(np.float64) @ plan.projection.T.astype(np.float64) - plan.thresholds
    rows = rows[np.abs(margins).min(axis=1) > 1e-5][:101]
    found = np.empty(101, dtype=np.int64)
    find_regions(rows, plan.tables.normals, plan.tables.thresholds, found, False)
    assert np.array_equal(found, NumpyEngine().regions(plan, rows, normalise=False))


def test_a_row_that_may_have_to_be_refused_is_seen_wherever_it_stands():
    plan, rows = make_plan(53), unit_rows(np.random.default_rng(0), 5, 53)
    limits = certain_squares(plan, normalise=False)
    assert not any_doubtful(rows, limits)
    for row in range(5):
        for bad in (np.nan, np.inf, 0.0, 1.0099999):
            broken = rows.copy()
            broken[row] *= np.float32(bad)
            assert any_doubtful(broken, limits)
