"""The graded mark compiled: four rows at a time through all hyperplanes, then all carriers. Needs numba.

For four rows e, in three passes over numbers that the first pass has brought into cache:

1. H e and |e|^2, float32: three hyperplanes at a time, so that a hyperplane is read once for four rows;
2. y = e + sum_j a_j d_j in float32, two vectors of columns at a time through all carriers, and |y|^2 in float64;
3. y / |y|, rounded once to the number format, as for the published mark.

Each row has sums of its own in one order, so that its result does not depend on its company. What bounds it is the
arithmetic: one product per column for every hyperplane and one for every carrier.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from regionmarker.marking import simd
from regionmarker.marking.compiled import STREAM_BYTES, compiled, given, inner, served, squared_length, types
from regionmarker.marking.simd import WIDTH, load, muladd, no_doubles, no_floats, total
from regionmarker.marks.plan import CLIP, COLUMNS_AT_ONCE, NOTHING_LEFT, PLANES_AT_ONCE, GradedPlan, certain_squares
from regionmarker.vectors import Floats

_ROWS_AT_ONCE = 4


@inner
def _project(E: Any, r: Any, H: Any, g: int, u: Any) -> None:
    """Write the projections of four rows on three hyperplanes into u (4, h)."""
    width = E.shape[1]
    whole = width - width % WIDTH
    a0 = a1 = a2 = b0 = b1 = b2 = c0 = c1 = c2 = d0 = d1 = d2 = no_floats()
    for j in range(0, whole, WIDTH):
        x, y, z, w = load(E, r[0], j), load(E, r[1], j), load(E, r[2], j), load(E, r[3], j)
        h = load(H, g, j)
        a0, b0, c0, d0 = muladd(x, h, a0), muladd(y, h, b0), muladd(z, h, c0), muladd(w, h, d0)
        h = load(H, g + 1, j)
        a1, b1, c1, d1 = muladd(x, h, a1), muladd(y, h, b1), muladd(z, h, c1), muladd(w, h, d1)
        h = load(H, g + 2, j)
        a2, b2, c2, d2 = muladd(x, h, a2), muladd(y, h, b2), muladd(z, h, c2), muladd(w, h, d2)
    u[0, g], u[0, g + 1], u[0, g + 2] = total(a0), total(a1), total(a2)
    u[1, g], u[1, g + 1], u[1, g + 2] = total(b0), total(b1), total(b2)
    u[2, g], u[2, g + 1], u[2, g + 2] = total(c0), total(c1), total(c2)
    u[3, g], u[3, g + 1], u[3, g + 2] = total(d0), total(d1), total(d2)
    for j in range(whole, width):
        for row in range(_ROWS_AT_ONCE):
            for plane in range(g, g + PLANES_AT_ONCE):
                u[row, plane] = muladd(E[r[row], j], H[plane, j], u[row, plane])


@inner
def _amounts(u: Any, units: Any, offsets: Any, first: Any, second: Any, centres: Any, amounts: Any, a: Any) -> None:
    """Turn projections u (4, h) into what each carrier adds, a (4, J)."""
    clip = np.float32(CLIP)
    for row in range(_ROWS_AT_ONCE):
        for j in range(first.shape[0]):
            c = u[row, first[j]] * units[row] - offsets[first[j]]
            if second[j] >= 0:
                c *= u[row, second[j]] * units[row] - offsets[second[j]]
            a[row, j] = (min(max(c, -clip), clip) - centres[j]) * amounts[j]


@inner
def _added_squares(low: Any, high: Any, x: Any, y: Any) -> Any:
    """Add the squares of two vectors to running sums in float64."""
    low, high = simd.add_low_squares(low, x), simd.add_high_squares(high, x)
    return simd.add_low_squares(low, y), simd.add_high_squares(high, y)


@inner
def _mix(E: Any, r: Any, units: Any, a: Any, directions: Any, tail: Any, y: Any, squares: Any) -> None:
    """Write y = e + sum_j a_j d_j of four rows (4, D), and |y|^2."""
    width, count = E.shape[1], a.shape[1]
    whole = width - width % COLUMNS_AT_ONCE
    nothing = no_floats()
    k0, k1, k2, k3 = units[0], units[1], units[2], units[3]
    s0 = s1 = s2 = s3 = t0 = t1 = t2 = t3 = no_doubles()
    for j in range(0, whole, COLUMNS_AT_ONCE):
        p, q = muladd(k0, load(E, r[0], j), nothing), muladd(k0, load(E, r[0], j + WIDTH), nothing)
        v, w = muladd(k1, load(E, r[1], j), nothing), muladd(k1, load(E, r[1], j + WIDTH), nothing)
        f, g = muladd(k2, load(E, r[2], j), nothing), muladd(k2, load(E, r[2], j + WIDTH), nothing)
        m, n = muladd(k3, load(E, r[3], j), nothing), muladd(k3, load(E, r[3], j + WIDTH), nothing)
        block = j // COLUMNS_AT_ONCE * count
        for k in range(count):
            d, e = load(directions, block + k, 0), load(directions, block + k, WIDTH)
            p, q = muladd(a[0, k], d, p), muladd(a[0, k], e, q)
            v, w = muladd(a[1, k], d, v), muladd(a[1, k], e, w)
            f, g = muladd(a[2, k], d, f), muladd(a[2, k], e, g)
            m, n = muladd(a[3, k], d, m), muladd(a[3, k], e, n)
        simd.store(p, y, 0, j)
        simd.store(q, y, 0, j + WIDTH)
        simd.store(v, y, 1, j)
        simd.store(w, y, 1, j + WIDTH)
        simd.store(f, y, 2, j)
        simd.store(g, y, 2, j + WIDTH)
        simd.store(m, y, 3, j)
        simd.store(n, y, 3, j + WIDTH)
        s0, t0 = _added_squares(s0, t0, p, q)
        s1, t1 = _added_squares(s1, t1, v, w)
        s2, t2 = _added_squares(s2, t2, f, g)
        s3, t3 = _added_squares(s3, t3, m, n)
    squares[0], squares[1] = total(s0) + total(t0), total(s1) + total(t1)
    squares[2], squares[3] = total(s2) + total(t2), total(s3) + total(t3)
    for row in range(_ROWS_AT_ONCE):
        for j in range(whole, width):
            number = units[row] * E[r[row], j]
            for k in range(count):
                number = muladd(a[row, k], tail[k, j - whole], number)
            y[row, j] = number
            squares[row] += np.float64(number) * np.float64(number)


@inner
def _emit(y: Any, row: int, out: Any, r: int, scale: float, rounding: Any, streamed: bool) -> None:
    """Write y / |y| of one row, as it is streamed past the cache or not."""
    width = y.shape[1]
    one, nothing = np.float32(1.0), np.float32(0.0)
    head = min(simd.columns_to_line(out, r), width) if streamed else 0
    tail = width - (width - head) % WIDTH
    for j in range(head):
        out[r, j] = served(y[row, j], one, nothing, scale, rounding)
    if streamed:
        for j in range(head, tail, WIDTH):
            simd.stream(served(load(y, row, j), one, no_floats(), scale, rounding), out, r, j)
    else:
        for j in range(head, tail, WIDTH):
            simd.store(served(load(y, row, j), one, no_floats(), scale, rounding), out, r, j)
    for j in range(tail, width):
        out[r, j] = served(y[row, j], one, nothing, scale, rounding)


_MATRIX, _FLOATS, _COUNTS = given(types.float32, 2), given(types.float32, 1), given(types.int64, 1)
_ROOM = types.Array(types.float32, 2, "C")


@compiled(
    *(_MATRIX, _MATRIX, _FLOATS, _COUNTS, _COUNTS, _FLOATS, _FLOATS, _MATRIX, _MATRIX, _ROOM, _ROOM, _ROOM, _ROOM),
    *(types.Array(types.float64, 1, "C"), types.Array(types.float32, 1, "C")),
    *(types.UniTuple(types.float64, 2), types.UniTuple(types.float64, 2), types.boolean, types.boolean),
)
def _write(
    E: Any, H: Any, offsets: Any, first: Any, second: Any, centres: Any, amounts: Any, directions: Any, tail: Any,
    out: Any, u: Any, a: Any, y: Any, squares: Any, units: Any, rounding: Any, bounds: Any,
    normalise: bool, streamed: bool,
) -> bool:  # fmt: skip
    n = E.shape[0]
    may_refuse = False
    for start in range(0, n, _ROWS_AT_ONCE):
        r = (start, min(start + 1, n - 1), min(start + 2, n - 1), min(start + 3, n - 1))
        for row in range(_ROWS_AT_ONCE):
            square = squared_length(E, r[row], r[row] + _ROWS_AT_ONCE)
            may_refuse |= not bounds[0] < square < bounds[1]
            units[row] = np.float32(1.0 / np.sqrt(square)) if normalise else np.float32(1.0)
        for g in range(0, H.shape[0], PLANES_AT_ONCE):
            _project(E, r, H, g, u)
        _amounts(u, units, offsets, first, second, centres, amounts, a)
        _mix(E, r, units, a, directions, tail, y, squares)
        for row in range(min(_ROWS_AT_ONCE, n - start)):
            _emit(y, row, out, start + row, 1.0 / np.sqrt(max(squares[row], NOTHING_LEFT)), rounding, streamed)
    return may_refuse


def write_graded(plan: GradedPlan, rows: Floats, out: Floats, normalise: bool) -> bool:
    """Mark ``rows`` into ``out`` and say whether any row might have to be refused."""
    t = plan.tables
    streamed = out.nbytes >= STREAM_BYTES and not np.may_share_memory(rows, out)
    room = [np.empty((_ROWS_AT_ONCE, size), dtype=np.float32) for size in (len(t.planes), len(t.first), plan.width)]
    carriers = (t.offsets, t.first, t.second, t.centres, t.amounts, t.directions, t.tail)
    squares, units = np.empty(_ROWS_AT_ONCE), np.empty(_ROWS_AT_ONCE, dtype=np.float32)
    bounds = certain_squares(plan, normalise)
    found = _write(rows, t.planes, *carriers, out, *room, squares, units, t.rounding, bounds, normalise, streamed)
    return bool(found)
