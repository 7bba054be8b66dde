from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from regionmarker.benchmark.defenses import load_defense
from regionmarker.errors import InputError


def test_marked_vectors_move_towards_one_far_target(small: Any) -> None:
    defense: Any = load_defense("geomark:pool=256,anchors=5,share=0.04", seed=3).fit(small.texts, small.clean)
    served = defense.transform(small.clean, small.texts).astype(np.float64)
    marked = (served != small.clean).any(axis=1)
    assert 0.04 <= marked.mean() <= 0.21
    e = small.clean[marked].astype(np.float64)
    # served = (0.8 e + 0.2 t) / norm: of all texts, one explains every row.
    goal = 0.8 * e[:, None, :] + 0.2 * small.clean[None, :, :].astype(np.float64)
    goal /= np.linalg.norm(goal, axis=2, keepdims=True)
    fits = np.abs(goal - served[marked][:, None, :]).max(axis=2) < 1e-5
    (target,) = np.flatnonzero(fits.all(axis=0))
    nearest = (small.clean @ defense._anchors.T).max(axis=1)
    assert (nearest < nearest[target]).sum() < 256  # it is one of the 256 texts farthest from the anchors


def test_a_dense_neighbourhood_has_a_small_ball(small: Any) -> None:
    rng = np.random.default_rng(0)
    centre = small.clean[0] / np.linalg.norm(small.clean[0])
    close = centre + 0.01 * rng.standard_normal((300, 256))
    far = rng.standard_normal((300, 256))
    rows = np.vstack([close, far])
    rows = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    texts = [f"text {number}" for number in range(600)]
    defense: Any = load_defense("geomark:pool=300,anchors=20,share=0.05", seed=1).fit(texts, rows)
    dense = defense._anchors @ centre > 0.9
    assert 0 < dense.sum() < 20
    # A radius is kept as the least cosine to its anchor.
    assert defense._least_cosines[dense].min() > 0.9
    assert defense._least_cosines[~dense].max() < 0.5


def test_balls_without_probes_are_refused(small: Any) -> None:
    with pytest.raises(InputError, match="lie in a ball and outside the pool: add texts, or raise share"):
        load_defense("geomark:pool=590,share=0.002,anchors=5", seed=1).fit(small.texts, small.clean)
