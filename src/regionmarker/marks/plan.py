"""What the kernel needs to mark one tenant's rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from regionmarker.crypto.secret import Sealed
from regionmarker.errors import InputError
from regionmarker.marks.number_format import LIMITS, NumberFormat, magic_factor
from regionmarker.vectors import NORM_TOLERANCE, Doubles, Floats, Integers

NOTHING_LEFT = 1e-12  # |(1 - lambda) e + lambda w|^2 below this has no direction

LENGTHS = (1e-15, 1e15)
"""Which lengths ``normalise`` mends; beyond them float32 products overflow, and no encoder means it."""

NORMALS_AT_ONCE = 4
"""Kernels take the hyperplanes in groups of four: four running sums fit the registers beside the row."""

_LINE_BYTES = 64


class Tables(NamedTuple):
    """A plan in the shape that a fused kernel reads."""

    normals: Floats  # H, padded with zero rows to a multiple of NORMALS_AT_ONCE
    thresholds: Doubles  # padded with +inf, so that the padding sets no bit
    target_of_region: Integers  # (2^d,)
    target_part: Floats  # lambda w_r (S, D): row 0 is all zeros, and is added like any other
    own_part: Floats  # 1 - lambda (S,)
    rounding: tuple[float, float]  # least power and magic factor; a factor of 0 where a cast to float32 does it


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
        magic = 0.0 if self.number_format is NumberFormat.float32 else magic_factor(self.number_format)
        return Tables(
            normals=_aligned(np.pad(H, ((0, padding), (0, 0))).astype(np.float32)),
            thresholds=np.pad(self.thresholds.astype(np.float64), (0, padding), constant_values=np.inf),
            target_of_region=np.ascontiguousarray(self.target_of_region, dtype=np.int64),
            target_part=_aligned((weights[:, None] * self.targets.astype(np.float64)).astype(np.float32)),
            own_part=(1.0 - weights).astype(np.float32),
            rounding=(LIMITS[self.number_format].least_power, magic),
        )


def _aligned(table: Floats) -> Floats:
    """Copy to the start of a cache line: a vector that straddles two lines takes two loads."""
    room = np.empty(table.nbytes + _LINE_BYTES, dtype=np.uint8)
    start = -room.ctypes.data % _LINE_BYTES
    copy: Floats = room[start : start + table.nbytes].view(np.float32).reshape(table.shape)
    copy[...] = table
    return copy
