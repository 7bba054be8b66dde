"""What an engine needs to mark one tenant's rows: one plan per kind of mark."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from regionmarker.crypto.secret import Sealed
from regionmarker.errors import InputError
from regionmarker.marks.number_format import NumberFormat
from regionmarker.vectors import NORM_TOLERANCE, Doubles, Floats, Integers

NOTHING_LEFT = 1e-12  # |(1 - lambda) e + lambda w|^2 below this has no direction

LENGTHS = (1e-15, 1e15)
"""Which lengths ``normalise`` mends; beyond them float32 products overflow, and no encoder means it."""

CLIP = 2.0
"""Where a graded side ends: this many standard deviations from the hyperplane."""

NORMALS_AT_ONCE = 4
"""Kernels take the hyperplanes in groups of four: four running sums fit the registers beside the row."""

PLANES_AT_ONCE = 4
"""Of the graded mark: four hyperplanes times six rows are as many running sums as thirty-two registers hold."""

COLUMNS_AT_ONCE = 32
"""Two vectors of a row while all carriers are added to it: six rows of them fit the registers."""

_DOUBT = 1e-4  # float32 sums are at least this good: rows nearer to the tolerance are judged in float64
_LINE_BYTES = 64


class Tables(NamedTuple):
    """A plan in the shape that a fused kernel reads."""

    normals: Floats  # H, padded with zero rows to a multiple of NORMALS_AT_ONCE
    thresholds: Doubles  # padded with +inf, so that the padding sets no bit
    target_of_region: Integers  # (2^d,)
    target_part: Floats  # lambda w_r (S, D): row 0 is all zeros, and is added like any other
    own_part: Floats  # 1 - lambda (S,)


@dataclass(frozen=True, repr=False, eq=False)
class MarkPlan(Sealed):
    """Hyperplanes, and what to mix in where. Target 0 stands for "no mark": a real vector with weight 0.

    The region of a row e is sum_i 1[H_i . e - t_i > 0] << i; its number r says which target w_r it is mixed with,
    and the target's weight lambda how strongly (paper, eq. 3).

    Examples
    --------
    >>> plan = MarkPlan(
    ...     projection=np.float32([[1.0, 0.0]]),
    ...     thresholds=np.array([0.0]),
    ...     target_of_region=np.array([0, 1]),
    ...     targets=np.float32([[0.0, 1.0], [0.0, 1.0]]),
    ...     weights=np.array([0.0, 0.2]),
    ...     number_format=NumberFormat.float32,
    ... )
    >>> plan
    <MarkPlan: sealed>
    >>> plan.width, plan.tables.normals.shape
    (2, (4, 2))
    """

    projection: Floats | None  # H (d, D); None when the reducer is not linear
    thresholds: Doubles  # (d,)
    target_of_region: Integers  # (2^d,)
    targets: Floats  # W (S, D)
    weights: Doubles  # (S,): 0 for target 0, else lambda
    number_format: NumberFormat
    norm_tolerance: float = NORM_TOLERANCE

    def __post_init__(self) -> None:
        count, width = self.targets.shape
        dimension = len(self.thresholds)
        fits = (
            dimension > 0
            and self.weights.shape == (count,)
            and self.target_of_region.shape == (2**dimension,)
            and (self.projection is None or self.projection.shape == (dimension, width))
        )
        if not fits:
            raise InputError("the parts of this key do not fit each other: make the key again")
        if self.weights[0] != 0.0 or not 0 <= self.target_of_region.min() <= self.target_of_region.max() < count:
            raise InputError("the regions of this key do not fit its targets: make the key again")

    @property
    def width(self) -> int:
        return int(self.targets.shape[1])

    @cached_property
    def tables(self) -> Tables:
        """The plan laid out for a kernel; made once."""
        H = np.zeros((len(self.thresholds), self.width)) if self.projection is None else self.projection
        padding = -len(self.thresholds) % NORMALS_AT_ONCE
        weights = self.weights.astype(np.float64)
        return Tables(
            normals=_aligned(np.pad(H, ((0, padding), (0, 0))).astype(np.float32)),
            thresholds=np.pad(self.thresholds.astype(np.float64), (0, padding), constant_values=np.inf),
            target_of_region=np.ascontiguousarray(self.target_of_region, dtype=np.int64),
            target_part=_aligned((weights[:, None] * self.targets.astype(np.float64)).astype(np.float32)),
            own_part=(1.0 - weights).astype(np.float32),
        )


class GradedTables(NamedTuple):
    """A graded plan in the shape that a compiled engine reads."""

    planes: Floats  # H, padded with zero rows to a multiple of PLANES_AT_ONCE
    offsets: Floats  # H mu, padded alike
    first: Integers  # (J,): the hyperplane of a carrier
    second: Integers  # (J,): its second one; for a single the one after the last, which stands for the number 1
    centres: Floats  # (J,)
    amounts: Floats  # (J,)
    directions: Floats  # (columns / 2 vectors * J, 2 vectors): all carriers of the same columns lie side by side
    tail: Floats  # (J, rest): the columns that fill no two vectors


@dataclass(frozen=True, repr=False, eq=False)
class GradedPlan(Sealed):
    """Hyperplanes and carriers, and the direction that each carrier pulls along.

    With u = H e - H mu, carrier j is clip(u_first, -2, 2) or clip(u_first u_second, -2, 2); what it adds to e is
    (c_j - centre_j) amount_j d_j.

    Examples
    --------
    >>> plan = GradedPlan(
    ...     planes=np.float32([[1.0, 0.0]]),
    ...     offsets=np.array([0.0]),
    ...     first=np.array([0]),
    ...     second=np.array([-1]),
    ...     centres=np.array([0.0]),
    ...     amounts=np.array([0.1]),
    ...     directions=np.float32([[0.0, 1.0]]),
    ...     number_format=NumberFormat.float32,
    ... )
    >>> plan
    <GradedPlan: sealed>
    >>> plan.width, plan.tables.planes.shape
    (2, (4, 2))
    """

    planes: Floats  # H (h, D)
    offsets: Doubles  # H mu (h,)
    first: Integers  # (J,)
    second: Integers  # (J,): -1 for a single
    centres: Doubles  # (J,)
    amounts: Doubles  # (J,): lambda w_j / sd_j
    directions: Floats  # (J, D): d_t of the targets
    number_format: NumberFormat
    norm_tolerance: float = NORM_TOLERANCE
    like: GradedPlan | None = None  # a plan with the same hyperplanes and carriers, whose tables of them are used

    def __post_init__(self) -> None:
        planes, width = self.planes.shape
        count = len(self.first)
        sizes = {self.second.shape, self.centres.shape, self.amounts.shape, (count,)}
        fits = len(sizes) == 1 and self.offsets.shape == (planes,) and self.directions.shape == (count, width)
        if not fits or not count:
            raise InputError("the parts of this key do not fit each other: make the key again")
        if not (self.first.min() >= 0 and max(self.first.max(), self.second.max()) < planes):
            raise InputError("the carriers of this key do not fit its hyperplanes: make the key again")

    @property
    def width(self) -> int:
        """D, the number of columns."""
        return int(self.planes.shape[1])

    @cached_property
    def tables(self) -> GradedTables:
        """The plan laid out for a compiled engine; made once."""
        columns = self.width - self.width % COLUMNS_AT_ONCE
        blocks = self.directions[:, :columns].reshape(len(self.first), -1, COLUMNS_AT_ONCE)  # (J, blocks, at once)
        directions = _aligned(blocks.transpose(1, 0, 2)).reshape(-1, COLUMNS_AT_ONCE)
        tail = np.ascontiguousarray(self.directions[:, columns:], dtype=np.float32)
        if self.like is not None:
            return self.like.tables._replace(directions=directions, tail=tail)
        padding = -len(self.planes) % PLANES_AT_ONCE
        return GradedTables(
            planes=_aligned(np.pad(self.planes, ((0, padding), (0, 0))).astype(np.float32)),
            offsets=np.pad(self.offsets, (0, padding)).astype(np.float32),
            first=np.ascontiguousarray(self.first, dtype=np.int64),
            second=np.where(self.second >= 0, self.second, len(self.planes) + padding).astype(np.int64),
            centres=self.centres.astype(np.float32),
            amounts=self.amounts.astype(np.float32),
            directions=directions,
            tail=tail,
        )


def certain_squares(plan: MarkPlan | GradedPlan, normalise: bool) -> tuple[float, float]:
    """Return between which squared lengths a row is certainly good, whatever float32 does to the sum."""
    low, high = LENGTHS if normalise else (1.0 - plan.norm_tolerance, 1.0 + plan.norm_tolerance)
    return low * low * (1.0 + _DOUBT), high * high * (1.0 - _DOUBT)


def _aligned(table: Floats) -> Floats:
    """Copy to the start of a cache line, as float32: a vector that straddles two lines takes two loads."""
    size = 4 * table.size
    room = np.empty(size + _LINE_BYTES, dtype=np.uint8)
    start = -room.ctypes.data % _LINE_BYTES
    copy: Floats = room[start : start + size].view(np.float32).reshape(table.shape)
    copy[...] = table
    return copy
