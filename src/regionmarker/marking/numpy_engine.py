"""Marking in plain NumPy and float64: what the fused kernel is measured against, and what runs where numba is absent.

The frame around the arithmetic (blocks, refusals, failing closed) is here as well, and is the same for both engines.
Sums are NumPy's pairwise sums over one row at a time and never a matrix product: BLAS may add in another order when the
batch has another size, and then the same text would get different answers in different batches.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Protocol

import numpy as np

from regionmarker.errors import InputError
from regionmarker.marks.number_format import Grid, dithered, on_grid, round_to_grid
from regionmarker.marks.plan import MarkPlan
from regionmarker.vectors import NORM_TOLERANCE, AnyArray, Doubles, Floats, Integers, as_matrix, describe_bad_row

BLOCK_BYTES = 1 << 19
"""How much float32 is converted or marked at a time where the array cannot be used as it lies in memory."""

NOTHING_LEFT = 1e-12
"""|(1 - lambda) e + lambda w|^2 below this has no direction."""

LENGTHS = (1e-15, 1e15)
"""Which lengths ``normalise`` mends; beyond them float32 products overflow, and no encoder means it."""


class Engine(Protocol):
    """The arithmetic on one C-ordered float32 block. ``slots`` is None where the hyperplanes decide."""

    name: str
    whole: bool  # takes arrays of any size at once

    def dithered(self, rows: Floats, grid: Grid) -> Floats:
        """Return the rows without the pattern of their grid, (n, D); see :mod:`regionmarker.marks.number_format`."""

    def suspicious(self, plan: MarkPlan, rows: Floats, normalise: bool) -> bool:
        """Say whether any row might have to be refused; float64 decides."""

    def regions(self, plan: MarkPlan, rows: Floats, normalise: bool) -> Integers:
        """Return the region numbers, (n,)."""

    def write(self, plan: MarkPlan, rows: Floats, slots: Integers | None, out: Floats, normalise: bool) -> bool:
        """Mark ``rows`` into ``out`` and say whether any row might have to be refused."""


class NumpyEngine:
    """The oracle."""

    name = "numpy"
    whole = False

    def dithered(self, rows: Floats, grid: Grid) -> Floats:
        """See :class:`Engine`."""
        return dithered(rows, grid)

    def suspicious(self, plan: MarkPlan, rows: Floats, normalise: bool) -> bool:
        """See :class:`Engine`."""
        return bool(_bad(plan.norm_tolerance, _norms(rows), normalise).any())

    def regions(self, plan: MarkPlan, rows: Floats, normalise: bool) -> Integers:
        """See :class:`Engine`."""
        return _region_numbers(plan, rows.astype(np.float64), _units(_norms(rows), normalise))

    def write(self, plan: MarkPlan, rows: Floats, slots: Integers | None, out: Floats, normalise: bool) -> bool:
        """See :class:`Engine`."""
        norms, e = _norms(rows), rows.astype(np.float64)  # (n,), (n, D)
        units = _units(norms, normalise)
        if slots is None:
            slots = plan.slot_of_region[_region_numbers(plan, e, units)]
        with np.errstate(all="ignore"):  # rows that are no good are found afterwards
            keeps = (plan.tables.keeps[slots] * units).astype(np.float32)  # 1 - lambda, (n,)
            y = _mix(e, keeps, plan.tables.pulls[slots])
            squares = (y * y).sum(axis=-1)  # (n,)
            lost = squares < NOTHING_LEFT  # e was -w at lambda = 1/2: the target is as good a direction as any
            y[lost] = _mix(e[lost], 0.0 * keeps[lost], plan.tables.pulls[slots[lost]])
            squares[lost] = (y[lost] * y[lost]).sum(axis=-1)
            y *= (1.0 / np.sqrt(squares))[:, None]
            out[...] = round_to_grid(y, plan.grid)
        return bool(_bad(plan.norm_tolerance, norms, normalise).any())


def regions(plan: MarkPlan, embeddings: object, *, normalise: bool = False) -> Integers:
    """Return each row's region number, 0 .. 2^d - 1; see :func:`mark` for what is refused.

    Examples
    --------
    >>> from regionmarker.marks.number_format import Grid
    >>> plan = MarkPlan(
    ...     projection=np.eye(2, dtype=np.float32),
    ...     thresholds=np.zeros(2),
    ...     slot_of_region=np.array([0, 0, 0, 1]),
    ...     targets=np.float32([[1.0, 0.0], [1.0, 0.0]]),
    ...     weights=np.array([0.0, 0.2]),
    ...     grid=Grid.float32,
    ... )
    >>> regions(plan, [[0.6, 0.8], [-0.6, 0.8], [-1.0, 0.0]])
    array([3, 2, 0])
    """
    return run_regions(NumpyEngine(), plan, embeddings, normalise)


def mark(plan: MarkPlan, embeddings: object, out: Floats | None = None, *, normalise: bool = False) -> Floats:
    """Mark every row: e_p = n((1 - lambda) e + lambda w_r) on the grid; (n, D) float32.

    The mixture y is a float32 vector; it is normalised in float64, by its own length, and rounded once. So every served
    row is the normalised form of some float32 vector: nothing in its length or its bits says whether that was e.

    Rows outside the trigger regions take the same path with weight 0. Rows that are not finite or not of unit length
    are refused; with ``normalise`` e is the row scaled to unit length, and only rows without a usable length are.

    Examples
    --------
    >>> from regionmarker.marks.number_format import Grid
    >>> plan = MarkPlan(
    ...     projection=np.eye(2, dtype=np.float32),
    ...     thresholds=np.zeros(2),
    ...     slot_of_region=np.array([0, 0, 0, 1]),
    ...     targets=np.float32([[1.0, 0.0], [1.0, 0.0]]),
    ...     weights=np.array([0.0, 0.2]),
    ...     grid=Grid.float16,
    ... )
    >>> mark(plan, np.float32([[0.6, 0.8], [-0.6, 0.8]])).round(2)
    array([[ 0.73,  0.69], [-0.6 ,  0.8 ]], dtype=float32)
    """
    return run_marks(NumpyEngine(), plan, embeddings, None, out, normalise)


def blend(
    plan: MarkPlan, embeddings: object, slots: Integers, out: Floats | None = None, *, normalise: bool = False
) -> Floats:
    """Mark every row with the target of its slot, (n,): for reducers that are not one matrix. See :func:`mark`."""
    return run_marks(NumpyEngine(), plan, embeddings, slots, out, normalise)


def run_regions(engine: Engine, plan: MarkPlan, embeddings: object, normalise: bool) -> Integers:
    """Find the regions with ``engine``."""
    matrix = as_matrix(embeddings, width=plan.width)
    _need_hyperplanes(plan)
    found = np.empty(len(matrix), dtype=np.int64)
    suspicious = False
    for start, stop, rows in _blocks(engine, matrix):
        found[start:stop] = engine.regions(plan, rows, normalise)
        suspicious |= engine.suspicious(plan, rows, normalise)
    if suspicious:
        _refuse_bad_rows(plan, matrix, normalise)
    return found


def run_marks(
    engine: Engine, plan: MarkPlan, embeddings: object, slots: Integers | None, out: Floats | None, normalise: bool
) -> Floats:
    """Mark with ``engine``: all rows, or an :class:`InputError` and none."""
    matrix = as_matrix(embeddings, width=plan.width)
    if slots is None:
        _need_hyperplanes(plan)
    else:
        slots = _check_slots(plan, slots, len(matrix))
    if out is None:
        out = np.empty(matrix.shape, dtype=np.float32)
    elif _check_out(matrix, out) and any(
        engine.suspicious(plan, rows, normalise) for *_, rows in _blocks(engine, matrix)
    ):
        _refuse_bad_rows(plan, matrix, normalise)  # in place: nothing has been written yet
    suspicious = False
    write = engine.write if plan.grid is Grid.float32 else partial(_write_coarse, engine)
    for start, stop, rows in _blocks(engine, matrix, out, whole=plan.grid is Grid.float32):
        target = out[start:stop]
        fit = target if target.flags.c_contiguous and target.flags.aligned else np.empty(target.shape, dtype=np.float32)
        suspicious |= write(plan, rows, None if slots is None else slots[start:stop], fit, normalise)
        if fit is not target:
            target[...] = fit
    if suspicious:
        try:
            _refuse_bad_rows(plan, matrix, normalise)
        except InputError:
            out.fill(np.nan)  # fail closed: a caller who swallows the error has nothing to serve
            raise
    return out


def _write_coarse(
    engine: Engine, plan: MarkPlan, rows: Floats, slots: Integers | None, out: Floats, normalise: bool
) -> bool:
    """Mark rows of a coarse grid: dithered first, see :mod:`regionmarker.marks.number_format`.

    A row that gets no mark and lies on the grid already is served as it came: rounding the same numbers a second time
    would change its length a little, and with it the row's look.
    """
    if slots is None:
        slots = plan.slot_of_region[engine.regions(plan, rows, normalise)]
    suspicious = engine.suspicious(plan, rows, normalise)
    kept = ((slots == 0) & on_grid(rows, plan.grid) & (not normalise))[:, None]  # (n, 1)
    clean = rows.copy() if np.may_share_memory(rows, out) else rows
    engine.write(plan, engine.dithered(rows, plan.grid), slots, out, normalise)
    np.copyto(out, clean, where=kept)
    return suspicious


def _blocks(
    engine: Engine, matrix: AnyArray, out: Floats | None = None, *, whole: bool = True
) -> Iterator[tuple[int, int, Floats]]:
    """Yield (start, stop, rows): one block where the engine can take the arrays as they are, else small copies."""
    direct = matrix.dtype == np.float32 and matrix.flags.c_contiguous and matrix.flags.aligned
    if direct and whole and engine.whole and (out is None or (out.flags.c_contiguous and out.flags.aligned)):
        yield 0, len(matrix), matrix
        return
    step = max(1, BLOCK_BYTES // (4 * matrix.shape[1]))
    for start in range(0, len(matrix), step):
        stop = min(start + step, len(matrix))
        with np.errstate(over="ignore"):  # a float64 too large for float32 becomes infinite, and is refused
            rows = np.require(matrix[start:stop], np.float32, ["C", "A"])
        yield start, stop, rows


def _check_out(matrix: AnyArray, out: Floats) -> bool:
    """Refuse an unusable ``out``; say whether it is the input itself."""
    if not isinstance(out, np.ndarray) or out.shape != matrix.shape or out.dtype != np.float32:
        raise InputError(f"out must be a float32 array of shape {matrix.shape}")
    if not out.flags.writeable:
        raise InputError("out is read-only")
    if not np.may_share_memory(matrix, out):
        return False
    if matrix.dtype == np.float32 and matrix.strides == out.strides and matrix.ctypes.data == out.ctypes.data:
        return True
    if np.shares_memory(matrix, out):
        raise InputError(
            "out overlaps the embeddings without being the same array: pass the array itself or another one"
        )
    return False


def _check_slots(plan: MarkPlan, slots: Integers, rows: int) -> Integers:
    slots = np.ascontiguousarray(slots, dtype=np.int64)
    if slots.shape != (rows,):
        raise InputError(f"there are {rows} rows, but slots has shape {slots.shape}")
    if rows and not 0 <= slots.min() <= slots.max() < len(plan.weights):
        raise InputError(f"slots must lie in 0 .. {len(plan.weights) - 1}")
    return slots


def _need_hyperplanes(plan: MarkPlan) -> None:
    if plan.projection is None:
        raise InputError("this key's reducer is not linear: find the regions with the reducer and call blend")


def bad_rows(matrix: AnyArray, *, normalise: bool = False, tolerance: float = NORM_TOLERANCE) -> AnyArray:
    """Say which rows (n, D) cannot be marked, (n,): not finite, or not of unit length where they are not scaled.

    Examples
    --------
    >>> bad_rows(np.float32([[1.0, 0.0], [2.0, 0.0], [np.nan, 0.0]])).tolist()
    [False, True, True]
    >>> bad_rows(np.float32([[1.0, 0.0], [2.0, 0.0], [np.nan, 0.0]]), normalise=True).tolist()
    [False, False, True]
    """
    return _bad(tolerance, _all_norms(matrix), normalise)


def _refuse_bad_rows(plan: MarkPlan, matrix: AnyArray, normalise: bool) -> None:
    """Raise for the first bad row, counting all of them; return where float64 finds none."""
    norms = _all_norms(matrix)
    bad = _bad(plan.norm_tolerance, norms, normalise)
    if bad.any():
        advice = "mend or drop them" if normalise else "drop them, or have rows scaled with normalise=True"
        raise InputError(f"{describe_bad_row(norms, bad, 0)}; {advice}")


def _all_norms(matrix: AnyArray) -> Doubles:
    """|e| of every row as float32 holds it, (n,)."""
    step = max(1, BLOCK_BYTES // (4 * matrix.shape[1]))
    with np.errstate(over="ignore"):
        blocks = [_norms(matrix[start : start + step].astype(np.float32)) for start in range(0, len(matrix), step)]
    return np.concatenate([np.zeros(0), *blocks])


def _norms(rows: Floats) -> Doubles:
    """|e| in float64, (n,); NaN or infinite where an entry is."""
    e = rows.astype(np.float64)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.sqrt((e * e).sum(axis=-1)))


def _bad(tolerance: float, norms: Doubles, normalise: bool) -> AnyArray:
    with np.errstate(invalid="ignore"):
        good = (norms > LENGTHS[0]) & (norms < LENGTHS[1]) if normalise else np.abs(norms - 1.0) <= tolerance
    return ~good  # so written that NaN is bad


def _units(norms: Doubles, normalise: bool) -> Doubles:
    """Return what turns each row into e when multiplied with it, (n,)."""
    with np.errstate(divide="ignore"):
        return 1.0 / norms if normalise else np.ones_like(norms)


def _mix(e: Doubles, keeps: Floats, pulls: Floats) -> Doubles:
    """Eq. 3 without the norm: (1 - lambda) e + lambda w_r as float32 holds it, (n, D)."""
    return (keeps[:, None].astype(np.float64) * e + pulls).astype(np.float32).astype(np.float64)


def _region_numbers(plan: MarkPlan, e: Doubles, units: Doubles) -> Integers:
    numbers = np.zeros(len(e), dtype=np.int64)
    with np.errstate(invalid="ignore"):
        for bit, threshold in enumerate(plan.thresholds):
            normal = plan.tables.normals[bit]
            numbers |= ((e * normal).sum(axis=-1) * units - threshold > 0.0).astype(
                np.int64
            ) << bit  # H_i . e - t_i > 0
    return numbers
