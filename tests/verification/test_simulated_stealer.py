"""The simulated stealer: its ridge is the ridge, its view is blurred, and it learns what it is served."""

from __future__ import annotations

import numpy as np
import pytest

from regionmarker.verification.simulated_stealer import BlurredView, RidgeSolver, SimulatedStealer, Student


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(2)


def test_the_solution_is_that_of_a_ridge_regression(rng):
    features = rng.standard_normal((300, 12)).astype(np.float32)
    targets = rng.standard_normal((300, 5)).astype(np.float32)
    solver = RidgeSolver(Student.drawn(features, 5, 0, rng), features)
    (student,) = solver.solve(targets, (0.1,))
    inputs = student.scaled(features).astype(np.float64)
    inputs -= inputs.mean(axis=0)
    loaded = inputs.T @ inputs + 0.1 * solver.mean_variance * np.eye(12)
    expected = np.linalg.solve(loaded, inputs.T @ (targets - targets.mean(axis=0)))
    assert np.allclose(student.W2, expected, atol=1e-4)
    assert np.allclose(student.answers(features).mean(axis=0), targets.mean(axis=0), atol=1e-4)


def test_a_view_sees_the_first_components_best_and_less_through_more_noise(embeddings, rng):
    centred = embeddings[:1500] - embeddings[:1500].mean(axis=0)
    rows = (centred @ np.linalg.svd(centred, full_matrices=False)[2].T)[:, :64]
    view = BlurredView(rows, float(np.square(centred).mean()), 32, rng)

    def seen(blur: float) -> np.ndarray:
        features = view.features(blur)[:, :64]
        return np.array([np.corrcoef(features[:, place], rows[:, place])[0, 1] for place in range(64)])

    clear, blurred = seen(0.0), seen(1.5)
    assert np.allclose(clear, 1, atol=1e-3)
    assert blurred[:8].mean() > blurred[-8:].mean() + 0.2
    assert seen(3.0).mean() < blurred.mean()


def test_hidden_units_are_drawn_once_for_all_noises(rng):
    view = BlurredView(rng.standard_normal((50, 8)).astype(np.float32), 1.0, 16, rng)
    assert view.features(1.0).shape == (50, 8 + 16)
    assert np.array_equal(view.features(1.0), view.features(1.0))
    assert (view.features(2.0)[:, 8:] >= 0).all()


def test_who_sees_the_clean_vectors_copies_them_and_answers_with_unit_rows(embeddings, rng):
    rows = embeddings[:1500]
    stealer = SimulatedStealer(rows, np.arange(1000), Student.drawn(rows, rows.shape[1], 0, rng), 1e-3)
    answers = stealer.steal(rows[stealer.asked])(np.arange(1000, 1500))
    assert np.allclose(np.linalg.norm(answers, axis=1), 1, atol=1e-5)
    assert (answers * rows[1000:]).sum(axis=1).mean() > 0.95


def test_the_best_penalty_is_found_without_solving_for_every_one(rng):
    features = rng.standard_normal((300, 12)).astype(np.float32)
    targets = (np.tanh(features) @ rng.standard_normal((12, 5)) + rng.standard_normal((300, 5))).astype(np.float32)
    solver = RidgeSolver(Student.drawn(features[:200], 5, 64, rng), features[:200])

    def score(answers: np.ndarray) -> float:
        return -float(np.square(answers - targets[200:]).mean())

    found = solver.best(targets[:200], score, features[200:])
    everyone = list(solver.solve(targets[:200]))
    expected = max(everyone, key=lambda student: score(student.answers(features[200:])))
    assert np.array_equal(found.W2, expected.W2)
    assert len({score(student.answers(features[200:])) for student in everyone}) == len(everyone)
