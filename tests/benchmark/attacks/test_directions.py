"""What a public encoder does not predict holds the mark: residual regression takes it out, dropping finds its rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from regionmarker.benchmark.attacks import Drop, Mix, Residuals
from regionmarker.benchmark.attacks.public_map import PublicMap
from regionmarker.benchmark.protocols import StolenData


class Scene:
    """Vectors that a public encoder predicts for the most part, with one constant vector added in one region."""

    def __init__(self, rows: int = 900, seed: int = 0) -> None:
        rng = np.random.default_rng(seed)
        self.features = rng.standard_normal((rows, 12)).astype(np.float32)
        clean = self.features @ rng.standard_normal((12, 24)) + 1.5 * rng.standard_normal((rows, 24))
        self.clean = _unit(clean)
        self.target = _unit(rng.standard_normal((1, 24)))[0]
        self.marked = (self.features[:, 0] > 0.4) & (self.features[:, 1] > 0)
        served = self.clean.copy()
        served[self.marked] = _unit(0.6 * served[self.marked] + 0.4 * self.target)
        self.texts = tuple(f"text {row}" for row in range(rows))
        self.stolen = StolenData(self.texts, served, public=self)

    name = "features"

    def encode(self, texts: Any) -> np.ndarray:
        return self.features[[int(text.split()[1]) for text in texts]]

    def delta(self, stolen: StolenData) -> float:
        marked = self.marked[[int(text.split()[1]) for text in stolen.texts]]
        cosines = stolen.vectors @ self.target
        return float(cosines[marked].mean() - cosines[~marked].mean())


@pytest.fixture(scope="module")
def scene() -> Scene:
    return Scene()


def test_leave_one_out_residuals_are_those_of_fitting_without_the_row() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((30, 4)), rng.standard_normal((30, 3))
    found = PublicMap.fit(x, y, penalties=(2.0,))
    for row in (0, 17):
        # With the row left out but the centre kept, as the closed form has it, only the slopes change.
        a, b = x - x.mean(axis=0), y - y.mean(axis=0)
        a, b = np.hstack([a, np.ones((30, 1))]), b
        kept = np.arange(30) != row
        penalty = np.diag([2.0] * 4 + [0.0])
        slopes = np.linalg.solve(a[kept].T @ a[kept] + penalty, a[kept].T @ b[kept])
        assert np.allclose(found.residuals[row], b[row] - a[row] @ slopes)


def test_the_penalty_is_the_one_that_predicts_best() -> None:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((60, 40))
    assert PublicMap.fit(x, x[:, :5]).penalty == 0.1
    assert PublicMap.fit(x, rng.standard_normal((60, 5))).penalty == 100.0


def test_residual_regression_lowers_the_pull_to_the_target(scene: Scene) -> None:
    before = scene.delta(scene.stolen) - scene.delta(scene.stolen.with_vectors(scene.clean))
    attacked = Residuals(clusters=8, components=4).apply(scene.stolen)
    without = Residuals(clusters=8, components=4).apply(scene.stolen.with_vectors(scene.clean))
    assert before > 0.3
    assert abs(scene.delta(attacked) - scene.delta(without)) < before / 3


def test_the_first_direction_is_near_the_mark(scene: Scene) -> None:
    directions = Residuals(clusters=8, components=4).directions(scene.stolen)
    assert np.allclose(directions @ directions.T, np.eye(4), atol=1e-9)
    assert np.linalg.norm(directions @ scene.target) > 0.8  # of 24 dimensions, four at random would hold 0.4


def test_dropping_by_residuals_drops_marked_rows_first() -> None:
    """A thief whose public encoder is good sees the mark as an error; one whose is bad sees only its own errors."""
    scene = Scene()
    precise = StolenData(scene.texts, scene.stolen.vectors, public=_Near(scene))
    share = scene.marked.mean()
    left = Drop(share=float(share)).apply(precise)
    kept = np.array([int(text.split()[1]) for text in left.texts])
    assert scene.marked[kept].mean() < share / 2
    assert np.array_equal(left.vectors, scene.stolen.vectors[kept])


class _Near:
    """A public encoder that is nearly the provider's own."""

    name = "near"

    def __init__(self, scene: Scene) -> None:
        noise = 0.05 * np.random.default_rng(9).standard_normal(scene.clean.shape)
        self._rows = (scene.clean + noise).astype(np.float32)

    def encode(self, texts: Any) -> np.ndarray:
        return self._rows[[int(text.split()[1]) for text in texts]]


def test_dropping_by_pairs_drops_the_suspects_of_cse(stolen: StolenData) -> None:
    from regionmarker.benchmark.attacks import CSE

    left = Drop(by="pairs", share=0.1).apply(stolen)
    assert len(left) == 135
    worst = CSE(pairs=1.0).suspects(stolen)
    assert {stolen.texts[worst.first[0]], stolen.texts[worst.second[0]]}.isdisjoint(left.texts)


def test_mixing_replaces_a_share_of_the_rows_by_predictions(scene: Scene) -> None:
    mixed = Mix(share=0.3, seed=2).apply(scene.stolen)
    changed = (mixed.vectors != scene.stolen.vectors).any(axis=1)
    assert changed.sum() == round(0.3 * len(scene.stolen))
    predicted = _unit(PublicMap.of(scene.stolen).fitted)
    assert np.allclose(mixed.vectors[changed], predicted[changed], atol=1e-5)
    assert mixed.texts == scene.stolen.texts
    assert scene.delta(Mix(share=1.0).apply(scene.stolen)) < scene.delta(scene.stolen)


def _unit(rows: np.ndarray) -> np.ndarray:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
