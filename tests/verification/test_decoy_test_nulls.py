"""The tables and bounds that a summary is checked by, against the decoy test itself."""

from __future__ import annotations

from math import perm

import numpy as np
import pytest

from regionmarker.evidence.charts import null_distribution
from regionmarker.verification.decoy_test import (
    STEP,
    DecoyTest,
    brute_force_p,
    null_counts,
    p_from_counts,
    p_from_lists,
    sum_of_sums,
    to_grid,
)


@pytest.mark.parametrize("regions", [1, 2, 3, 4])
def test_the_table_gives_the_decoy_tests_p_exactly(regions):
    z = np.random.default_rng(regions).standard_normal((regions, 9))
    lowest, counts = null_counts(to_grid(z))
    lists = np.sort(to_grid(z), axis=1)
    assert sum(counts) == perm(9, regions)
    assert sum((lowest + place) * count for place, count in enumerate(counts)) == sum_of_sums(lists)
    for seed in range(20):
        targets = np.random.default_rng(seed).choice(9, size=regions, replace=False)
        observed = int(to_grid(z)[np.arange(regions), targets].sum())
        p_value = p_from_counts(lowest, counts, observed)
        assert p_value == DecoyTest(z).p_value(targets)
        assert p_value == pytest.approx(brute_force_p(z, targets))
        assert p_value <= p_from_lists(lists, observed) <= p_value + 9**regions / perm(9, regions) - 1 + 1e-9


def test_sorted_lists_give_the_bound_where_there_is_no_table():
    z = np.random.default_rng(0).standard_normal((6, 40))
    test = DecoyTest(z)
    assert not test.is_exact
    targets = tuple(int(place) for place in np.argsort(-z[:, :6].sum(axis=0)))
    observed = int(to_grid(z)[np.arange(6), targets].sum())
    assert p_from_lists(np.sort(to_grid(z), axis=1), observed) == pytest.approx(test.p_value(targets), rel=1e-12)
    scores = {"lists": to_grid(z).tolist(), "observed": [observed], "null": None, "step": STEP}
    assert null_distribution(scores).startswith("<svg")
