"""The simulated stealer: its ridge is the ridge, its views grow, and it learns what it is served."""

from __future__ import annotations

import numpy as np
import pytest

from regionmarker.verification.simulated_stealer import (
    RidgeSolver,
    SimulatedStealer,
    Student,
    StudentView,
    student_views,
)


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


def test_views_go_from_the_worst_to_the_best():
    views = list(student_views(100))
    assert [view.public for view in views] == sorted(view.public for view in views)
    assert [view.clean for view in views] == sorted(view.clean for view in views)
    assert views[-1].clean < 100
    assert {view.clean for view in views} > {0, 8}


def test_a_view_sees_as_many_numbers_as_it_says(rng):
    public, clean = rng.standard_normal((7, 64)), rng.standard_normal((7, 32))
    assert StudentView(16).features(public, clean, rng).shape == (7, 16)
    assert StudentView(256, 8).features(public, clean, rng).shape == (7, 64 + 8)
    assert np.array_equal(StudentView(64).features(public, clean, rng), public)


def test_who_sees_the_clean_vectors_copies_them_and_answers_with_unit_rows(embeddings, rng):
    rows = embeddings[:1500]
    stealer = SimulatedStealer(rows, np.arange(1000), Student.drawn(rows, rows.shape[1], 0, rng), 1e-3)
    answers = stealer.steal(rows[stealer.asked])(np.arange(1000, 1500))
    assert np.allclose(np.linalg.norm(answers, axis=1), 1, atol=1e-5)
    assert (answers * rows[1000:]).sum(axis=1).mean() > 0.95
