"""The fused kernel against the oracle, the oracle against the formula, and both against bad input.

Bits may differ between the engines only where the two orders of adding |y|^2 in float64 meet a rounding tie; the share
of such numbers is asserted to be below one in ten thousand."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from functools import partial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.plans import make_plan, unit_rows

from regionmarker.errors import InputError
from regionmarker.marking import engine as compiled
from regionmarker.marking.numpy_engine import NumpyEngine
from regionmarker.marks.number_format import NumberFormat, in_format
from regionmarker.marks.plan import MarkPlan

pytest.importorskip("numba")


class plain:
    """The same functions by the arithmetic of the reference engine."""

    regions = partial(compiled.regions, using=NumpyEngine())
    mark = partial(compiled.mark, using=NumpyEngine())
    blend = partial(compiled.blend, using=NumpyEngine())


ENGINES = [pytest.param(compiled, id="numba"), pytest.param(plain, id="numpy")]


def formula(plan: MarkPlan, rows: np.ndarray) -> np.ndarray:
    """Eq. 3, as the paper has it, in float64 and without a grid."""
    e = rows.astype(np.float64)
    assert plan.projection is not None
    above = e @ plan.projection.astype(np.float64).T - plan.thresholds > 0
    slots = plan.target_of_region[above @ (1 << np.arange(above.shape[1]))]
    weights = plan.weights[slots][:, None]
    mixed = (1 - weights) * e + weights * plan.targets[slots]
    return mixed / np.linalg.norm(mixed, axis=1, keepdims=True)


def far_from_hyperplanes(plan: MarkPlan, rows: np.ndarray) -> np.ndarray:
    assert plan.projection is not None
    margins = rows.astype(np.float64) @ plan.projection.astype(np.float64).T - plan.thresholds
    return np.abs(margins).min(axis=1) >= 1e-5


def lay_out(rows: np.ndarray, how: str) -> np.ndarray:
    """The same numbers in another memory order."""
    if how == "rows apart":
        return np.pad(rows, ((0, 0), (0, 3)))[:, : rows.shape[1]]
    if how == "columns apart":
        return np.repeat(rows, 2, axis=1)[:, ::2]
    if how == "reversed":
        return rows[::-1, ::-1].copy()[::-1, ::-1]
    return np.array(rows, order="F" if how == "fortran" else "C")


@settings(max_examples=300, deadline=None)
@given(
    width=st.integers(1, 70) | st.sampled_from([256, 383, 768, 1536, 3072]),
    n=st.sampled_from([0, 1, 2, 3, 17, 64]),
    dimension=st.integers(1, 9),
    dtype=st.sampled_from([np.float16, np.float32, np.float64]),
    how=st.sampled_from(["plain", "rows apart", "columns apart", "fortran", "reversed"]),
    strength=st.sampled_from([0.05, 0.2, 0.3, 1.0]),
    normalise=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_compiled_equals_plain_equals_formula(width, n, dimension, dtype, how, strength, normalise, seed) -> None:
    plan = make_plan(width, dimension=dimension, strength=strength, seed=seed)
    rng = np.random.default_rng(seed + 1)
    rows = lay_out(unit_rows(rng, n, width).astype(dtype), how)
    before = rows.copy()
    fused, exact = compiled.mark(plan, rows, normalise=normalise), plain.mark(plan, rows, normalise=normalise)
    e = rows.astype(np.float64) / (np.linalg.norm(rows.astype(np.float64), axis=1, keepdims=True) if normalise else 1.0)
    sure = far_from_hyperplanes(plan, e)
    assert np.abs(fused - exact)[sure].max(initial=0.0) <= 2e-7
    assert np.abs(exact - formula(plan, e))[sure].max(initial=0.0) <= 2e-7
    found = compiled.regions(plan, rows, normalise=normalise)
    assert np.array_equal(found[sure], plain.regions(plan, rows, normalise=normalise)[sure])
    blended = compiled.blend(plan, rows, plan.target_of_region[found], normalise=normalise)
    assert np.array_equal(blended, fused)
    assert np.array_equal(rows, before)


@pytest.mark.parametrize("grid", list(NumberFormat))
@pytest.mark.parametrize("width", [5, 96, 1536])
def test_engines_agree_on_every_grid(grid: NumberFormat, width: int) -> None:
    plan = make_plan(width, grid=grid)
    rows = unit_rows(np.random.default_rng(7), 600, width, grid)
    rows = rows[far_from_hyperplanes(plan, rows) & (np.abs(np.linalg.norm(rows, axis=1) - 1) < 0.009)]
    fused, exact = compiled.mark(plan, rows), plain.mark(plan, rows)
    assert in_format(fused, grid).all()
    assert in_format(exact, grid).all()
    assert np.mean(fused != exact) < 1e-4
    assert np.array_equal(np.signbit(fused), np.signbit(exact))


def test_slot_zero_and_the_others_keep_the_same_length() -> None:
    """Marked and unmarked rows miss length 1 by float32 rounding alone, and by the same amounts."""
    plan = make_plan(768)
    rows = unit_rows(np.random.default_rng(8), 20_000, 768)
    served = compiled.mark(plan, rows).astype(np.float64)
    off = np.linalg.norm(served, axis=1) - 1.0
    marked = plan.target_of_region[compiled.regions(plan, rows)] > 0
    assert 0.05 < marked.mean() < 0.5
    assert np.abs(off).max() < 2e-8
    assert 0.94 < off[marked].std() / off[~marked].std() < 1.06
    assert abs(off[marked].mean() - off[~marked].mean()) < 0.1 * off.std()


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("grid", list(NumberFormat))
@pytest.mark.parametrize("width", [13, 384])
def test_results_do_not_depend_on_the_batch(engine, grid: NumberFormat, width: int) -> None:
    plan = make_plan(width, grid=grid)
    rows = unit_rows(np.random.default_rng(9), 257, width)
    together = engine.mark(plan, rows)
    for size in (1, 2, 7, 100):
        parts = [engine.mark(plan, rows[start : start + size]) for start in range(0, len(rows), size)]
        assert np.array_equal(np.concatenate(parts).view(np.int32), together.view(np.int32))
    order = np.random.default_rng(10).permutation(len(rows))
    assert np.array_equal(engine.mark(plan, rows[order]).view(np.int32), together[order].view(np.int32))
    assert np.array_equal(engine.mark(plan, rows.astype(np.float64)).view(np.int32), together.view(np.int32))


@pytest.mark.parametrize("grid", [NumberFormat.float32, NumberFormat.bfloat16])
@pytest.mark.parametrize("shift", [0, 1, 4, 9])
def test_large_outputs_at_any_alignment_equal_small_ones(monkeypatch, grid: NumberFormat, shift: int) -> None:
    from regionmarker.marking import numba_engine as fused

    plan = make_plan(203, grid=grid)
    rows = unit_rows(np.random.default_rng(11), 50, 203)
    small = compiled.mark(plan, rows)
    monkeypatch.setattr(fused, "STREAM_BYTES", 0)
    room = np.empty(50 * 203 + shift, dtype=np.float32)
    out = room[shift:].reshape(50, 203)
    assert compiled.mark(plan, rows, out) is out
    assert np.array_equal(out.view(np.int32), small.view(np.int32))


def test_results_do_not_depend_on_the_process() -> None:
    code = (
        "import hashlib, sys, numpy as np; sys.path[:0] = sys.argv[1:]\n"
        "from regionmarker.marking import engine as compiled\n"
        "from regionmarker.marks import plan; from regionmarker.marks.number_format import NumberFormat as f\n"
        "rng = np.random.default_rng(0); H = np.linalg.qr(rng.normal(size=(301, 4)))[0].T.astype(np.float32)\n"
        "E = rng.normal(size=(99, 301)); E = (E / np.linalg.norm(E, axis=1, keepdims=True)).astype(np.float32)\n"
        "p = plan.MarkPlan(H, np.zeros(4), np.arange(16) % 3, E[:3], np.array([0, .2, .2]), f.float16)\n"
        "print(hashlib.sha256(compiled.mark(p, E).tobytes()).hexdigest())"
    )
    digests = {
        subprocess.run(
            [sys.executable, "-c", code, *sys.path],
            env={**os.environ, "NUMBA_NUM_THREADS": threads, "OMP_NUM_THREADS": threads},
            capture_output=True, text=True, check=True,
        ).stdout
        for threads in ("1", "2")
    }  # fmt: skip
    assert len(digests) == 1


def test_importing_the_kernel_does_not_import_numba() -> None:
    code = "import sys; sys.path[:0] = sys.argv[1:]; import regionmarker.marking.engine; print('numba' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code, *sys.path], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_without_numba_the_oracle_marks(monkeypatch) -> None:
    monkeypatch.setitem(sys.modules, "regionmarker.marking.numba_engine", None)
    compiled.engine.cache_clear()
    try:
        assert compiled.engine().name == "numpy"
        plan, rows = make_plan(32), unit_rows(np.random.default_rng(12), 9, 32)
        assert np.array_equal(compiled.mark(plan, rows), plain.mark(plan, rows))
    finally:
        compiled.engine.cache_clear()


BAD: dict[str, tuple[Callable[[np.ndarray], None], str]] = {
    "nan": (lambda rows: rows.__setitem__((5, 3), np.nan), "row 5 holds NaN or infinity"),
    "inf": (lambda rows: rows.__setitem__((5, 3), -np.inf), "row 5 holds NaN or infinity"),
    "zero": (lambda rows: rows.__setitem__(5, 0.0), "row 5 is zero"),
    "long": (lambda rows: rows.__setitem__(5, rows[5] * np.float32(1.02)), "row 5 has length 1.02"),
    "short": (lambda rows: rows.__setitem__(5, rows[5] * np.float32(0.98)), "row 5 has length 0.98"),
    "huge": (lambda rows: rows.__setitem__((5, 3), 1e30), "row 5 has length 1e"),
}


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("bad", BAD)
def test_bad_rows_are_refused_and_nothing_is_served(engine, bad: str) -> None:
    plan = make_plan(40)
    spoil, message = BAD[bad]
    rows = unit_rows(np.random.default_rng(13), 12, 40)
    spoil(rows)
    rows[9] = rows[5]
    before, out = rows.copy(), np.zeros_like(rows)
    with pytest.raises(InputError, match=rf"^{message}.*2 such rows in all.*normalise"):
        engine.mark(plan, rows, out)
    assert np.isnan(out).all()
    with pytest.raises(InputError, match=message):
        engine.mark(plan, rows, rows)
    assert np.array_equal(rows.view(np.int32), before.view(np.int32))
    with pytest.raises(InputError, match=message):
        engine.regions(plan, rows)
    with pytest.raises(InputError, match=message):
        engine.blend(plan, rows, np.zeros(12, dtype=np.int64))


@pytest.mark.parametrize("engine", ENGINES)
def test_tolerance_is_judged_in_float64(engine) -> None:
    plan = make_plan(700)
    rows = unit_rows(np.random.default_rng(14), 40, 700)
    lengths = np.linspace(1.00995, 1.01005, 40)
    rows = (rows * lengths[:, None]).astype(np.float32)
    good = np.abs(np.linalg.norm(rows.astype(np.float64), axis=1) - 1.0) <= 0.01
    assert 0 < good.sum() < 40
    for row, fine in zip(rows, good, strict=True):
        if fine:
            engine.mark(plan, row[None])
        else:
            with pytest.raises(InputError):
                engine.mark(plan, row[None])


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("length", [1e-12, 0.3, 7.0, 1e12])
def test_normalise_takes_rows_of_any_sensible_length(engine, length: float) -> None:
    plan = make_plan(90)
    rows = unit_rows(np.random.default_rng(15), 30, 90)
    rows = rows[far_from_hyperplanes(plan, rows)]
    assert np.abs(engine.mark(plan, rows * np.float32(length), normalise=True) - engine.mark(plan, rows)).max() < 2e-7
    for nothing in (0.0, 1e-30, np.nan, 1e30):
        with pytest.raises(InputError, match=r"row 3 .*mend or drop"):
            engine.mark(plan, np.vstack([rows[:3], np.full(90, nothing, dtype=np.float32)]), normalise=True)


@pytest.mark.parametrize("engine", ENGINES)
def test_in_place_and_into_out_are_the_same(engine) -> None:
    plan = make_plan(77)
    rows = unit_rows(np.random.default_rng(16), 33, 77)
    expected = engine.mark(plan, rows)
    rows.flags.writeable = False
    out = np.full((66, 80), 9.0, dtype=np.float32)
    strided = out[::2, 1:78]
    assert engine.mark(plan, rows, strided) is strided
    assert np.array_equal(strided, expected)
    assert (out[1::2] == 9.0).all()
    assert (out[:, 78:] == 9.0).all()
    with pytest.raises(InputError, match="read-only"):
        engine.mark(plan, rows, rows)
    writable = rows.copy()
    assert engine.mark(plan, writable, writable) is writable
    assert np.array_equal(writable, expected)
    spread = np.asfortranarray(rows)
    engine.mark(plan, spread, spread)
    assert np.array_equal(spread, expected)


@pytest.mark.parametrize("engine", ENGINES)
def test_unusable_arguments_are_refused(engine) -> None:
    plan = make_plan(8)
    rows = unit_rows(np.random.default_rng(17), 6, 8)
    both = np.concatenate([rows, rows])
    with pytest.raises(InputError, match="overlaps"):
        engine.mark(plan, both[:6], both[1:7])
    with pytest.raises(InputError, match="overlaps"):
        engine.mark(plan, both[:6], both[:6][::-1])
    for out in (np.empty((6, 7), dtype=np.float32), np.empty((6, 8)), [[0.0]]):
        with pytest.raises(InputError, match="out must be a float32 array"):
            engine.mark(plan, rows, out)
    for wrong in (rows[:, :7], rows[0], rows.astype(np.int64), [["a"] * 8]):
        with pytest.raises(InputError):
            engine.mark(plan, wrong)
    for slots in (np.zeros(5), np.full(6, 4), np.full(6, -1)):
        with pytest.raises(InputError, match="target_of_row"):
            engine.blend(plan, rows, slots)


@pytest.mark.parametrize("engine", ENGINES)
def test_neighbours_in_one_array_do_not_overlap(engine) -> None:
    plan = make_plan(8)
    rows = unit_rows(np.random.default_rng(18), 6, 8)
    both = np.concatenate([rows, np.zeros_like(rows)], axis=1)
    engine.mark(plan, both[:, :8], both[:, 8:])
    assert np.array_equal(both[:, 8:], engine.mark(plan, rows))
    assert np.array_equal(both[:, :8], rows)


@pytest.mark.parametrize("engine", ENGINES)
def test_a_row_opposite_its_target_becomes_the_target(engine) -> None:
    plan = make_plan(24, strength=0.5)
    served = engine.blend(plan, -plan.targets[[1, 1]], np.array([1, 0]))
    assert np.abs(served - plan.targets[1] * [[1.0], [-1.0]]).max() < 1e-6


@pytest.mark.parametrize("engine", ENGINES)
def test_a_plan_without_hyperplanes_only_blends(engine) -> None:
    linear = make_plan(16)
    plan = MarkPlan(
        None, linear.thresholds, linear.target_of_region, linear.targets, linear.weights, NumberFormat.float32
    )
    rows = unit_rows(np.random.default_rng(19), 5, 16)
    slots = linear.target_of_region[engine.regions(linear, rows)]
    assert np.array_equal(engine.blend(plan, rows, slots), engine.mark(linear, rows))
    for ask in (engine.mark, engine.regions):
        with pytest.raises(InputError, match="not linear"):
            ask(plan, rows)


def test_a_read_only_installation_works_without_a_cache() -> None:
    code = (
        "import sys; sys.path[:0] = sys.argv[1:]; import numba.core.caching as c\n"
        "c.CacheImpl._locator_classes = []\n"
        "from regionmarker.marking import engine; print(engine.engine().name)"
    )
    done = subprocess.run([sys.executable, "-c", code, *sys.path], capture_output=True, text=True, check=True)
    assert done.stdout == "numba\n"
