"""Thieves who have read our source find what they look for, and only that."""

from __future__ import annotations

import numpy as np
import pytest

from regionmarker.benchmark.attacks import CSE, ICA, Band, Neighbours, Products, Residuals, Student
from regionmarker.benchmark.attacks.public_map import PublicMap, with_hidden
from regionmarker.benchmark.protocols import StolenData

TEXTS = tuple(f"text {number}" for number in range(1200))


class _Features:
    """A public encoder that says the first coordinates of the clean rows."""

    name = "features"

    def __init__(self, rows: np.ndarray) -> None:
        self.rows = dict(zip(TEXTS, rows.astype(np.float32), strict=True))

    def encode(self, texts: list[str], /) -> np.ndarray:
        return np.stack([self.rows[text] for text in texts])


@pytest.fixture(scope="module")
def rows() -> np.ndarray:
    """Clean rows of unit length, whose coordinates are their principal ones."""
    drawn = np.random.default_rng(5).standard_normal((len(TEXTS), 24)) * np.linspace(3, 0.5, 24)
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def _carried(rows: np.ndarray, carrier: np.ndarray, target: np.ndarray) -> StolenData:
    carrier = (carrier - carrier.mean()) / carrier.std()
    moved = rows + 0.15 * carrier[:, None] * target
    served = (moved / np.linalg.norm(moved, axis=1, keepdims=True)).astype(np.float32)
    return StolenData(TEXTS, served, public=_Features(rows[:, :16]))


def _left(vectors: np.ndarray, carrier: np.ndarray, target: np.ndarray) -> float:
    return float(np.corrcoef(vectors @ target, carrier)[0, 1])


def test_products_take_a_pair_out_and_leave_a_single(rows: np.ndarray) -> None:
    target = np.eye(24)[20]
    pair, single = rows[:, 0] * rows[:, 1], rows[:, 2]
    for carrier, most, least in ((pair, 0.2, 0.0), (single, 1.0, 0.7)):
        stolen = _carried(rows, carrier, target)
        assert _left(stolen.vectors, carrier, target) > 0.7
        assert least <= abs(_left(Products(8).apply(stolen).vectors, carrier, target)) < most


def test_products_of_too_few_coordinates_leave_the_pair(rows: np.ndarray) -> None:
    target, pair = np.eye(24)[20], rows[:, 4] * rows[:, 5]
    stolen = _carried(rows, pair, target)
    assert _left(Products(2).apply(stolen).vectors, pair, target) > 0.6


def test_a_band_removes_its_components_and_no_others(rows: np.ndarray) -> None:
    stolen = StolenData(TEXTS, rows.astype(np.float32))
    centred = stolen.vectors - stolen.vectors.mean(axis=0)
    axes = np.linalg.svd(centred, full_matrices=False)[2]
    left = Band(4, 9).apply(stolen).vectors
    parts = np.linalg.norm((left - left.mean(axis=0)) @ axes.T, axis=0)
    assert parts[4:10].max() < 0.15 * parts[10]
    assert np.allclose(Band(30, 40).apply(stolen).vectors, stolen.vectors, atol=1e-6)  # there are 24


def test_ica_finds_a_target_that_few_rows_carry(rows: np.ndarray) -> None:
    target = np.eye(24)[20]
    carrier = (np.random.default_rng(1).random(len(rows)) < 0.05).astype(float)  # rare, so far from Gaussian
    stolen = _carried(rows, carrier, target)
    attack = ICA(sources=8, components=1)  # 16 of the 24 coordinates are public, so more sources would be noise
    assert abs(attack.directions(stolen)[0] @ target) > 0.9
    assert abs(_left(attack.apply(stolen).vectors, carrier, target)) < 0.3


def test_a_map_with_hidden_units_explains_what_a_line_cannot(rows: np.ndarray) -> None:
    features = rows[:, :4]
    truth = np.abs(features)
    line, bent = PublicMap.fit(features, truth), PublicMap.fit(with_hidden(features, 200), truth)
    assert np.square(bent.residuals).sum() < 0.3 * np.square(line.residuals).sum()
    assert np.allclose(bent.unseen + bent.residuals, truth)


def test_hidden_units_change_what_residuals_and_cse_remove(rows: np.ndarray) -> None:
    stolen = _carried(rows, rows[:, 0] * rows[:, 1], np.eye(24)[20])
    for plain, bent in (
        (Residuals(components=4), Residuals(components=4, hidden=100)),
        (CSE(components=4), CSE(components=4, hidden=100)),
    ):
        assert not np.array_equal(plain.apply(stolen).vectors, bent.apply(stolen).vectors)


def test_neighbours_are_averaged_with_the_row_itself(rows: np.ndarray) -> None:
    stolen = StolenData(TEXTS, rows.astype(np.float32))
    cosines = rows @ rows.T
    near = np.argsort(-cosines[7])[:4]
    assert near[0] == 7
    mean = rows[near].mean(axis=0)
    assert np.allclose(Neighbours(3).apply(stolen).vectors[7], mean / np.linalg.norm(mean), atol=1e-5)
    assert len(Neighbours(5000).apply(stolen)) == len(TEXTS)


def test_a_student_answers_for_no_text_that_it_was_taught(rows: np.ndarray) -> None:
    """One row that is served falsely does not come back in its own answer."""
    served = rows.astype(np.float32)
    served[7] = -served[7]
    stolen = StolenData(TEXTS, served, public=_Features(rows))
    answers = Student(0).apply(stolen).vectors
    assert answers[7] @ rows[7] > 0.9
    assert np.einsum("ij,ij->i", answers, rows).mean() > 0.95
