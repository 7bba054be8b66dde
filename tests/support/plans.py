"""Plans with known hyperplanes and targets, and unit rows for them."""

from __future__ import annotations

import numpy as np

from regionmarker.marks.number_format import NumberFormat, round_to_format
from regionmarker.marks.plan import MarkPlan


def unit_rows(rng: np.random.Generator, n: int, width: int, grid: NumberFormat = NumberFormat.float32) -> np.ndarray:
    rows = rng.normal(size=(n, width))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    return round_to_format(rows, grid)


def make_plan(
    width: int, *, dimension: int = 4, grid: NumberFormat = NumberFormat.float32, strength: float = 0.2, seed: int = 0
) -> MarkPlan:
    rng = np.random.default_rng(seed)
    slots = min(4, 2**dimension)
    target_of_region = np.zeros(2**dimension, dtype=np.int64)
    target_of_region[rng.permutation(2**dimension)[: slots - 1]] = np.arange(1, slots)
    return MarkPlan(
        projection=unit_rows(rng, dimension, width),
        thresholds=rng.normal(size=dimension) * 0.3 / np.sqrt(width),
        target_of_region=target_of_region,
        targets=unit_rows(rng, slots, width),
        weights=np.array([0.0] + [strength] * (slots - 1)),
        number_format=grid,
    )
