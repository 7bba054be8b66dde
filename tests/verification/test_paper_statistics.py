"""The paper's own statistics: as its formulas say, and what they decide."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ks_2samp

from regionmarker.verification.paper_statistics import paper_statistics

RNG = np.random.default_rng(3)


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


@pytest.fixture
def answers():
    targets = unit(RNG.standard_normal((2, 20)))
    inside = [
        unit(RNG.standard_normal((60, 20)) + pull * target) for pull, target in zip((0.0, 2.0), targets, strict=True)
    ]
    return inside, unit(RNG.standard_normal((80, 20))), targets


def test_each_region_is_compared_with_what_lies_outside(answers):
    inside, outside, targets = answers
    found = paper_statistics(inside, outside, targets)
    for region, rows, target in zip(found.regions, inside, targets, strict=True):
        assert np.isclose(region.delta_cos, (rows @ target).mean() - (outside @ target).mean())
        assert np.isclose(region.delta_l2, -2 * region.delta_cos)
        assert np.isclose(region.p_value, ks_2samp(rows @ target, outside @ target).pvalue)
        assert region.probes == 60


def test_the_strongest_region_decides(answers):
    inside, outside, targets = answers
    found = paper_statistics(inside, outside, targets)
    assert found.p_value == min(region.p_value for region in found.regions)
    assert found.delta_cos == max(region.delta_cos for region in found.regions)
    assert found.copy
    assert "cannot_say" in found.to_dict()


def test_lengths_do_not_matter(answers):
    inside, outside, targets = answers
    found = paper_statistics([rows * 3 for rows in inside], outside * 7, targets * 2)
    assert np.isclose(found.delta_cos, paper_statistics(inside, outside, targets).delta_cos)
