"""The compiled engine: which kernel marks which plan. Needs numba."""

from __future__ import annotations

import numpy as np

from regionmarker.marking.compiled import STREAM_BYTES
from regionmarker.marking.numba_regions import any_doubtful, find_regions, write_regions
from regionmarker.marks.number_format import NumberFormat
from regionmarker.marks.plan import GradedPlan, MarkPlan, certain_squares
from regionmarker.vectors import Floats, Integers

_NO_TARGETS = np.zeros(0, dtype=np.int64)


class NumbaEngine:
    """Fused kernels on one thread; see :class:`regionmarker.marking.engine.Engine`."""

    name = "numba"
    any_size = True

    def may_refuse(self, plan: MarkPlan | GradedPlan, rows: Floats, normalise: bool) -> bool:
        return bool(any_doubtful(rows, certain_squares(plan, normalise)))

    def regions(self, plan: MarkPlan, rows: Floats, normalise: bool) -> Integers:
        found = np.empty(len(rows), dtype=np.int64)
        find_regions(rows, plan.tables.normals, plan.tables.thresholds, found, normalise)
        return found

    def write(self, plan: MarkPlan, rows: Floats, target_of_row: Integers | None, out: Floats, normalise: bool) -> bool:
        t, limits = plan.tables, certain_squares(plan, normalise)
        streamed = out.nbytes >= STREAM_BYTES and not np.may_share_memory(rows, out)
        target_of_row = _NO_TARGETS if target_of_row is None else target_of_row
        tables = (t.normals, t.thresholds, t.target_of_region, t.target_part, t.own_part)
        if plan.number_format is NumberFormat.float32:
            return bool(write_regions(rows, target_of_row, *tables, out, limits, normalise, streamed))
        from regionmarker.marking.numba_coarse import write_coarse  # compiles when it is first needed

        return write_coarse(plan, rows, target_of_row, out, limits, normalise, streamed)

    def write_graded(self, plan: GradedPlan, rows: Floats, out: Floats, normalise: bool) -> bool:
        from regionmarker.marking.numba_graded import write_graded  # compiles when it is first needed

        return write_graded(plan, rows, out, normalise)
