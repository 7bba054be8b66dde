"""The compiled graded mark against the plain one, the plain one against the formula, and both against bad input."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

pytest.importorskip("numba", reason="numba is not installed")

from regionmarker.errors import InputError
from regionmarker.marking import engine
from regionmarker.marking.numba_graded import write_graded
from regionmarker.marking.numpy_engine import NumpyEngine
from regionmarker.marks.number_format import NumberFormat, in_format, round_to_format
from regionmarker.marks.plan import CLIP, GradedPlan


def make_plan(
    width: int, number_format: NumberFormat = NumberFormat.float32, planes: int = 10, carriers: int = 12
) -> GradedPlan:
    rng = np.random.default_rng(width)
    directions = rng.standard_normal((carriers, width))
    return GradedPlan(
        planes=rng.standard_normal((planes, width)).astype(np.float32),
        offsets=rng.standard_normal(planes) * 0.1,
        first=np.arange(carriers) % planes,
        second=np.where(np.arange(carriers) < 4, -1, (np.arange(carriers) * 7 + 3) % planes),
        centres=rng.standard_normal(carriers) * 0.1,
        amounts=rng.uniform(0.01, 0.03, carriers),
        directions=(directions / np.linalg.norm(directions, axis=1, keepdims=True)).astype(np.float32),
        number_format=number_format,
    )


def unit_rows(count: int, width: int, seed: int = 0) -> np.ndarray:
    rows = np.random.default_rng(seed).standard_normal((count, width))
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


def formula(plan: GradedPlan, e: np.ndarray) -> np.ndarray:
    u = e @ plan.planes.T.astype(np.float64) - plan.offsets
    second = np.stack([u[:, b] if b >= 0 else np.ones(len(e)) for b in plan.second], axis=1)
    carriers = np.clip(u[:, plan.first] * second, -CLIP, CLIP)
    y = e + ((carriers - plan.centres) * plan.amounts) @ plan.directions
    return y / np.linalg.norm(y, axis=1, keepdims=True)


@pytest.mark.parametrize("normalise", [False, True])
@pytest.mark.parametrize("count", [1, 3, 4, 50])
@pytest.mark.parametrize("width", [5, 16, 37, 301])
def test_compiled_equals_plain_equals_formula(width, count, normalise):
    plan, rows = make_plan(width), unit_rows(count, width) * np.float32(3.0 if normalise else 1.0)
    e = rows.astype(np.float64) / (np.linalg.norm(rows.astype(np.float64), axis=1, keepdims=True) if normalise else 1.0)
    compiled = engine.mark(plan, rows, normalise=normalise)
    plain = engine.mark(plan, rows, normalise=normalise, using=NumpyEngine())
    assert np.abs(plain - formula(plan, e)).max() < 1e-6
    assert np.abs(compiled - plain).max() < 1e-6


@pytest.mark.parametrize("normalise", [False, True])
@pytest.mark.parametrize("number_format", list(NumberFormat))
@pytest.mark.parametrize("width", [13, 301])
def test_a_row_does_not_depend_on_its_company_nor_on_where_it_is_written(number_format, width, normalise):
    plan, rows = make_plan(width, number_format), unit_rows(17, width)
    mark = partial(engine.mark, plan, normalise=normalise)
    together = mark(rows)
    for size in (1, 2, 6, 7):  # six rows go together, the rest one by one
        assert np.array_equal(together, np.vstack([mark(rows[start : start + size]) for start in range(0, 17, size)]))
    in_place = rows.copy()
    assert mark(in_place, in_place) is in_place
    assert np.array_equal(in_place, together)
    apart = np.zeros((34, width), dtype=np.float32)
    mark(rows, apart[::2])
    assert np.array_equal(apart[::2], together)
    assert mark(rows[:0]).shape == (0, width)


@pytest.mark.parametrize("number_format", [NumberFormat.float32, NumberFormat.float16])
@pytest.mark.parametrize("shift", [0, 1, 9])
def test_large_outputs_that_bypass_the_cache_are_the_same_at_any_alignment(monkeypatch, number_format, shift):
    from regionmarker.marking import numba_graded

    plan, rows = make_plan(203, number_format), unit_rows(60, 203)
    small = engine.mark(plan, rows)
    monkeypatch.setattr(numba_graded, "STREAM_BYTES", 0)
    streamed = np.empty(60 * 203 + shift, dtype=np.float32)[shift:].reshape(60, 203)
    assert not write_graded(plan, rows, streamed, False)
    assert np.array_equal(streamed, small)


@pytest.mark.parametrize("planes", [1, 4, 24, 33])
def test_any_number_of_hyperplanes_and_a_tenants_carriers_beside_the_providers(planes):
    plan, rows = make_plan(301, planes=planes, carriers=48), unit_rows(20, 301)
    assert np.abs(engine.mark(plan, rows) - formula(plan, rows.astype(np.float64))).max() < 1e-6


@pytest.mark.parametrize("normalise", [False, True])
@pytest.mark.parametrize("width", [96, 301])
@pytest.mark.parametrize("number_format", list(NumberFormat))
def test_every_number_is_in_the_format(number_format, width, normalise):
    plan, rows = make_plan(width, number_format), unit_rows(200, width)
    rows = round_to_format(rows, number_format) if width == 96 else rows  # as upstreams serve them, or rescaled
    served = engine.mark(plan, rows, normalise=normalise)
    plain = engine.mark(plan, rows, normalise=normalise, using=NumpyEngine())
    assert in_format(served, number_format).all()
    if number_format is NumberFormat.float32:
        assert np.abs(served - plain).max() < 1e-6  # sums in another order: the last bits differ
    else:
        assert np.mean(served != plain) < 1e-3


def test_bad_rows_are_refused_and_nothing_is_served():
    plan, rows = make_plan(37), unit_rows(9, 37)
    for bad in (np.nan, np.inf, 0.0, 7.0):
        broken = rows.copy()
        broken[5] *= np.float32(bad)
        out = np.zeros_like(rows)
        with pytest.raises(InputError, match="row 5"):
            engine.mark(plan, broken, out)
        assert np.isnan(out).all()
        kept = broken.copy()
        with pytest.raises(InputError, match="row 5"):
            engine.mark(plan, broken, broken)
        assert np.array_equal(broken, kept, equal_nan=True)


def test_a_plan_whose_parts_do_not_fit_is_refused():
    good = make_plan(16)
    parts = {name: getattr(good, name) for name in ("planes", "offsets", "second", "centres", "amounts", "directions")}
    with pytest.raises(InputError, match="do not fit its hyperplanes"):
        GradedPlan(first=good.first + 5, number_format=NumberFormat.float32, **parts)
    with pytest.raises(InputError, match="do not fit each other"):
        GradedPlan(first=good.first[:3], number_format=NumberFormat.float32, **parts)
