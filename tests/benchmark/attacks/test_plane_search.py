"""Angle search: finds a key whose normals lie in a narrow span, and drops its rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from regionmarker.benchmark.attacks import Angles
from regionmarker.benchmark.attacks.plane_search import (
    OutsideView,
    ascend,
    climb,
    evidence,
    random_frame,
    region_scores,
    soft_gradient,
)
from regionmarker.benchmark.attacks.public_map import public_features
from regionmarker.benchmark.protocols import StolenData


class Scene:
    """Vectors that a public encoder nearly knows, marked in two of 16 regions whose planes lie in the span of the first
    four components: the paper's kind of key.
    """

    name = "features"

    def __init__(self) -> None:
        rng = np.random.default_rng(0)
        meaning = rng.standard_normal((2000, 64)) * np.concatenate([[3.0, 2.9, 2.8, 2.7], np.ones(60)])
        self._features = (meaning + 0.2 * rng.standard_normal(meaning.shape)).astype(np.float32)
        turn = np.linalg.qr(rng.standard_normal((96, 64)))[0]
        self.clean = _unit(meaning @ turn.T + 0.2 * rng.standard_normal((2000, 96)))
        centred = self.clean - self.clean.mean(axis=0)
        axes = np.linalg.svd(centred, full_matrices=False)[2][:4]
        frame = np.linalg.qr(rng.standard_normal((4, 4)))[0]
        regions = (centred @ axes.T @ frame > 0) @ (1 << np.arange(4))
        served = self.clean.copy()
        for region in (0, 1):
            target = _unit(rng.standard_normal((1, 96)))
            served[regions == region] = _unit(0.8 * served[regions == region] + 0.2 * target)
        self.marked = regions < 2
        self.stolen = StolenData(tuple(map(str, range(2000))), served, public=self)

    def encode(self, texts: Any) -> np.ndarray:
        return self._features[[int(text) for text in texts]]

    def found(self, scores: np.ndarray) -> float:
        """The area under the curve: 0.5 is chance."""
        marked, others = scores[self.marked][:, None], scores[~self.marked]
        return float((marked > others).mean() + (marked == others).mean() / 2)


@pytest.fixture(scope="module")
def scene() -> Scene:
    return Scene()


@pytest.fixture(scope="module")
def view(scene: Scene) -> OutsideView:
    return OutsideView.of(scene.stolen.vectors, public_features(scene.stolen), 4)


def test_marked_rows_are_found_and_dropped(scene: Scene) -> None:
    attack = Angles(span=4, starts=2, steps=60, share=0.25)
    assert scene.found(attack.suspicion(scene.stolen)) > 0.85
    left = attack.apply(scene.stolen)
    rows = [int(text) for text in left.texts]
    assert len(left) == 1500
    assert scene.marked[rows].mean() < scene.marked.mean() / 4
    assert np.array_equal(left.vectors, scene.stolen.vectors[rows])


def test_nothing_is_found_where_nothing_is_marked(scene: Scene) -> None:
    unmarked = scene.stolen.with_vectors(scene.clean)
    assert 0.4 < scene.found(Angles(span=4, starts=2, steps=60).suspicion(unmarked)) < 0.6


def test_the_search_raises_the_evidence(view: OutsideView) -> None:
    start = random_frame(4, 2, np.random.default_rng(1))
    higher = ascend(view, start, 40)
    assert np.allclose(higher.T @ higher, np.eye(2), atol=1e-5)
    assert view.evidence(higher) > view.evidence(start)
    best, value = climb(view, higher, np.random.default_rng(2), patience=30)
    assert value == view.evidence(best) >= view.evidence(higher)
    stopped, _ = climb(view, start, np.random.default_rng(2), stop=lambda: True)
    assert np.array_equal(stopped, start)


def test_the_soft_gradient_is_the_derivative_of_the_soft_evidence() -> None:
    rng = np.random.default_rng(0)
    v, residuals = rng.standard_normal((40, 3)), rng.standard_normal((40, 5))
    width = np.array([0.7, 0.9, 1.1])

    def soft(v: np.ndarray) -> float:
        sides = np.tanh(v / width)
        bits = (np.arange(8)[:, None] >> np.arange(3)) & 1
        member = np.prod([(1 + np.where(bits[:, j], 1, -1) * sides[:, j : j + 1]) / 2 for j in range(3)], axis=0)
        return float((((member.T @ residuals) ** 2).sum(axis=1) / (member.sum(axis=0) + 0.4)).sum())

    found = soft_gradient(v, residuals, width)
    for row, column in ((0, 0), (7, 1), (39, 2)):
        step = np.zeros_like(v)
        step[row, column] = 1e-5
        assert np.isclose((soft(v + step) - soft(v - step)) / 2e-5, found[row, column], rtol=1e-4)


def test_evidence_is_what_regions_explain() -> None:
    residuals = np.array([[1.0], [1.0], [-1.0], [-1.0]], dtype=np.float32)
    telling = evidence(np.array([0, 0, 1, 1]), residuals, 2)
    assert telling > 3.5
    assert evidence(np.array([0, 1, 0, 1]), residuals, 2) == 0
    by_region, by_row = region_scores(np.array([0, 0, 1, 1]), 10 * residuals, 2)
    assert (by_row > 0).all()
    assert (by_region > 0).all()


def _unit(rows: np.ndarray) -> np.ndarray:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
