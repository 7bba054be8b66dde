"""decoy-2 finds the graded mark in a copy, rotated or not, and nothing where nothing was stolen."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from regionmarker.corpus import TextSet
from regionmarker.crypto.secret import Secret
from regionmarker.marks.corpus_summary import CorpusSummary
from regionmarker.marks.graded import GradedMark
from regionmarker.marks.graded_settings import GradedSettings
from regionmarker.marks.reduction import haar
from regionmarker.verification.decoy2 import axes_match, graded_scores
from regionmarker.verification.list_test import ListTest
from regionmarker.verification.simulated_stealer import SimulatedStealer, Student

MASTER = Secret(bytes(range(32)))
POOL, ASKED = 24 * 16, 1400


class Case:
    """A provider with a graded mark, and a stealer that sees clean vectors through noise."""

    def __init__(self, sentences, embeddings) -> None:
        summary = CorpusSummary(Secret(bytes(32)), 10)
        summary.update(sentences, embeddings)
        self.pool = TextSet(tuple(sentences[:POOL]), embeddings[:POOL])
        self.asked = embeddings[POOL : POOL + ASKED]
        settings = GradedSettings.within(embeddings.shape[1], tenants=False)
        self.mark = replace(GradedMark.fit(summary, MASTER, settings, (self.pool,)), strength=0.1)
        self.targets = self.mark.provider_targets(MASTER, b"", POOL)
        bought = np.arange(POOL + ASKED, len(embeddings))
        rng = np.random.default_rng(0)
        features = embeddings + 0.03 * rng.standard_normal(embeddings.shape).astype(np.float32)
        student = Student.drawn(features[bought], embeddings.shape[1], 1024, rng)
        self._stealer, self._clean, self._bought = SimulatedStealer(features, bought, student, 0.1), embeddings, bought

    def copy(self, marked: bool) -> np.ndarray:
        served = self._clean[self._bought]
        if marked:
            served = self.mark.mark_rows(served, self.pool.embeddings[list(self.targets)]).astype(np.float32)
        return self._stealer.steal(served)(np.arange(POOL, POOL + ASKED))

    def test(self, answers: np.ndarray) -> tuple[bool, ListTest]:
        found = graded_scores(self.mark, self.asked, answers, self.pool.embeddings)
        own = found.scores.reshape(24, 24, 16)[np.arange(24), np.arange(24)]
        return found.matched, ListTest(own, self.mark.settings.test_weights("provider", matched=found.matched))


@pytest.fixture(scope="module")
def case(sentences, embeddings) -> Case:
    return Case(sentences, embeddings)


@pytest.fixture(scope="module")
def rotation(embeddings) -> np.ndarray:
    return haar(np.random.default_rng(1), embeddings.shape[1], embeddings.shape[1])


def test_a_copy_is_caught_as_it_is_and_rotated(case, rotation):
    copy = case.copy(marked=True)
    matched, test = case.test(copy)
    assert matched
    assert test.p_value(case.targets) < 1e-9
    matched, test = case.test(copy @ rotation)
    assert not matched
    assert test.p_value(case.targets) < 1e-3


def test_order_sign_and_loss_of_dimensions_do_not_hide_a_copy(case):
    """Matched dimensions are read where they are, whatever their order, and whichever are left."""
    copy = case.copy(marked=True)
    width = copy.shape[1]
    order = np.random.default_rng(3).permutation(width)
    whole = case.test(copy)[1].totals(np.array([case.targets]))
    matched, test = case.test(-copy[:, order])
    assert matched
    assert np.allclose(test.totals(np.array([case.targets])), whole, atol=0.2)
    matched, test = case.test(np.roll(copy, 5, axis=1)[:, : 2 * width // 3])
    assert matched
    assert test.p_value(case.targets) < 1e-9


def test_a_projection_and_a_compression_are_read_like_a_rotation(case):
    """Neither keeps an orthonormal frame, and the second has fewer dimensions than the band of targets."""
    copy = case.copy(marked=True)
    width = copy.shape[1]
    axes = np.linalg.svd(copy - copy.mean(axis=0), full_matrices=False)[2]
    for how in (np.random.default_rng(4).standard_normal((width, width)), axes[: width // 2].T):
        matched, test = case.test(copy @ (how / np.linalg.norm(how, ord="fro") * np.sqrt(width)))
        assert not matched
        assert test.p_value(case.targets) < 1e-3


def test_the_length_of_an_answer_does_not_count(case):
    copy = case.copy(marked=True)
    lengths = np.exp(np.random.default_rng(6).standard_normal((len(copy), 1)))
    plain, scaled = (
        graded_scores(case.mark, case.asked, rows, case.pool.embeddings).scores for rows in (copy, 7 * lengths * copy)
    )
    assert np.allclose(plain, scaled, atol=0.05)


def test_weights_depend_on_the_branch_alone(case):
    known, rotated = (case.mark.settings.test_weights("provider", matched=matched) for matched in (True, False))
    assert np.isclose(np.square(known).sum(), 1.0)
    assert np.isclose(np.square(rotated).sum(), 1.0)
    assert np.isclose(np.square(known[8:]).sum(), 0.5)
    assert np.isclose(np.square(rotated[8:]).sum(), 0.64)


@pytest.mark.parametrize("answers", ["constant", "one dimension", "noise"])
def test_answers_without_meaning_give_finite_scores(case, answers):
    rng = np.random.default_rng(5)
    rows = {
        "constant": np.ones((ASKED, 32)),
        "one dimension": rng.choice([-1.0, 1.0], (ASKED, 1)),
        "noise": rng.standard_normal((ASKED, 32)) * 1e-6,
    }[answers].astype(np.float32)
    found = graded_scores(case.mark, case.asked, rows, case.pool.embeddings)
    assert np.isfinite(found.scores).all()
    assert case.test(rows)[1].p_value(case.targets) > 1e-4


def test_a_copy_of_unmarked_vectors_is_not(case, rotation):
    copy = case.copy(marked=False)
    for answers in (copy, copy @ rotation):
        # p is uniform here: another Python has other sentences, and falls below this once in 5,000.
        assert case.test(answers)[1].p_value(case.targets) > 1e-4


def test_another_draw_of_targets_convicts_nobody(case):
    """A wrong key: of 2,000 redrawn tuples as many are below a level as the level says."""
    _, test = case.test(case.copy(marked=True))
    rng = np.random.default_rng(2)
    p = test.p_values(rng.integers(0, 16, (2000, 24)) + 16 * np.arange(24))
    assert 0.03 < (p <= 0.05).mean() < 0.075
    assert (p <= 1e-3).mean() < 0.006


def test_scores_are_standardised_and_see_no_target(case):
    found = graded_scores(case.mark, case.asked, case.copy(marked=True), case.pool.embeddings)
    assert found.scores.shape == (24, POOL)
    assert np.allclose(found.scores.std(axis=1), 1.0)
    assert np.isfinite(found.scores).all()


def test_axes_match_in_any_order_and_sign(case, rotation):
    x = case.asked.astype(np.float64) - case.asked.mean(axis=0)
    order = np.random.default_rng(3).permutation(x.shape[1])
    assert axes_match(x, -x[:, order])
    assert axes_match(x, x[:, : 2 * x.shape[1] // 3])
    assert not axes_match(x, x @ rotation)
