"""The tables that an engine reads."""

from __future__ import annotations

import copy
import pickle

import pytest
from tests.support.plans import make_plan

from regionmarker.errors import InputError, SecretLeakError
from regionmarker.marks.number_format import NumberFormat
from regionmarker.marks.plan import MarkPlan, certain_squares
from regionmarker.vectors import NORM_TOLERANCE


def test_a_plan_shows_and_copies_nothing() -> None:
    plan = make_plan(16)
    assert str(plan) == repr(plan) == "<MarkPlan: sealed>"
    for leak in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(SecretLeakError):
            leak(plan)


def test_parts_that_do_not_fit_are_refused() -> None:
    good = make_plan(16)
    with pytest.raises(InputError):
        MarkPlan(
            good.projection,
            good.thresholds[:3],
            good.target_of_region,
            good.targets,
            good.weights,
            NumberFormat.float32,
        )
    with pytest.raises(InputError):
        MarkPlan(
            good.projection,
            good.thresholds,
            good.target_of_region + 1,
            good.targets,
            good.weights,
            NumberFormat.float32,
        )


def test_certain_squares_lie_inside_the_tolerance_so_that_doubtful_rows_are_looked_at_again() -> None:
    low, high = certain_squares(make_plan(16), normalise=False)
    assert (1 - NORM_TOLERANCE) ** 2 < low < 1 < high < (1 + NORM_TOLERANCE) ** 2
    low, high = certain_squares(make_plan(16), normalise=True)
    assert 0 < low < 1e-20
    assert high > 1e20
