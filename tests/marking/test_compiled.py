"""What compiled engines share: bounds within which a row is certainly good."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("numba", reason="numba is not installed")

from regionmarker.marking.compiled import limits
from regionmarker.marks.number_format import NumberFormat
from regionmarker.marks.plan import MarkPlan
from regionmarker.vectors import NORM_TOLERANCE


def test_bounds_lie_inside_the_tolerance_so_that_doubtful_rows_are_looked_at_again():
    rows = np.eye(2, dtype=np.float32)
    plan = MarkPlan(rows[:1], np.zeros(1), np.array([0, 1]), rows, np.array([0.0, 0.2]), NumberFormat.float32)
    low, high = limits(plan, normalise=False)
    assert (1 - NORM_TOLERANCE) ** 2 < low < 1 < high < (1 + NORM_TOLERANCE) ** 2
    low, high = limits(plan, normalise=True)
    assert 0 < low < 1e-20
    assert high > 1e20
