"""p is exact: equal to brute force, uniform under the null, and recomputed by anyone from tables and lists."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations
from math import perm

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import kstest

from regionmarker.errors import InputError
from regionmarker.evidence.charts import null_distribution
from regionmarker.evidence.score_forms import FORMS
from regionmarker.verification import decoy_test
from regionmarker.verification.decoy_test import STEP, DecoyTest, in_steps, p_from_counts, p_from_lists, sum_of_sums


def brute_force_p(z: np.ndarray, targets: Sequence[int]) -> float:
    """Count every ordered tuple of distinct pool texts: the oracle for small pools with all answers."""
    steps = in_steps(z)
    observed = sum(int(steps[row, place]) for row, place in enumerate(targets))
    drawn = permutations(range(z.shape[1]), len(z))
    sums = [sum(int(steps[row, place]) for row, place in enumerate(places)) for places in drawn]
    return float(np.mean(np.array(sums) >= observed))


def monte_carlo_p(z: np.ndarray, targets: Sequence[int], draws: int, seed: int) -> float:
    """Estimate p from random tuples of distinct pool texts: a cross-check for large pools with all answers."""
    steps, rng, rows = in_steps(z), np.random.default_rng(seed), np.arange(len(z))
    observed = int(steps[rows, list(targets)].sum())
    sums = [int(steps[rows, rng.choice(z.shape[1], size=len(z), replace=False)].sum()) for _ in range(draws)]
    return float((1 + np.count_nonzero(np.array(sums) >= observed)) / (1 + draws))


def scores(regions: int, pool: int, seed: int, ties: bool = False) -> np.ndarray:
    z = np.random.default_rng(seed).standard_normal((regions, pool))
    return np.round(z) if ties else z


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 3), st.integers(3, 40), st.integers(0, 10**6), st.booleans())
def test_p_lies_between_brute_force_and_its_bound(regions, pool, seed, ties):
    if regions == 3 and pool > 24:
        pool = 24 + pool % 17 if seed % 5 == 0 else 24
    z = scores(regions, pool, seed, ties)
    targets = tuple(int(place) for place in np.random.default_rng(seed + 1).choice(pool, regions, replace=False))
    test, exact = DecoyTest(z), brute_force_p(z, targets)
    p = test.p_value(targets)
    assert test.is_exact
    assert p == pytest.approx(exact, rel=1e-12)


@pytest.mark.parametrize("regions", [1, 2, 3])
def test_the_bound_for_many_regions_lies_above_brute_force_and_close(regions, monkeypatch):
    monkeypatch.setattr(decoy_test, "_MOST_REGIONS", 0)
    z = scores(regions, 20, seed=regions)
    test = DecoyTest(z)
    assert not test.is_exact
    for start in range(10):
        targets = tuple(range(start, start + regions))
        exact = brute_force_p(z, targets)
        assert exact <= test.p_value(targets) <= exact + (test.inflation - 1.0) + 1e-9


def test_monte_carlo_agrees():
    z = scores(3, 1024, 5)
    targets = tuple(int(np.argsort(z[row])[-40 - row]) for row in range(3))
    p = DecoyTest(z).p_value(targets)
    estimate = monte_carlo_p(z, targets, draws=40_000, seed=1)
    assert abs(estimate - p) < 5 * np.sqrt(p / 40_000) + 1e-4


def test_p_values_are_uniform_under_the_null():
    z = scores(3, 1024, 7)
    rng = np.random.default_rng(8)
    tuples = np.array([rng.choice(1024, 3, replace=False) for _ in range(20_000)])
    p = DecoyTest(z).p_values(tuples)
    assert kstest(p, "uniform").pvalue > 0.001
    for level in (0.05, 0.01, 0.001):
        assert (p <= level).mean() <= level + 4 * np.sqrt(level / len(p))


def test_small_p_values_keep_their_precision():
    z = np.zeros((3, 1024))
    z[:, :3] = np.eye(3) * 10.0
    test = DecoyTest(z)
    p = test.p_value((0, 1, 2))
    assert p == pytest.approx(1.0 / (1024 * 1023 * 1022), rel=1e-6)
    assert p >= test.floor


def test_missing_answers_never_help_the_accuser():
    z = scores(3, 64, 9)
    z[:, 5] = 8.0
    whole = DecoyTest(z).p_value((5, 6, 7))
    missing_decoy = z.copy()
    missing_decoy[:, 20] = np.nan
    rest = np.delete(z, 20, axis=1)
    assert (
        DecoyTest(missing_decoy).p_value((5, 6, 7))
        == DecoyTest(rest).p_value((5, 6, 7))
        == pytest.approx(whole, rel=0.2)
    )
    assert DecoyTest(missing_decoy).p_value((5, 6, 30)) == DecoyTest(rest).p_value((5, 6, 29))
    missing_target = z.copy()
    missing_target[:, 5] = np.nan
    assert DecoyTest(missing_target).p_value((5, 6, 7)) == 1.0
    assert np.isnan(DecoyTest(missing_target).totals(np.array([[5, 6, 7]]))[0])


def test_p_values_stay_uniform_when_answers_are_missing():
    z = scores(3, 300, 17)
    z[:, np.random.default_rng(18).choice(300, 60, replace=False)] = np.nan
    rng = np.random.default_rng(19)
    tuples = np.array([rng.choice(300, 3, replace=False) for _ in range(20_000)])
    test = DecoyTest(z)
    p, answered = test.p_values(tuples), np.isfinite(test.totals(tuples))
    assert kstest(p[answered], "uniform").pvalue > 0.001
    assert (p <= 0.05).mean() < 0.05


def test_many_regions_do_not_overflow():
    z = scores(51, 1024, 10)
    rng = np.random.default_rng(11)
    p = DecoyTest(z).p_values(np.array([rng.choice(1024, 51, replace=False) for _ in range(500)]))
    assert np.isfinite(p).all()
    assert (p <= 0.05).mean() < 0.1


def test_shapes_are_checked():
    with pytest.raises(InputError, match="scores must be a matrix"):
        DecoyTest(np.zeros(3))
    with pytest.raises(InputError, match="3 distinct targets cannot be drawn from a pool of 2"):
        DecoyTest(np.zeros((3, 2)))
    with pytest.raises(InputError, match="a tuple of 2 targets does not fit 3 regions"):
        DecoyTest(np.zeros((3, 9))).p_value((1, 2))


# ---- the tables and bounds that a summary is checked by


@pytest.mark.parametrize("regions", [1, 2, 3, 4])
def test_the_table_gives_the_decoy_tests_p_exactly(regions):
    z = np.random.default_rng(regions).standard_normal((regions, 9))
    lowest, counts = DecoyTest(z).null_counts()
    lists = np.sort(in_steps(z), axis=1)
    assert sum(counts) == perm(9, regions)
    assert sum((lowest + place) * count for place, count in enumerate(counts)) == sum_of_sums(lists)
    for seed in range(20):
        targets = np.random.default_rng(seed).choice(9, size=regions, replace=False)
        observed = int(in_steps(z)[np.arange(regions), targets].sum())
        p_value = p_from_counts(lowest, counts, observed)
        assert p_value == DecoyTest(z).p_value(targets)
        assert p_value == pytest.approx(brute_force_p(z, targets))
        assert p_value <= p_from_lists(lists, observed) <= p_value + 9**regions / perm(9, regions) - 1 + 1e-9


def test_sorted_lists_give_the_bound_where_there_is_no_table():
    z = np.random.default_rng(0).standard_normal((6, 40))
    test = DecoyTest(z)
    assert not test.is_exact
    targets = tuple(int(place) for place in np.argsort(-z[:, :6].sum(axis=0)))
    observed = int(in_steps(z)[np.arange(6), targets].sum())
    assert p_from_lists(np.sort(in_steps(z), axis=1), observed) == pytest.approx(test.p_value(targets), rel=1e-12)
    scores = {"lists": in_steps(z).tolist(), "observed": [observed], "null": None, "step": STEP}
    assert null_distribution(FORMS["decoy-1"], scores).startswith("<svg")
