"""Dither and rounding of coarse number formats, compiled: see :mod:`regionmarker.marks.number_format`. Needs numba."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir

from regionmarker.marking import simd
from regionmarker.marking.compiled import inner
from regionmarker.marking.simd import (
    WIDE,
    alike,
    load_wide,
    magnitude,
    muladd,
    no_wide_floats,
    operation,
    power_below,
    spread,
    store,
    total,
)
from regionmarker.marks.number_format import COLUMN_STEP, FIRST_FACTOR, LIMITS, SECOND_FACTOR, NumberFormat

_I32, _FLOAT = ir.IntType(32), ir.FloatType()


@cache
def lattice(number_format: NumberFormat) -> tuple[np.float32, np.float32, np.float32]:
    """Return what compiled code needs of a format: its least power, its unit at 1, its magic factor in float32."""
    limits = LIMITS[number_format]
    numbers = (limits.least_power, 2.0**-limits.fraction_bits, 1.5 * 2.0 ** (23 - limits.fraction_bits))
    return np.float32(numbers[0]), np.float32(numbers[1]), np.float32(numbers[2])


@operation
def moved(_: Any, x: Any, column: Any, least: Any, unit: Any) -> Any:
    """Return x with its dither, given its column; to the bit what ``number_format.dithered`` returns."""

    def generate(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        x, column, least, unit = values
        words = alike(_I32, x.type)

        def word(number: int) -> Any:
            return spread(builder, _I32(number), words)

        steps = spread(builder, builder.mul(builder.trunc(column, _I32), _I32(COLUMN_STEP)), words)
        if isinstance(words, ir.VectorType):
            steps = builder.add(steps, ir.Constant(words, [COLUMN_STEP * k & 0xFFFF_FFFF for k in range(words.count)]))
        h = builder.add(builder.bitcast(x, words), steps)
        for shift, factor in ((16, FIRST_FACTOR), (13, SECOND_FACTOR)):
            h = builder.mul(builder.xor(h, builder.lshr(h, word(shift))), word(factor))
        h = builder.xor(h, builder.lshr(h, word(16)))
        share = builder.fmul(builder.uitofp(h, x.type), spread(builder, _FLOAT(2.0**-32), x.type))
        share = builder.fsub(share, spread(builder, _FLOAT(0.5), x.type))
        step = builder.fmul(power_below(builder, x, least), spread(builder, unit, x.type))
        return builder.fadd(x, builder.fmul(share, step))

    return x(x, column, least, unit), generate


@operation
def distance(_: Any, x: Any, least: Any, magic: Any) -> Any:
    """Return how far x is from the nearest number of the format, whose largest number it must not exceed."""

    def generate(_context: Any, builder: Any, _signature: Any, values: Any) -> Any:
        x, least, magic = values
        size = magnitude(builder, x)
        big = builder.fmul(power_below(builder, x, least), spread(builder, magic, x.type))
        nearest = builder.fsub(builder.fadd(size, big), big)
        return magnitude(builder, builder.fsub(nearest, size))

    return x(x, least, magic), generate


@inner
def dither_row(E: Any, r: int, X: Any, i: int, grid: Any) -> Any:
    """Write row r of E with its dither to row i of X, and return |e|^2 in float32."""
    least, unit, _ = grid
    width = E.shape[1]
    whole = width - width % WIDE
    squares = no_wide_floats()
    for j in range(0, whole, WIDE):
        x = load_wide(E, r, j)
        squares = muladd(x, x, squares)
        store(moved(x, j, least, unit), X, i, j)
    square = total(squares)
    for j in range(whole, width):
        square = muladd(E[r, j], E[r, j], square)
        store(moved(E[r, j], j, least, unit), X, i, j)
    return np.float64(square)


@inner
def rounded(y: Any, scale: float, grid: Any) -> Any:
    """Return ``y scale``, rounded once to the number format, for one number or one vector of them."""
    high = np.float32(scale)
    return simd.rounded(y, high, np.float32(scale - np.float64(high)), grid[0], grid[2])
