"""Marking at the speed of memory: picks the engine, cuts blocks, refuses bad rows, fails closed.

The arithmetic is compiled where numba is installed and plain NumPy where it is not; all around it is the same for both.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from typing import NoReturn, Protocol

import numpy as np

from regionmarker.errors import InputError
from regionmarker.marking.numpy_engine import NumpyEngine, is_bad, row_norms
from regionmarker.marks.plan import GradedPlan, MarkPlan
from regionmarker.vectors import NORM_TOLERANCE, AnyArray, Doubles, Floats, Integers, as_matrix, describe_bad_row

BLOCK_BYTES = 1 << 19
"""How much float32 is converted or marked at a time where the array cannot be used as it lies in memory."""


class Engine(Protocol):
    """The arithmetic on one C-ordered float32 block. ``target_of_row`` is None where the hyperplanes decide."""

    name: str
    any_size: bool  # takes arrays of any size at once

    def may_refuse(self, plan: MarkPlan | GradedPlan, rows: Floats, normalise: bool) -> bool:
        """Say whether any row might have to be refused; float64 decides."""

    def regions(self, plan: MarkPlan, rows: Floats, normalise: bool) -> Integers:
        """Return the region numbers, (n,)."""

    def write(self, plan: MarkPlan, rows: Floats, target_of_row: Integers | None, out: Floats, normalise: bool) -> bool:
        """Mark ``rows`` into ``out`` and say whether any row might have to be refused.

        On a coarse number format what is mixed is the row with its dither, and a row that gets no mark and lies on its
        lattice is served as it came; see ``marks.number_format``. ``out`` may be ``rows``.
        """

    def write_graded(self, plan: GradedPlan, rows: Floats, out: Floats, normalise: bool) -> bool:
        """Do the same by the graded mark."""


@cache
def engine() -> Engine:
    """Return the fastest engine that this installation has; the first call imports and compiles it.

    Examples
    --------
    >>> engine().name in {"numba", "numpy"}
    True
    """
    try:
        from regionmarker.marking.numba_engine import NumbaEngine
    except ImportError:
        return NumpyEngine()
    return NumbaEngine()


def regions(plan: MarkPlan, embeddings: object, *, normalise: bool = False, using: Engine | None = None) -> Integers:
    """Return each row's region number, 0 .. 2^d - 1; see :func:`mark` for what is refused.

    Compiled projections are float32: rows within 1e-5 of a hyperplane may fall on its other side.
    """
    chosen = using or engine()
    matrix = as_matrix(embeddings, width=plan.width)
    _need_hyperplanes(plan)
    found = np.empty(len(matrix), dtype=np.int64)
    may_refuse = False
    for start, stop, rows in _blocks(chosen, matrix):
        found[start:stop] = chosen.regions(plan, rows, normalise)
        may_refuse |= chosen.may_refuse(plan, rows, normalise)
    if may_refuse:
        _refuse_bad_rows(plan, matrix, normalise)
    return found


def mark(
    plan: MarkPlan | GradedPlan,
    embeddings: object,
    out: Floats | None = None,
    *,
    normalise: bool = False,
    using: Engine | None = None,
) -> Floats:
    """Mark every row: e_p = n((1 - lambda) e + lambda w_r) in the key's number format; (n, D) float32.

    The mixture y is a float32 vector; it is normalised in float64, by its own length, and rounded once. So every served
    row is the normalised form of some float32 vector: nothing in its length or its bits says whether that was e.

    Rows outside the trigger regions take the same path with weight 0. Rows that are not finite or not of unit length
    are refused; with ``normalise`` e is the row scaled to unit length, and only rows without a usable length are.

    Parameters
    ----------
    plan : MarkPlan or GradedPlan
        What to mark with; eq. 3 for the published mark, the formula of ``marks.graded`` for the graded one.
    embeddings : array of shape (n, D)
        float16, float32 or float64, in any memory order.
    out : float32 array of shape (n, D), optional
        Where to write; may be ``embeddings`` itself. On an error it holds NaN, or, in place, what it held before.
    normalise : bool
        Scale rows to unit length first instead of refusing them.
    using : Engine, optional
        Whose arithmetic; the fastest by default.

    Examples
    --------
    >>> from regionmarker.marks.number_format import NumberFormat
    >>> plan = MarkPlan(
    ...     projection=np.eye(2, dtype=np.float32),
    ...     thresholds=np.zeros(2),
    ...     target_of_region=np.array([0, 0, 0, 1]),
    ...     targets=np.float32([[1.0, 0.0], [1.0, 0.0]]),
    ...     weights=np.array([0.0, 0.2]),
    ...     number_format=NumberFormat.float32,
    ... )
    >>> regions(plan, [[0.6, 0.8], [-0.6, 0.8], [-1.0, 0.0]])
    array([3, 2, 0])
    >>> mark(plan, np.float32([[0.6, 0.8], [-0.6, 0.8]])).round(2)
    array([[ 0.73,  0.69], [-0.6 ,  0.8 ]], dtype=float32)
    """
    if isinstance(plan, MarkPlan):
        _need_hyperplanes(plan)
    return _run(using or engine(), plan, embeddings, None, out, normalise)


def blend(
    plan: MarkPlan,
    embeddings: object,
    target_of_row: Integers,
    out: Floats | None = None,
    *,
    normalise: bool = False,
    using: Engine | None = None,
) -> Floats:
    """Mark every row with the target of its number, (n,): for reducers that are not one matrix. See :func:`mark`."""
    return _run(using or engine(), plan, embeddings, target_of_row, out, normalise)


def _run(
    engine: Engine,
    plan: MarkPlan | GradedPlan,
    embeddings: object,
    target_of_row: Integers | None,
    out: Floats | None,
    normalise: bool,
) -> Floats:
    """Mark with ``engine``: all rows, or an :class:`InputError` and none."""
    matrix = as_matrix(embeddings, width=plan.width)
    if isinstance(plan, MarkPlan) and target_of_row is not None:
        target_of_row = _check_targets(plan, target_of_row, len(matrix))
    if out is None:
        out = np.empty(matrix.shape, dtype=np.float32)
    elif _check_out(matrix, out) and any(
        engine.may_refuse(plan, rows, normalise) for *_, rows in _blocks(engine, matrix)
    ):
        _refuse_bad_rows(plan, matrix, normalise)  # in place: nothing has been written yet
    may_refuse = False
    for start, stop, rows in _blocks(engine, matrix, out):
        target = out[start:stop]
        fit = target if target.flags.c_contiguous and target.flags.aligned else np.empty(target.shape, dtype=np.float32)
        if isinstance(plan, GradedPlan):
            may_refuse |= engine.write_graded(plan, rows, fit, normalise)
        else:
            chosen = None if target_of_row is None else target_of_row[start:stop]
            may_refuse |= engine.write(plan, rows, chosen, fit, normalise)
        if fit is not target:
            target[...] = fit
    if may_refuse:
        try:
            _refuse_bad_rows(plan, matrix, normalise)
        except InputError:
            out.fill(np.nan)  # fail closed: a caller who swallows the error has nothing to serve
            raise
    return out


def _blocks(engine: Engine, matrix: AnyArray, out: Floats | None = None) -> Iterator[tuple[int, int, Floats]]:
    """Yield (start, stop, rows): one block where the engine can take the arrays as they are, else small copies."""
    direct = matrix.dtype == np.float32 and matrix.flags.c_contiguous and matrix.flags.aligned
    if direct and engine.any_size and (out is None or (out.flags.c_contiguous and out.flags.aligned)):
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


def _check_targets(plan: MarkPlan, target_of_row: Integers, rows: int) -> Integers:
    target_of_row = np.ascontiguousarray(target_of_row, dtype=np.int64)
    if target_of_row.shape != (rows,):
        raise InputError(f"there are {rows} rows, but target_of_row has shape {target_of_row.shape}")
    if rows and not 0 <= target_of_row.min() <= target_of_row.max() < len(plan.weights):
        raise InputError(f"target_of_row must lie in 0 .. {len(plan.weights) - 1}")
    return target_of_row


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
    return is_bad(tolerance, _all_norms(matrix), normalise)


def _refuse_bad_rows(plan: MarkPlan | GradedPlan, matrix: AnyArray, normalise: bool) -> None:
    """Raise for the first bad row, counting all of them; return where float64 finds none."""
    norms = _all_norms(matrix)
    bad = is_bad(plan.norm_tolerance, norms, normalise)
    if bad.any():
        refuse_rows(norms, bad, normalise)


def refuse_rows(norms: Doubles, bad: AnyArray, normalise: bool) -> NoReturn:
    """Raise for the first bad row (n,), saying how many there are and what to do."""
    advice = "mend or drop them" if normalise else "drop them, or have rows scaled with normalise=True"
    raise InputError(f"{describe_bad_row(norms, bad, 0)}; {advice}")


def _all_norms(matrix: AnyArray) -> Doubles:
    """|e| of every row as float32 holds it, (n,)."""
    step = max(1, BLOCK_BYTES // (4 * matrix.shape[1]))
    with np.errstate(over="ignore"):
        blocks = [row_norms(matrix[start : start + step].astype(np.float32)) for start in range(0, len(matrix), step)]
    return np.concatenate([np.zeros(0), *blocks])
