"""Marking in plain NumPy and float64: the yardstick of the compiled engine, and what runs where numba is absent.

Sums are NumPy's pairwise sums over one row at a time and never a matrix product: BLAS may add in another order when the
batch has another size, and then the same text would get different answers in different batches.
"""

from __future__ import annotations

import numpy as np

from regionmarker.marks.number_format import NumberFormat, dithered, in_format, round_to_format
from regionmarker.marks.plan import CLIP, LENGTHS, NOTHING_LEFT, GradedPlan, MarkPlan
from regionmarker.vectors import AnyArray, Doubles, Floats, Integers


class NumpyEngine:
    """The reference arithmetic; see :class:`regionmarker.marking.engine.Engine`."""

    name = "numpy"
    any_size = False

    def may_refuse(self, plan: MarkPlan | GradedPlan, rows: Floats, normalise: bool) -> bool:
        return bool(is_bad(plan.norm_tolerance, row_norms(rows), normalise).any())

    def regions(self, plan: MarkPlan, rows: Floats, normalise: bool) -> Integers:
        return _region_numbers(plan, rows.astype(np.float64), _units(row_norms(rows), normalise))

    def write(self, plan: MarkPlan, rows: Floats, target_of_row: Integers | None, out: Floats, normalise: bool) -> bool:
        may_refuse, as_it_came = self.may_refuse(plan, rows, normalise), None
        if target_of_row is None:
            target_of_row = plan.target_of_region[self.regions(plan, rows, normalise)]
        if plan.number_format is not NumberFormat.float32 and not normalise:
            as_it_came = ((target_of_row == 0) & in_format(rows, plan.number_format))[:, None]  # (n, 1)
        clean = rows.copy() if as_it_came is not None and np.may_share_memory(rows, out) else rows
        norms, e = _what_is_mixed(plan, rows)  # (n,), (n, D)
        with np.errstate(all="ignore"):  # rows that are no good are found afterwards
            own_part = (plan.tables.own_part[target_of_row] * _units(norms, normalise)).astype(np.float32)  # (n,)
            y = _mix(e, own_part, plan.tables.target_part[target_of_row])
            squares = (y * y).sum(axis=-1)  # (n,)
            lost = squares < NOTHING_LEFT  # e was -w at lambda = 1/2: the target is as good a direction as any
            y[lost] = _mix(e[lost], 0.0 * own_part[lost], plan.tables.target_part[target_of_row[lost]])
            squares[lost] = (y[lost] * y[lost]).sum(axis=-1)
            y *= (1.0 / np.sqrt(squares))[:, None]
            out[...] = round_to_format(y, plan.number_format)
        if as_it_came is not None:
            np.copyto(out, clean, where=as_it_came)
        return may_refuse

    def write_graded(self, plan: GradedPlan, rows: Floats, out: Floats, normalise: bool) -> bool:
        may_refuse = self.may_refuse(plan, rows, normalise)
        norms, e = _what_is_mixed(plan, rows)  # (n,), (n, D)
        with np.errstate(all="ignore"):  # rows that are no good are found afterwards
            e *= _units(norms, normalise)[:, None]
            u = np.stack([(e * plane).sum(axis=-1) for plane in plan.planes], axis=-1) - plan.offsets  # (n, h)
            second = np.where(plan.second >= 0, u[:, plan.second], 1.0)
            carriers = np.clip(u[:, plan.first] * second, -CLIP, CLIP)  # (n, J)
            for carrier, direction in zip(((carriers - plan.centres) * plan.amounts).T, plan.directions, strict=True):
                e += carrier[:, None] * direction
            y = e.astype(np.float32).astype(np.float64)
            y *= (1.0 / np.sqrt((y * y).sum(axis=-1)))[:, None]
            out[...] = round_to_format(y, plan.number_format)
        return may_refuse


def row_norms(rows: Floats) -> Doubles:
    """|e| in float64, (n,); NaN or infinite where an entry is."""
    e = rows.astype(np.float64)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.sqrt((e * e).sum(axis=-1)))


def is_bad(tolerance: float, norms: Doubles, normalise: bool) -> AnyArray:
    """Say which of these lengths (n,) no row may have that is to be marked."""
    with np.errstate(invalid="ignore"):
        good = (norms > LENGTHS[0]) & (norms < LENGTHS[1]) if normalise else np.abs(norms - 1.0) <= tolerance
    return ~good  # so written that NaN is bad


def _what_is_mixed(plan: MarkPlan | GradedPlan, rows: Floats) -> tuple[Doubles, Doubles]:
    """Return the rows with the dither of their number format, and their lengths, in float64: (n,), (n, D)."""
    coarse = plan.number_format is not NumberFormat.float32
    mixed = dithered(rows, plan.number_format) if coarse else rows
    return row_norms(mixed), mixed.astype(np.float64)


def _units(norms: Doubles, normalise: bool) -> Doubles:
    """Return what turns each row into e when multiplied with it, (n,)."""
    with np.errstate(divide="ignore"):
        return 1.0 / norms if normalise else np.ones_like(norms)


def _mix(e: Doubles, own_part: Floats, target_part: Floats) -> Doubles:
    """Eq. 3 without the norm: (1 - lambda) e + lambda w_r as float32 holds it, (n, D)."""
    return (own_part[:, None].astype(np.float64) * e + target_part).astype(np.float32).astype(np.float64)


def _region_numbers(plan: MarkPlan, e: Doubles, units: Doubles) -> Integers:
    numbers = np.zeros(len(e), dtype=np.int64)
    with np.errstate(invalid="ignore"):
        for bit, threshold in enumerate(plan.thresholds):
            positive = (e * plan.tables.normals[bit]).sum(axis=-1) * units - threshold > 0.0  # H_i . e - t_i > 0
            numbers |= positive.astype(np.int64) << bit
    return numbers
