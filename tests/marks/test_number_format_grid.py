"""The grids: rounding against NumPy and against exact fractions, and the search for a hidden scale."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from regionmarker.marks.number_format import (
    LIMITS,
    NumberFormat,
    detect_format,
    finer_format,
    hidden_format,
    in_format,
    round_to_format,
)

HALVES = [NumberFormat.float16, NumberFormat.bfloat16]
doubles = st.floats(allow_nan=False, allow_infinity=False) | st.floats(-2.0, 2.0) | st.floats(-1e-6, 1e-6)


def slow_round(value: float, grid: NumberFormat) -> float:
    """Round to nearest, ties to even, with whole numbers only."""
    form = LIMITS[grid]
    if value == 0.0:
        return value
    exact = abs(Fraction(value))
    power = max(Fraction(2) ** (math.frexp(value)[1] - 1), Fraction(form.least_power))
    steps = round(exact / (power / 2**form.fraction_bits))  # Fraction rounds ties to even
    size = steps * (power / 2**form.fraction_bits)
    return math.copysign(float(size) if size <= Fraction(form.greatest) else math.inf, value)


@pytest.mark.parametrize("grid", HALVES)
@settings(deadline=None)
@given(value=doubles)
def test_rounding_equals_exact_arithmetic(grid: NumberFormat, value: float) -> None:
    rounded = float(round_to_format(np.array([value]), grid)[0])
    assert rounded == slow_round(value, grid)
    assert np.signbit(rounded) == np.signbit(value)


@pytest.mark.parametrize("grid", HALVES)
def test_ties_go_to_even_also_where_float32_would_round_twice(grid: NumberFormat) -> None:
    last = 2.0 ** -LIMITS[grid].fraction_bits
    ties = 1.0 + last * (np.arange(64) + 0.5)
    assert np.array_equal(round_to_format(ties, grid), [slow_round(tie, grid) for tie in ties])
    above = np.nextafter(ties, 2.0)  # float32 does not see the difference
    assert np.array_equal(above.astype(np.float32), ties.astype(np.float32))
    assert np.array_equal(round_to_format(above, grid), 1.0 + last * (np.arange(64) + 1.0))


def test_float16_equals_numpy_bit_for_bit() -> None:
    rng = np.random.default_rng(1)
    values = rng.normal(size=200_000) * 10.0 ** rng.integers(-10, 6, size=200_000)
    values = np.concatenate([values, [0.0, -0.0, np.inf, -np.inf, np.nan, 65519.9, 65520.0, -65520.0, 2.0**-25, 3e-8]])
    with np.errstate(over="ignore"):
        expected = values.astype(np.float16).astype(np.float32)
    assert np.array_equal(round_to_format(values, NumberFormat.float16).view(np.int32), expected.view(np.int32))


def test_bfloat16_keeps_float32_subnormals() -> None:
    values = np.array([2.0**-133, 2.0**-134, 1.5 * 2.0**-133, 3.4e38, -np.inf])
    assert round_to_format(values, NumberFormat.bfloat16).tolist() == [2.0**-133, 0.0, 2.0**-132, np.inf, -np.inf]


@pytest.mark.parametrize("grid", list(NumberFormat))
def test_rounded_rows_are_on_the_grid(grid: NumberFormat) -> None:
    rows = np.random.default_rng(2).normal(size=(50, 40))
    assert in_format(round_to_format(rows, grid), grid).all()
    assert not in_format(rows, grid).any()


def pooled(rng: np.random.Generator, grid: NumberFormat, shape: tuple[int, int]) -> np.ndarray:
    """What an upstream makes that pools on ``grid`` and renormalises in float32."""
    rows = round_to_format(rng.normal(size=shape) * 10.0 ** rng.uniform(-2, 1), grid)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.parametrize("width", [24, 256, 768])
@pytest.mark.parametrize("grid", HALVES)
def test_the_hidden_scale_is_found(grid: NumberFormat, width: int) -> None:
    served = pooled(np.random.default_rng(3), grid, (400, width))
    assert not in_format(served, grid).any()
    assert hidden_format(served, grid).mean() > 0.99
    assert detect_format(served) is grid


@pytest.mark.parametrize("grid", HALVES)
def test_ordinary_rows_have_no_hidden_scale(grid: NumberFormat) -> None:
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(2000, 64)).astype(np.float32)
    assert hidden_format(rows, grid).mean() < 0.001
    assert not hidden_format(rows[:, :6], grid).any()
    assert not hidden_format(rows[:, :3], grid).any()
    assert detect_format(rows) is NumberFormat.float32


def test_bfloat16_is_told_from_float16() -> None:
    rng = np.random.default_rng(5)
    assert hidden_format(pooled(rng, NumberFormat.float16, (300, 128)), NumberFormat.bfloat16).mean() < 0.001
    assert detect_format(round_to_format(rng.normal(size=(9, 64)), NumberFormat.bfloat16)) is NumberFormat.bfloat16
    assert detect_format(round_to_format(rng.normal(size=(9, 64)), NumberFormat.float16)) is NumberFormat.float16
    assert detect_format(rng.normal(size=(9, 64)).astype(np.float16)) is NumberFormat.float16


def test_odd_rows_do_not_upset_the_search() -> None:
    rows = np.zeros((4, 32), dtype=np.float32)
    rows[1, 0] = 1.0
    rows[2] = np.nan
    assert not hidden_format(rows, NumberFormat.float16).any()
    assert hidden_format(rows[:0], NumberFormat.float16).shape == (0,)


def test_blocks_combine_to_the_finer_grid() -> None:
    assert finer_format(NumberFormat.float32, NumberFormat.float16) is NumberFormat.float32
    assert finer_format(NumberFormat.bfloat16, NumberFormat.float16) is NumberFormat.float16
    assert (
        finer_format(detect_format(np.zeros((0, 8), dtype=np.float32)), NumberFormat.bfloat16) is NumberFormat.bfloat16
    )


def test_a_few_odd_rows_do_not_hide_the_upstream() -> None:
    rng = np.random.default_rng(6)
    rows = pooled(rng, NumberFormat.float16, (64, 96))
    rows[::8] = rng.normal(size=(8, 96))
    assert detect_format(rows) is NumberFormat.float16
