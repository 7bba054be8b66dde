"""The published mark compiled: one read and one write of the matrix, and all between them in cache. Needs numba.

For every row e, in three passes over numbers that the first pass has brought into cache:

1. H_i . e and |e|^2, float32: which region, which target, is the row fit to be marked;
2. y = (1 - lambda) e + lambda w_r in float32, and |y|^2 in float64 (eq. 3);
3. y / |y|, rounded once.

Pass 3 divides by the length of y as float32 holds it, so a served row is the normalised form of some float32 vector
whether it carries a mark or not, and its own length is off by the rounding of pass 3 alone. On the float32 grid pass 3
needs no float64: with s = 1/|y| split into s_hi + s_lo, fma(s_hi, y, s_lo y) is y s rounded once. The coarse number
formats are in :mod:`regionmarker.marking.numba_coarse`.

Speed is bandwidth: rows go two by two so that H is read half as often, each pass prefetches its part of the next two,
and large outputs bypass the cache. The vectors are spelled out in :mod:`regionmarker.marking.simd`: what numba makes of
plain loops is slower, and a spelled-out sum has one order, whatever the batch. Nothing branches on marks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from regionmarker.marking import simd
from regionmarker.marking.compiled import compiled, given, inner, served, squared_length, types
from regionmarker.marking.simd import LINE, WIDTH, load, muladd, no_doubles, no_floats, prefetch, total
from regionmarker.marks.plan import NORMALS_AT_ONCE, NOTHING_LEFT

AHEAD = 2  # rows: what is prefetched is the next pair

_ROWS, _NUMBERS, _TABLE = given(types.float32, 2), given(types.int64, 1), given(types.float32, 2)
_FLAG, _NUMBER = types.boolean, types.float64


@inner
def _project(E: Any, r: int, s: int, H: Any, g: int) -> Any:
    """Return four projections and the squared length of row r, and the same of row s, in float32."""
    width = E.shape[1]
    whole = width - width % WIDTH
    a0 = a1 = a2 = a3 = a4 = b0 = b1 = b2 = b3 = b4 = no_floats()
    for j in range(0, whole, WIDTH):
        if j & (4 * LINE - 1) == 0:
            prefetch(E, r + AHEAD, j >> 2)
            prefetch(E, s + AHEAD, j >> 2)
        x, z = load(E, r, j), load(E, s, j)
        h0, h1, h2, h3 = load(H, g, j), load(H, g + 1, j), load(H, g + 2, j), load(H, g + 3, j)
        a0, b0 = muladd(x, h0, a0), muladd(z, h0, b0)
        a1, b1 = muladd(x, h1, a1), muladd(z, h1, b1)
        a2, b2 = muladd(x, h2, a2), muladd(z, h2, b2)
        a3, b3 = muladd(x, h3, a3), muladd(z, h3, b3)
        a4, b4 = muladd(x, x, a4), muladd(z, z, b4)
    p = (total(a0), total(a1), total(a2), total(a3), total(a4))
    q = (total(b0), total(b1), total(b2), total(b3), total(b4))
    for j in range(whole, width):
        p = _project_column(E[r, j], H, g, j, p)
        q = _project_column(E[s, j], H, g, j, q)
    return p, q


@inner
def _project_column(x: Any, H: Any, g: int, j: int, p: Any) -> Any:
    return (
        muladd(x, H[g, j], p[0]),
        muladd(x, H[g + 1, j], p[1]),
        muladd(x, H[g + 2, j], p[2]),
        muladd(x, H[g + 3, j], p[3]),
        muladd(x, x, p[4]),
    )


@inner
def _bits(p: Any, thresholds: Any, g: int, unit: float) -> Any:
    """Return four bits of a region number: 1[H_i . e - t_i > 0] << i."""
    return (
        ((p[0] * unit > thresholds[g]) << g)
        | ((p[1] * unit > thresholds[g + 1]) << (g + 1))
        | ((p[2] * unit > thresholds[g + 2]) << (g + 2))
        | ((p[3] * unit > thresholds[g + 3]) << (g + 3))
    )


@inner
def locate(E: Any, r: int, s: int, H: Any, thresholds: Any, normalise: bool) -> Any:
    """Return |e|^2 and the region of row r, and of row s."""
    p, q = _project(E, r, s, H, 0)
    square_r, square_s = np.float64(p[4]), np.float64(q[4])
    if normalise:
        square_r, square_s = squared_length(E, r, r + AHEAD), squared_length(E, s, s + AHEAD)
    unit_r = 1.0 / np.sqrt(square_r) if normalise else 1.0
    unit_s = 1.0 / np.sqrt(square_s) if normalise else 1.0
    region_r, region_s = _bits(p, thresholds, 0, unit_r), _bits(q, thresholds, 0, unit_s)
    for g in range(NORMALS_AT_ONCE, H.shape[0], NORMALS_AT_ONCE):
        p, q = _project(E, r, s, H, g)
        region_r |= _bits(p, thresholds, g, unit_r)
        region_s |= _bits(q, thresholds, g, unit_s)
    return square_r, region_r, square_s, region_s


@inner
def _mixed_square(E: Any, r: int, keep: Any, target_part: Any, target: int) -> Any:
    """Return |y|^2 in float64 of y = (1 - lambda) e + lambda w_r in float32."""
    width = E.shape[1]
    whole = width - width % (2 * WIDTH)
    a = b = c = d = no_doubles()
    for j in range(0, whole, 2 * WIDTH):
        if j & (4 * LINE - 1) == 0:
            prefetch(E, r + AHEAD, (width + j) >> 2)
        y = muladd(keep, load(E, r, j), load(target_part, target, j))
        z = muladd(keep, load(E, r, j + WIDTH), load(target_part, target, j + WIDTH))
        a, b = simd.add_low_squares(a, y), simd.add_high_squares(b, y)
        c, d = simd.add_low_squares(c, z), simd.add_high_squares(d, z)
    square = (total(a) + total(b)) + (total(c) + total(d))
    for j in range(whole, width):
        y = np.float64(muladd(keep, E[r, j], target_part[target, j]))
        square += y * y
    return square


@inner
def _emit(E: Any, r: int, keep: Any, target_part: Any, target: int, out: Any, scale: float, streamed: bool) -> None:
    """Write y / |y|. The columns before the first whole cache line and after the last whole vector go one by one."""
    width = E.shape[1]
    head = min(simd.columns_to_line(out, r), width) if streamed else 0
    tail = width - (width - head) % WIDTH
    for j in range(head):
        out[r, j] = served(E[r, j], keep, target_part[target, j], scale)
    if streamed:
        for j in range(head, tail, WIDTH):
            if (j - head) & (2 * LINE - 1) == 0:
                prefetch(E, r + AHEAD, (width + j) >> 1)
            simd.stream(served(load(E, r, j), keep, load(target_part, target, j), scale), out, r, j)
    else:
        for j in range(0, tail, WIDTH):
            if j & (2 * LINE - 1) == 0:
                prefetch(E, r + AHEAD, (width + j) >> 1)
            simd.store(served(load(E, r, j), keep, load(target_part, target, j), scale), out, r, j)
    for j in range(tail, width):
        out[r, j] = served(E[r, j], keep, target_part[target, j], scale)


@inner
def _mark_row(
    E: Any, r: int, square: float, target: int, target_part: Any, own_part: Any, out: Any,
    normalise: bool, streamed: bool,
) -> None:  # fmt: skip
    """Do passes 2 and 3 on row r."""
    keep = np.float32(own_part[target] / np.sqrt(square)) if normalise else own_part[target]
    mixed = _mixed_square(E, r, keep, target_part, target)
    if mixed < NOTHING_LEFT:  # e = -w at lambda = 1/2: the target is as good a direction as any
        keep = np.float32(0.0)
        mixed = _mixed_square(E, r, keep, target_part, target)
    _emit(E, r, keep, target_part, target, out, 1.0 / np.sqrt(mixed), streamed)


@compiled(
    *(_ROWS, _NUMBERS, _TABLE, given(types.float64, 1), _NUMBERS, _TABLE, given(types.float32, 1)),
    *(types.Array(types.float32, 2, "C"), types.UniTuple(_NUMBER, 2), _FLAG, _FLAG),
)
def write_regions(
    E: Any, target_of_row: Any, H: Any, thresholds: Any, target_of_region: Any, target_part: Any, own_part: Any,
    out: Any, limits: Any, normalise: bool, streamed: bool,
) -> bool:  # fmt: skip
    """Mark E into ``out`` on the float32 grid and say whether any row might have to be refused."""
    n = E.shape[0]
    given = target_of_row.shape[0] > 0
    may_refuse = False
    for r in range(0, n, 2):
        s = min(r + 1, n - 1)
        square_r, region_r, square_s, region_s = locate(E, r, s, H, thresholds, normalise)
        may_refuse |= not (limits[0] < square_r < limits[1] and limits[0] < square_s < limits[1])
        target_r = target_of_row[r] if given else target_of_region[region_r]
        target_s = target_of_row[s] if given else target_of_region[region_s]
        _mark_row(E, r, square_r, target_r, target_part, own_part, out, normalise, streamed)
        if s > r:
            _mark_row(E, s, square_s, target_s, target_part, own_part, out, normalise, streamed)
    return may_refuse


@compiled(_ROWS, types.UniTuple(_NUMBER, 2))
def any_doubtful(E: Any, limits: Any) -> bool:
    """Say whether the squared length of any row is not certainly good."""
    found = False
    for r in range(E.shape[0]):
        found |= not limits[0] < squared_length(E, r, r + AHEAD) < limits[1]
    return found


@compiled(_ROWS, _TABLE, given(types.float64, 1), types.Array(types.int64, 1, "C"), _FLAG)
def find_regions(E: Any, H: Any, thresholds: Any, found: Any, normalise: bool) -> None:
    """Write the region number of every row to ``found``."""
    n = E.shape[0]
    for r in range(0, n, 2):
        s = min(r + 1, n - 1)
        _, found[r], _, found[s] = locate(E, r, s, H, thresholds, normalise)
