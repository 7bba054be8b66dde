"""The graded mark compiled: a few rows at a time through all hyperplanes, then all carriers. Needs numba.

For six rows e, in four passes over numbers that stay in cache:

1. |e|^2, and on a coarse number format e with its dither;
2. H e, float32: tiles of hyperplanes times rows;
3. y = e + sum_j a_j d_j in float32, two vectors of columns at a time through all carriers, and |y|^2 in float64;
4. y / |y|, rounded once to the number format, as for the published mark.

Each row has sums of its own in one order, so that its result does not depend on its company. What bounds it is the
arithmetic, one product per column for every hyperplane and one for every carrier (:mod:`regionmarker.marking.tiles`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from regionmarker.marking import simd, tiles
from regionmarker.marking.compiled import STREAM_BYTES, compiled, given, inner, served, squared_length, types
from regionmarker.marking.dither import dither_row, lattice, rounded
from regionmarker.marking.simd import WIDE, load_wide, muladd, no_wide_doubles, no_wide_floats, total
from regionmarker.marks.number_format import NumberFormat
from regionmarker.marks.plan import CLIP, COLUMNS_AT_ONCE, NOTHING_LEFT, PLANES_AT_ONCE, GradedPlan, certain_squares
from regionmarker.vectors import Floats

_ROWS_AT_ONCE = 6
_PROJECTED, _PLANES, _MIXED = tiles.shape()
_project_rows, _project_row = tiles.project(_PROJECTED, _PLANES), tiles.project(1, PLANES_AT_ONCE)
_mix_rows, _mix_row = tiles.mix(_ROWS_AT_ONCE, _MIXED // WIDE), tiles.mix(1, COLUMNS_AT_ONCE // WIDE)


@inner
def _quick_square(E: Any, r: int) -> Any:
    """Return |e|^2 in float32: enough to see that a row is good, and infinite or NaN where it is not finite."""
    width = E.shape[1]
    whole = width - width % (2 * WIDE)
    a = b = no_wide_floats()
    for j in range(0, whole, 2 * WIDE):
        x, y = load_wide(E, r, j), load_wide(E, r, j + WIDE)
        a, b = muladd(x, x, a), muladd(y, y, b)
    square = total(a) + total(b)
    for j in range(whole, width):
        square = muladd(E[r, j], E[r, j], square)
    return np.float64(square)


@inner
def _project(X: Any, r: int, rows: int, H: Any, u: Any) -> None:
    """Write the projections of rows r .. on all hyperplanes into u (h + 1, 6)."""
    width = X.shape[1]
    if rows == 1:
        for g in range(0, H.shape[0], PLANES_AT_ONCE):
            _project_row(X, r, H, g, u, 0)
    else:
        for g in range(0, H.shape[0], _PLANES):
            for i in range(0, _ROWS_AT_ONCE, _PROJECTED):
                _project_rows(X, r + i, H, g, u, i)
    for j in range(width - width % WIDE, width):
        for g in range(H.shape[0]):
            for i in range(rows):
                u[g, i] = muladd(X[r + i, j], H[g, j], u[g, i])


@inner
def _amounts(u: Any, units: Any, rows: int, carriers: Any, a: Any) -> None:
    """Turn projections u (h + 1, 6) into what each carrier adds, a (J, 6). The last row of u is ones."""
    offsets, first, second, centres, amounts = carriers
    clip = np.float32(CLIP)
    for g in range(offsets.shape[0]):
        for i in range(rows):
            u[g, i] = u[g, i] * units[0, i] - offsets[g]
    for k in range(first.shape[0]):
        f, s = first[k], second[k]
        for i in range(rows):
            a[k, i] = (min(max(u[f, i] * u[s, i], -clip), clip) - centres[k]) * amounts[k]


@inner
def _mix(X: Any, r: int, rows: int, E: Any, ahead: int, directions: Any, tail: Any, room: Any) -> None:
    """Write y = e + sum_j a_j d_j of rows r .. (6, D), and the eight parts of |y|^2 (6, 8)."""
    _, a, y, squares, units = room
    width, count = X.shape[1], a.shape[0]
    whole = width - width % COLUMNS_AT_ONCE
    for i in range(rows):
        simd.store(no_wide_doubles(), squares, i, 0)
    block = 0
    for j in range(0, whole, COLUMNS_AT_ONCE):
        if rows == 1:
            _mix_row(X, r, E, ahead, j, directions, block, 0, units, a, y, squares)
        else:
            for part in range(0, COLUMNS_AT_ONCE, _MIXED):
                _mix_rows(X, r, E, ahead, j + part, directions, block, part, units, a, y, squares)
        block += count
    for i in range(rows):
        for j in range(whole, width):
            number = units[0, i] * X[r + i, j]
            for k in range(count):
                number = muladd(a[k, i], tail[k, j - whole], number)
            y[i, j] = number
            squares[i, 0] += np.float64(number) * np.float64(number)


@inner
def _served(y: Any, nothing: Any, scale: float, grid: Any, coarse: bool) -> Any:
    """Return y / |y|, rounded once to the number format, for one number or one vector of them."""
    if coarse:
        return rounded(y, scale, grid)
    return served(y, np.float32(1.0), nothing, scale)


@inner
def _emit(y: Any, i: int, out: Any, r: int, scale: float, grid: Any, coarse: bool, streamed: bool) -> None:
    """Write y / |y| of one row, past the cache or not."""
    width = y.shape[1]
    nothing = np.float32(0.0)
    head = min(simd.columns_to_line(out, r), width) if streamed else 0
    tail = width - (width - head) % WIDE
    for j in range(head):
        out[r, j] = _served(y[i, j], nothing, scale, grid, coarse)
    for j in range(head, tail, WIDE):
        row = _served(load_wide(y, i, j), no_wide_floats(), scale, grid, coarse)
        if streamed:
            simd.stream(row, out, r, j)
        else:
            simd.store(row, out, r, j)
    for j in range(tail, width):
        out[r, j] = _served(y[i, j], nothing, scale, grid, coarse)


@inner
def _prepare(E: Any, r: int, X: Any, i: int, grid: Any, bounds: Any, coarse: bool, normalise: bool) -> Any:
    """Do pass 1 for row r: return what makes it unit long, and whether it might have to be refused."""
    if coarse:
        quick = dither_row(E, r, X, i, grid)
        square = squared_length(X, i, i) if normalise else quick
        doubtful = not (bounds[0] < quick < bounds[1] and bounds[0] < square < bounds[1])
    else:
        square = squared_length(E, r, r + _ROWS_AT_ONCE) if normalise else _quick_square(E, r)
        doubtful = not bounds[0] < square < bounds[1]
    return np.float32(1.0 / np.sqrt(square)) if normalise else np.float32(1.0), doubtful


_MATRIX, _FLOATS, _COUNTS = given(types.float32, 2), given(types.float32, 1), given(types.int64, 1)
_ROOM = types.Array(types.float32, 2, "C")


@compiled(
    *(_MATRIX, _MATRIX, types.Tuple((_FLOATS, _COUNTS, _COUNTS, _FLOATS, _FLOATS)), _MATRIX, _MATRIX, _ROOM),
    *(types.Tuple((_ROOM, _ROOM, _ROOM, types.Array(types.float64, 2, "C"), _ROOM)), _MATRIX),
    *(types.UniTuple(types.float32, 3), types.UniTuple(types.float64, 2), types.boolean, types.boolean, types.boolean),
)
def _write(
    E: Any, H: Any, carriers: Any, directions: Any, tail: Any, out: Any, room: Any, X: Any, grid: Any, bounds: Any,
    coarse: bool, normalise: bool, streamed: bool,
) -> bool:  # fmt: skip
    u, a, y, squares, units = room
    n = E.shape[0]
    u[H.shape[0]] = np.float32(1.0)
    may_refuse = False
    start = 0
    while start < n:
        rows = _ROWS_AT_ONCE if start + _ROWS_AT_ONCE <= n else 1
        for i in range(rows):
            units[0, i], doubtful = _prepare(E, start + i, X, i, grid, bounds, coarse, normalise)
            may_refuse |= doubtful
        source, r = (X, 0) if coarse else (E, start)
        _project(source, r, rows, H, u)
        _amounts(u, units, rows, carriers, a)
        _mix(source, r, rows, E, start + rows, directions, tail, room)
        for i in range(rows):
            square = total(simd.load_doubles(squares, i, 0))
            _emit(y, i, out, start + i, 1.0 / np.sqrt(max(square, NOTHING_LEFT)), grid, coarse, streamed)
        start += rows
    return may_refuse


def write_graded(plan: GradedPlan, rows: Floats, out: Floats, normalise: bool) -> bool:
    """Mark ``rows`` into ``out`` and say whether any row might have to be refused."""
    t, coarse = plan.tables, plan.number_format is not NumberFormat.float32
    streamed = out.nbytes >= STREAM_BYTES and not np.may_share_memory(rows, out)
    at_once = min(len(rows), _ROWS_AT_ONCE)
    room = (
        np.empty((len(t.planes) + 1, _ROWS_AT_ONCE), dtype=np.float32),
        np.empty((len(t.first), _ROWS_AT_ONCE), dtype=np.float32),
        np.empty((at_once, plan.width), dtype=np.float32),
        np.empty((_ROWS_AT_ONCE, WIDE // 2)),
        np.empty((1, _ROWS_AT_ONCE), dtype=np.float32),
    )
    dithered = np.empty((at_once if coarse else 0, plan.width), dtype=np.float32)
    carriers = (t.offsets, t.first, t.second, t.centres, t.amounts)
    number_format = (lattice(plan.number_format), certain_squares(plan, normalise), coarse)
    return bool(
        _write(rows, t.planes, carriers, t.directions, t.tail, out, room, dithered, *number_format, normalise, streamed)
    )
