"""Vectors in few bits: as many levels as said, and no more lost than they must."""

from __future__ import annotations

import numpy as np

from regionmarker.benchmark.attacks import AttackedModel, Binary, Int8
from regionmarker.benchmark.protocols import StolenData


def test_int8_leaves_whole_numbers_up_to_127_times_one_factor_in_each_row(stolen: StolenData) -> None:
    rows = Int8()(stolen.vectors).astype(np.float64)
    levels = rows / np.abs(rows).max(axis=1, keepdims=True) * 127
    assert np.abs(levels - np.round(levels)).max() < 1e-4
    cosines = np.einsum("ij,ij->i", rows, stolen.vectors) / np.linalg.norm(stolen.vectors, axis=1)
    assert cosines.min() > 0.999
    assert len(np.unique(np.round(levels[0]))) > 50


def test_binary_leaves_the_signs(stolen: StolenData) -> None:
    rows = Binary()(stolen.vectors)
    assert np.array_equal(rows > 0, stolen.vectors >= 0)
    assert len(np.unique(np.abs(rows))) == 1


def test_a_model_may_answer_in_few_bits(encoder) -> None:
    whole = AttackedModel(encoder, "int8").encode(["a text", "another"])
    assert np.array_equal(AttackedModel(encoder, "int8").encode(["another"]), whole[1:])
    assert len(np.unique(np.abs(AttackedModel(encoder, "binary").encode(["a text"])))) == 1
