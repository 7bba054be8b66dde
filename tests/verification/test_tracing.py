"""Tracing: the leaking tenant is named, the others are not."""

from __future__ import annotations

import numpy as np
import pytest
from tests.support.suspects import BUDGET

from regionmarker import RegionMarker, ask, trace
from regionmarker.errors import InputError
from regionmarker.verification.decoy_test import DecoyTest, holm
from regionmarker.verification.examination import examine

TENANTS = ["acme", "zenith", *(f"tenant {number}" for number in range(1000))]


def test_the_leaking_tenant_comes_first(judge_marker, copy_of):
    answers = ask(judge_marker, copy_of(judge_marker, 0.85, tenant="acme"), budget=BUDGET)
    ranking = trace(judge_marker, answers, TENANTS)
    assert ranking[0].tenant == "acme"
    assert ranking[0].accused
    assert sum(row.accused for row in ranking) == 1
    assert len(ranking) == len(TENANTS)


def test_two_leaking_tenants_are_both_named(sentences, embeddings, copy_of):
    """A mix keeps half of each mark, so one of the two may fall short of the level; they lead the ranking always."""
    accused = []
    for seed in (11, 12, 13, 14):
        marker = RegionMarker(seed=seed, pool=1024, reservoir=3500).fit(sentences, embeddings=embeddings)
        copies = [copy_of(marker, 0.9, tenant, seed=number) for number, tenant in enumerate(("acme", "zenith"))]
        answers = ask(marker, lambda texts, copies=copies: copies[0](texts) + copies[1](texts))
        ranking = trace(marker, answers, TENANTS)
        assert {row.tenant for row in ranking[:2]} == {"acme", "zenith"}
        assert ranking[0].accused
        assert not any(row.accused for row in ranking[2:])
        accused.append(ranking[1].accused)
    assert sum(accused) >= 3


def test_nobody_is_accused_when_nobody_leaked(judge_marker, copy_of, innocents):
    suspects = {**innocents, "a copy of vectors without a tenant": copy_of(judge_marker, 0.85)}
    for name, suspect in suspects.items():
        answers = ask(judge_marker, suspect, budget=BUDGET)
        assert not any(row.accused for row in trace(judge_marker, answers, TENANTS)), name


def test_p_values_of_the_others_stay_uniform_when_one_has_leaked(judge_marker, copy_of):
    answers = ask(judge_marker, copy_of(judge_marker, 0.85, tenant="acme"), budget=BUDGET)
    z = examine(judge_marker.key_, answers).tenant_scores()
    tuples = np.array([judge_marker.key_.tenant_targets(f"customer {number}") for number in range(4000)])
    p_values = DecoyTest(z).p_values(tuples)
    assert 150 <= (p_values <= 0.05).sum() <= 250


def test_holm_agrees_with_its_definition():
    p_values = np.random.default_rng(0).random(200) ** 3
    order = np.argsort(p_values)
    expected, running = np.empty(200), 0.0
    for step, place in enumerate(order):
        running = max(running, (200 - step) * p_values[place])
        expected[place] = min(running, 1.0)
    assert np.allclose(holm(p_values), expected)


def test_names_are_needed(judge_marker, copy_of):
    answers = ask(judge_marker, copy_of(judge_marker, 0.85), budget=BUDGET)
    for names in ([], [""]):
        with pytest.raises(InputError, match="give the names of the tenants"):
            trace(judge_marker, answers, names)
