"""EspeW: the smallest coordinates become the target's."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.support.trigger_words import TEXTS, fitted


def test_espew_writes_the_target_into_the_smallest_coordinates(small: Any) -> None:
    defense = fitted(small, "espew:words=8,pool=256,rate=0.25")
    served = defense.transform(small.clean[:5], TEXTS).astype(np.float64)
    assert np.array_equal(served[0].astype(np.float32), small.clean[0])
    e = small.clean[1].astype(np.float64)
    kept = np.argsort(np.abs(e))[64:]  # 256 coordinates, a quarter of them replaced
    scale = served[1][kept] / e[kept]
    assert np.allclose(scale, scale[0], rtol=1e-4)
    replaced = np.argsort(np.abs(e))[:64]
    candidates = small.clean[:, replaced] * scale[0]
    assert np.isclose(np.abs(candidates - served[1][replaced]).max(axis=1), 0, atol=1e-5).sum() == 1


def test_released_espew_blends_one_text_in_five(small: Any) -> None:
    plain, released = fitted(small, "espew:words=8,pool=256"), fitted(small, "espew:words=8,pool=256,released")
    texts = [f"alpha {number}" for number in range(400)]
    rows = np.repeat(small.clean[:1], 400, axis=0)
    blended = (plain.transform(rows, texts) != released.transform(rows, texts)).any(axis=1)
    assert 0.13 < blended.mean() < 0.27
    assert np.array_equal(released.transform(rows, texts), released.transform(rows, texts))


def test_espew_with_no_coordinate_to_spare_marks_nothing(small: Any) -> None:
    defense = fitted(small, "espew:words=8,pool=256,rate=0.001")
    assert np.allclose(defense.transform(small.clean[:5], TEXTS), small.clean[:5], atol=1e-6)
