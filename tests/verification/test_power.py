"""What a run would have caught."""

from __future__ import annotations

import numpy as np
import pytest
from tests.support.suspects import BUDGET

from regionmarker import Answers, RegionMarker, verify
from regionmarker.verification.power import SETS, CaughtShare, Power, estimate_power, reliably_caught
from regionmarker.verification.questions import plan_questions


@pytest.fixture(scope="module")
def graded(sentences, embeddings) -> RegionMarker:
    return RegionMarker(seed=11, reservoir=1600).fit(sentences[:6000], embeddings=embeddings[:6000])


@pytest.fixture(scope="module")
def published(sentences, embeddings) -> RegionMarker:
    return RegionMarker(seed=11, strength=0.2, pool=256, reservoir=2000).fit(sentences, embeddings=embeddings)


def check_curve(power: Power) -> None:
    assert power.fidelities == tuple(sorted(power.fidelities))
    for low, share, high in zip(power.low, power.detected, power.high, strict=True):
        assert 0 <= low <= share <= high <= 1
    assert power.sets == SETS
    assert power.to_dict()["low"] == power.low


@pytest.mark.parametrize("axes", ["matched", "unknown"])
def test_the_power_of_a_graded_run_is_told(graded, axes):
    power = estimate_power(graded.key_, plan_questions(graded.key_, 1400, seed=0), 1e-3, axes=axes, seed=1)
    check_curve(power)
    assert power.axes == axes
    assert power.detected[-1] == 1.0
    assert power.enough


def test_a_rotated_suspect_is_harder_and_so_are_few_questions_and_a_low_level(graded):
    def low(budget: int, axes: str, level: float) -> float:
        questions = plan_questions(graded.key_, budget, seed=0)
        return sum(estimate_power(graded.key_, questions, level, axes=axes, seed=1).low)

    assert low(1400, "unknown", 1e-3) < low(1400, "matched", 1e-3)
    assert low(300, "unknown", 1e-3) < low(1400, "unknown", 1e-3)
    assert low(1400, "unknown", 1e-12) < low(1400, "unknown", 1e-3)


def test_a_level_that_no_list_can_give_is_never_reached(graded):
    power = estimate_power(graded.key_, plan_questions(graded.key_, 300, seed=0), 1e-40, seed=1)
    assert set(power.detected) == {0.0}
    assert not power.enough


def test_the_power_of_a_published_run_is_told(published):
    power = estimate_power(published.key_, plan_questions(published.key_, BUDGET, seed=0), 1e-3, seed=1)
    check_curve(power)
    assert power.axes is None
    assert power.detected[-1] == 1.0


def test_it_is_the_same_for_the_same_seed_and_does_not_know_the_targets(graded):
    questions = plan_questions(graded.key_, 400, seed=0)
    first, again = (estimate_power(graded.key_, questions, 1e-3, seed=2) for _ in range(2))
    assert first == again
    salted = graded.key_.with_salt(b"0123456789abcdef")
    assert salted.provider_targets() != graded.key_.provider_targets()
    assert estimate_power(salted, questions, 1e-3, seed=2) == first


def test_a_verdict_counts_what_was_answered_and_is_inconclusive_without_power(graded, clean_of):
    texts = plan_questions(graded.key_, 1400, seed=0).texts
    rows = clean_of(texts).copy()
    rows[400:] = np.nan
    few = verify(graded, Answers("half silent", texts, rows), level=1e-3)
    all_of_them = verify(graded, Answers("open", texts, clean_of(texts)), level=1e-3)
    assert few.power.texts > all_of_them.power.texts  # what was not answered can still have been bought
    assert all_of_them.outcome == "no evidence"
    assert verify(graded, Answers("open", texts, clean_of(texts)), level=1e-40).outcome == "inconclusive"


# ---- the interval


def test_draws_on_one_set_do_not_narrow_the_interval():
    sets = np.array([0.5, 1.5, -0.5, 2.0])[:, None]
    noise = np.tile([-1.0, 1.0], 200)
    few, many = (CaughtShare.of(sets + noise[None, :count]) for count in (2, 400))
    assert many.high - many.low > 0.8 * (few.high - few.low)
    assert many.high - many.low > 0.4


def test_the_interval_covers_the_true_share():
    """Sets with means of their own: 95 % of intervals hold the share of all copies of all sets, or nearly so."""
    from scipy.special import ndtr

    rng, held, runs = np.random.default_rng(3), 0, 400
    for _ in range(runs):
        centre = rng.uniform(-1.0, 3.0)
        share = CaughtShare.of(centre + rng.standard_normal((6, 1)) + rng.standard_normal((6, 4)))
        held += share.low - 0.01 <= ndtr(centre / np.sqrt(2)) <= share.high + 0.01
    assert held / runs > 0.9


def test_without_spread_the_share_is_all_or_nothing():
    assert CaughtShare.of(np.full((3, 1), 1.0)) == CaughtShare(1.0, 1.0, 1.0)
    assert CaughtShare.of(np.full((3, 2), -1.0)) == CaughtShare(0.0, 0.0, 0.0)


def test_caught_means_from_there_on():
    assert reliably_caught([0.3, 0.5, 0.7], [1.0, 0.2, 0.95]) == 0.7
    assert reliably_caught([0.3, 0.5], [0.2, 0.89]) is None
