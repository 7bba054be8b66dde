"""The published mark on the float16 and bfloat16 grids, compiled: dither, mark, round, in one go. Needs numba.

As in :mod:`regionmarker.marking.numba_regions`, with two differences. What is mixed is the row with its dither
(:mod:`regionmarker.marks.number_format`), and y waits in a buffer; the regions are those of the row as it came. And a
row that gets no mark and lies on its lattice already is served as it came: rounding the same numbers again would
change its length a little, and with it the row's look. Such a row takes the same steps, and so the same time, as any.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from regionmarker.marking import simd
from regionmarker.marking.compiled import compiled, given, inner, squared_length, types
from regionmarker.marking.dither import distance, dither_row, lattice, moved, rounded
from regionmarker.marking.numba_regions import AHEAD, locate
from regionmarker.marking.simd import WIDE, chosen, load_wide, muladd, no_wide_doubles, no_wide_floats, prefetch, total
from regionmarker.marks.plan import NOTHING_LEFT, MarkPlan
from regionmarker.vectors import Floats, Integers


@inner
def _mix(E: Any, r: int, X: Any, keep: Any, target_part: Any, target: int, grid: Any) -> Any:
    """Write y = (1 - lambda) e + lambda w_r to X[0], e with its dither; return |y|^2, and whether e is on its lattice.

    The lattice has no end here: that is for rows of unit length.
    """
    least, unit, magic = grid
    width = E.shape[1]
    whole = width - width % WIDE
    off, low, high = no_wide_floats(), no_wide_doubles(), no_wide_doubles()
    for j in range(0, whole, WIDE):
        prefetch(E, r + AHEAD, j)
        x = load_wide(E, r, j)
        y = muladd(keep, moved(x, j, least, unit), load_wide(target_part, target, j))
        off = muladd(np.float32(1.0), distance(x, least, magic), off)
        low, high = simd.add_low_squares(low, y), simd.add_high_squares(high, y)
        simd.store(y, X, 0, j)
    square, away = total(low) + total(high), total(off)
    for j in range(whole, width):
        y = muladd(keep, moved(E[r, j], j, least, unit), target_part[target, j])
        away += distance(E[r, j], least, magic)
        square += np.float64(y) * np.float64(y)
        simd.store(y, X, 0, j)
    return square, away == np.float32(0.0)


@inner
def _chosen(y: Any, e: Any, as_it_came: bool, scale: float, grid: Any) -> Any:
    """Return e, or y / |y| rounded once, for one number or one vector of them."""
    return chosen(as_it_came, e, rounded(y, scale, grid))


@inner
def _emit(X: Any, E: Any, r: int, as_it_came: bool, out: Any, scale: float, grid: Any, streamed: bool) -> None:
    """Write row r: columns before the first whole cache line and after the last whole vector go one by one."""
    width = E.shape[1]
    head = min(simd.columns_to_line(out, r), width) if streamed else 0
    tail = width - (width - head) % WIDE
    for j in range(head):
        out[r, j] = _chosen(X[0, j], E[r, j], as_it_came, scale, grid)
    for j in range(head, tail, WIDE):
        row = _chosen(load_wide(X, 0, j), load_wide(E, r, j), as_it_came, scale, grid)
        if streamed:
            simd.stream(row, out, r, j)
        else:
            simd.store(row, out, r, j)
    for j in range(tail, width):
        out[r, j] = _chosen(X[0, j], E[r, j], as_it_came, scale, grid)


_MATRIX, _FLOATS, _NUMBERS = given(types.float32, 2), given(types.float32, 1), given(types.int64, 1)


@compiled(
    *(_MATRIX, _NUMBERS, _MATRIX, given(types.float64, 1), _NUMBERS, _MATRIX, _FLOATS),
    *(types.Array(types.float32, 2, "C"), _MATRIX, types.UniTuple(types.float32, 3), types.UniTuple(types.float64, 2)),
    *(types.boolean, types.boolean),
)
def _write(
    E: Any, target_of_row: Any, H: Any, thresholds: Any, target_of_region: Any, target_part: Any, own_part: Any,
    out: Any, X: Any, grid: Any, limits: Any, normalise: bool, streamed: bool,
) -> bool:  # fmt: skip
    n = E.shape[0]
    given = target_of_row.shape[0] > 0
    may_refuse = False
    for start in range(0, n, 2):
        end = min(start + 1, n - 1)
        square_r, region_r, square_s, region_s = locate(E, start, end, H, thresholds, normalise)
        may_refuse |= not (limits[0] < square_r < limits[1] and limits[0] < square_s < limits[1])
        for r in range(start, end + 1):
            region = region_r if r == start else region_s
            target = target_of_row[r] if given else target_of_region[region]
            keep = own_part[target]
            if normalise:
                dither_row(E, r, X, 0, grid)
                keep = np.float32(keep / np.sqrt(squared_length(X, 0, 0)))
            square, on_grid = _mix(E, r, X, keep, target_part, target, grid)
            if square < NOTHING_LEFT:  # e = -w at lambda = 1/2: the target is as good a direction as any
                square, on_grid = _mix(E, r, X, np.float32(0.0), target_part, target, grid)
            as_it_came = on_grid and target == 0 and not normalise
            _emit(X, E, r, as_it_came, out, 1.0 / np.sqrt(square), grid, streamed)
    return may_refuse


def write_coarse(
    plan: MarkPlan,
    rows: Floats,
    target_of_row: Integers,
    out: Floats,
    limits: tuple[float, float],
    normalise: bool,
    streamed: bool,
) -> bool:
    """Mark ``rows`` into ``out`` and say whether any row might have to be refused; no targets: hyperplanes decide."""
    t, room = plan.tables, np.empty((1, plan.width), dtype=np.float32)
    tables = (t.normals, t.thresholds, t.target_of_region, t.target_part, t.own_part)
    grid = lattice(plan.number_format)
    return bool(_write(rows, target_of_row, *tables, out, room, grid, limits, normalise, streamed))
