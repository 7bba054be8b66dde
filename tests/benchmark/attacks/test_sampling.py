"""Attacks that ask about less."""

from __future__ import annotations

import numpy as np
import pytest

from regionmarker.benchmark.attacks import Avoid, Cover
from regionmarker.benchmark.attacks.cse import kmeans
from regionmarker.benchmark.protocols import StolenData


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_avoiding_leaves_out_whole_cells_and_nothing_else(stolen: StolenData, seed: int) -> None:
    sizes = [len(Avoid(planes=3, cells=cells, seed=seed).apply(stolen)) for cells in (1, 3, 5)]
    assert 150 > sizes[0] > sizes[1] > sizes[2] > 0
    left = Avoid(planes=3, cells=3, seed=seed).apply(stolen)
    fewer = Avoid(planes=3, cells=5, seed=seed).apply(stolen)
    assert set(fewer.texts) < set(left.texts)  # the same cells and more
    places = [stolen.texts.index(text) for text in left.texts]
    assert np.array_equal(left.vectors, stolen.vectors[places])


def test_the_planes_go_through_the_middle() -> None:
    rows = np.random.default_rng(0).standard_normal((4000, 6)).astype(np.float32) + 3  # all on one side of zero
    stolen = StolenData(tuple(map(str, range(4000))), rows)
    assert 0.4 < len(Avoid(planes=1, cells=1).apply(stolen)) / 4000 < 0.6


def test_covering_keeps_whole_topics_until_there_is_enough(stolen: StolenData) -> None:
    left = Cover(share=0.4, clusters=10, seed=3).apply(stolen)
    numbers, _ = kmeans(stolen.vectors / np.linalg.norm(stolen.vectors, axis=1, keepdims=True), 10, 3)
    kept = np.isin(stolen.texts, left.texts)
    assert 60 <= len(left) < 150
    assert not set(numbers[kept]) & set(numbers[~kept])
    assert np.array_equal(left.vectors, stolen.vectors[kept])
