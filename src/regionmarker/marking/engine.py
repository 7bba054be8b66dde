"""Marking at the speed of memory: the fused kernel where numba is installed, the oracle where it is not."""

from __future__ import annotations

from functools import cache

from regionmarker.marking.numpy_engine import Engine, NumpyEngine, run_marks, run_regions
from regionmarker.marks.plan import MarkPlan
from regionmarker.vectors import Floats, Integers


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


def engine_name() -> str:
    """Name the engine that marks: ``numba`` or ``numpy``.

    Examples
    --------
    >>> engine_name() in {"numba", "numpy"}
    True
    """
    return engine().name


def regions(plan: MarkPlan, embeddings: object, *, normalise: bool = False) -> Integers:
    """Return each row's region number; see :func:`regionmarker.marking.numpy_engine.regions`.

    The projections are float32 here: rows within 1e-5 of a hyperplane may fall on its other side.
    """
    return run_regions(engine(), plan, embeddings, normalise)


def mark(plan: MarkPlan, embeddings: object, out: Floats | None = None, *, normalise: bool = False) -> Floats:
    """Mark every row; see :func:`regionmarker.marking.numpy_engine.mark`.

    Parameters
    ----------
    plan : MarkPlan
        What to mark with.
    embeddings : array of shape (n, D)
        float16, float32 or float64, in any memory order.
    out : float32 array of shape (n, D), optional
        Where to write; may be ``embeddings`` itself. On an error it holds NaN, or, in place, what it held before.
    normalise : bool
        Scale rows to unit length first instead of refusing them.

    Examples
    --------
    >>> import numpy as np
    >>> from regionmarker.marks.number_format import Grid
    >>> plan = MarkPlan(
    ...     projection=np.eye(2, dtype=np.float32),
    ...     thresholds=np.zeros(2),
    ...     slot_of_region=np.array([0, 0, 0, 1]),
    ...     targets=np.float32([[1.0, 0.0], [1.0, 0.0]]),
    ...     weights=np.array([0.0, 0.2]),
    ...     grid=Grid.float32,
    ... )
    >>> mark(plan, np.float32([[0.6, 0.8], [-0.6, 0.8]])).round(2)
    array([[ 0.73,  0.69], [-0.6 ,  0.8 ]], dtype=float32)
    """
    return run_marks(engine(), plan, embeddings, None, out, normalise)


def blend(
    plan: MarkPlan, embeddings: object, slots: Integers, out: Floats | None = None, *, normalise: bool = False
) -> Floats:
    """Mark every row with the target of its slot, (n,): for reducers that are not one matrix. See :func:`mark`."""
    return run_marks(engine(), plan, embeddings, slots, out, normalise)
