"""Simulated copies of a graded mark: what the short way says is what the statistic says."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from regionmarker import RegionMarker
from regionmarker.crypto.secret import Secret
from regionmarker.marks.reduction import haar
from regionmarker.verification.clean_space import MATCHED
from regionmarker.verification.examination import laid_out
from regionmarker.verification.graded_copies import PENALTY, GradedCopies, least_total
from regionmarker.verification.list_test import ListTest
from regionmarker.verification.questions import plan_questions
from regionmarker.verification.simulated_stealer import SimulatedStealer, Student

LEVEL = 1e-3


@pytest.fixture(scope="module")
def key(sentences, embeddings):
    return RegionMarker(seed=11, reservoir=1600).fit(sentences[:4500], embeddings=embeddings[:4500]).key_


@pytest.fixture(scope="module")
def questions(key):
    return plan_questions(key, 1500, seed=0)


@pytest.fixture(scope="module")
def bought(embeddings):
    return embeddings[4500:]


@pytest.fixture(scope="module")
def copies(key, questions, bought) -> GradedCopies:
    return GradedCopies(key.mark, questions.probes.embeddings, bought, key.pool.embeddings)


def judged(key, questions, answers, redrawn) -> float:
    """Return U by the whole of decoy-2."""
    examination = laid_out(key, questions, lambda _texts: answers)
    return float(examination.test(examination.scores()).totals(np.array([redrawn.provider_targets()]))[0])


def test_it_agrees_with_the_statistic(key, questions, bought, copies):
    """The same stealers, the same targets: once as the product marks, learns and judges, once the short way."""
    mark, asked, short, whole = key.mark, len(questions.probes), [], []
    turn = haar(np.random.default_rng(0), key.width, key.width).astype(np.float32)
    for number, blur in enumerate((0.3, 0.8, 1.5)):
        rng = np.random.default_rng(number)
        features, chosen = copies.view(128, rng).features(blur), np.sort(rng.permutation(len(bought))[:1200])
        redrawn = replace(key, master=Secret(rng.bytes(32)))
        drawn = np.zeros(len(mark.weights), dtype=np.int64)
        drawn[mark.settings.places("provider")] = redrawn.provider_targets()
        drawn[mark.settings.places("tenants")] = redrawn.tenant_targets("")
        copy = copies.copy(features, chosen)
        short += [copies.totals(copy, [drawn], LEVEL, matched)[0][0] for matched in (True, False)]
        student = Student.drawn(features[asked + chosen], key.width, 0, rng)
        stealer = SimulatedStealer(features, asked + chosen, student, PENALTY)
        answers = stealer.steal(RegionMarker.from_key(redrawn).transform(bought[chosen]))(np.arange(asked))
        whole += [judged(key, questions, said, redrawn) for said in (answers, answers @ turn)]
        clean = questions.probes.embeddings
        assert copy.plain_fidelity == pytest.approx(float((answers * clean).sum(axis=1).mean()), abs=0.02)
    assert np.abs(np.subtract(short, whole)).max() < 0.8
    assert np.corrcoef(short, whole)[0, 1] > 0.99
    assert max(whole) > 6  # there was something to agree on


def test_one_copy_serves_any_strength_and_without_a_mark_nothing_is_found(copies):
    rng = np.random.default_rng(1)
    copy = copies.copy(copies.view(96, rng).features(0.5), np.arange(copies.bought))
    means = [
        copies.excesses(copy, LEVEL, 16, np.random.default_rng(2), matched=matched, strength=strength).mean()
        for matched in (True, False)
        for strength in (1e-9, 0.05, 0.15)
    ]
    assert means[0] < means[1] < means[2]
    assert means[3] < means[4] < means[5]
    assert max(means[0], means[3]) < -1.5


def test_more_noise_makes_a_worse_copy(copies):
    view = copies.view(96, np.random.default_rng(3))
    found = [copies.copy(view.features(blur), np.arange(copies.bought)).fidelity for blur in (0.2, 1.0, 3.0)]
    assert found == sorted(found, reverse=True)
    assert found[0] > 0.8


def test_with_few_texts_to_buy_nobody_answers_what_it_learnt_from(key, questions, bought):
    """A stealer that had learnt the asked texts themselves would copy them through any noise."""
    few = GradedCopies(key.mark, questions.probes.embeddings, bought[:100], key.pool.embeddings, buys_asked=True)
    view = few.view(96, np.random.default_rng(4))
    assert few.copy(view.features(1.0), np.arange(100)).fidelity < 0.85
    assert few.copy(view.features(30.0), np.arange(100)).fidelity < 0.2


def test_targets_are_drawn_from_the_lists(copies):
    settings, rng = copies.mark.settings, np.random.default_rng(5)
    size = settings.list_size(len(copies.candidates))
    for _ in range(20):
        drawn = copies.drawn_targets(rng)
        for group in settings.counts():
            mine = drawn[settings.places(group)]
            assert (mine // size == np.arange(len(mine))).all()


def test_the_least_total_is_where_the_exact_test_convicts():
    rng = np.random.default_rng(6)
    z, weights = rng.standard_normal((12, 64)), np.full(12, 12**-0.5)
    least, test = least_total(weights[:, None] * z, LEVEL), ListTest(z, weights)
    tuples = 64 * np.arange(12) + rng.integers(64, size=(20_000, 12))
    totals, p_values = np.abs(test.totals(tuples)), test.p_values(tuples)
    assert (p_values[totals > least + 0.1] <= LEVEL).all()
    assert (p_values[totals < least - 0.1] > LEVEL).all()
    assert least_total(weights[:, None] * z, 1e-30) > totals.max()


def test_axes_of_a_good_copy_match_and_of_a_hopeless_one_do_not(copies):
    view, rng = copies.view(96, np.random.default_rng(7)), np.random.default_rng(7)
    assert copies.matched_share(copies.copy(view.features(0.3), rng.permutation(copies.bought))) >= MATCHED
    assert copies.matched_share(copies.copy(view.features(50.0), rng.permutation(copies.bought))) < MATCHED
