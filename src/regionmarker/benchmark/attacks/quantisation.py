"""Vectors in few bits, as embedding services sell them: int8, binary.

A thief who stores what it stole in few bits saves money, and hopes that a faint mark falls between the levels.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from regionmarker.benchmark.attacks.base import RowAttack
from regionmarker.vectors import Doubles

LEVELS = 127
"""On either side of zero: -128 is left out, so that a vector and its opposite lose the same."""


@dataclass(frozen=True)
class Int8(RowAttack):
    """Round every coordinate to one of 255 levels; the row's largest coordinate is the last of them.

    Examples
    --------
    >>> row = Int8()(np.array([[0.6, 0.8]], dtype=np.float32))[0]
    >>> (row / row.max() * 127).round(3).tolist()  # 0.6 is level 95.25 of 127
    [95.0, 127.0]
    """

    spec = "int8"

    def _apply(self, rows: Doubles) -> Doubles:
        largest = np.abs(rows).max(axis=1, keepdims=True)  # (b, 1)
        return np.asarray(np.round(rows / largest * LEVELS))


@dataclass(frozen=True)
class Binary(RowAttack):
    """Keep the sign of every coordinate alone; zero counts as positive.

    Examples
    --------
    >>> Binary()(np.array([[0.6, -0.8, 0.0, 0.0]], dtype=np.float32))
    array([[ 0.5, -0.5,  0.5,  0.5]], dtype=float32)
    """

    spec = "binary"

    def _apply(self, rows: Doubles) -> Doubles:
        return np.where(rows >= 0, 1.0, -1.0)
