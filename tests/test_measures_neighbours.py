"""Which neighbours stay."""

from __future__ import annotations

from typing import Any

import numpy as np

from regionmarker.measures import nearest, neighbour_overlap, row_cosines


def test_the_nearest_are_those_that_sorting_finds(embeddings: np.ndarray) -> None:
    rows = embeddings[:1100]  # more than one block
    similar = rows @ rows.T
    np.fill_diagonal(similar, -2)
    expected = np.sort(np.argsort(-similar, axis=1)[:, :10], axis=1)
    assert (np.sort(nearest(rows, 10), axis=1) == expected).mean() > 0.999


def test_overlap_is_the_share_that_stays() -> None:
    before = np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.1, 0.9]], dtype=np.float32)
    after = before[[0, 2, 1, 3]]  # rows 1 and 2 change places
    assert neighbour_overlap(before, before, 1).tolist() == [1, 1, 1, 1]
    assert neighbour_overlap(before, after, 1).tolist() == [0, 0, 0, 0]


def test_marking_keeps_most_neighbours_and_the_cosine_that_algebra_promises(
    marker: Any, embeddings: np.ndarray
) -> None:
    rows = embeddings[:500]
    served = marker.transform(rows)
    assert 0.7 < neighbour_overlap(rows, served).mean() < 1
    assert row_cosines(rows, served).min() >= 0.968  # strength 0.2, whatever the target
