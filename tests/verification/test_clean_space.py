"""The clean half is shared between suspects, and sharing changes no bit of any score."""

from __future__ import annotations

import numpy as np
import pytest

from regionmarker.errors import SecretLeakError
from regionmarker.verification.clean_space import CleanSpace
from regionmarker.verification.decoy1 import region_scores


@pytest.fixture
def material():
    rng = np.random.default_rng(0)
    clean = rng.standard_normal((400, 24)).astype(np.float32)
    clean /= np.linalg.norm(clean, axis=1, keepdims=True)
    coordinates = clean[:, :2].astype(np.float64)
    return clean[:300], coordinates[:300], clean[300:], coordinates[300:]


def answers_of(material, seed):
    rows = np.vstack([material[0], material[2]])
    turned = rows @ np.random.default_rng(seed).standard_normal((24, 16)).astype(np.float32)
    turned = turned + np.maximum(turned, 0)  # not a linear map: something is left to score
    return turned[:300], turned[300:]


def test_shared_and_fresh_sides_give_the_same_scores(material):
    shared = CleanSpace(*material)
    for seed in range(3):
        for regions, others in (((1,), ()), ((0, 2), (1,))):
            given = answers_of(material, seed)
            z = region_scores(*given, shared, regions, others)
            assert np.array_equal(z, region_scores(*given, CleanSpace(*material), regions, others))
            assert np.ptp(z) > 0


def test_missing_answers_leave_the_shared_side_as_it_was(material):
    shared = CleanSpace(*material)
    probes, pool = answers_of(material, 1)
    before = region_scores(probes, pool, shared, (1,))
    silent_probes, silent_pool = probes.copy(), pool.copy()
    silent_probes[:20], silent_pool[7] = np.nan, np.nan
    z = region_scores(silent_probes, silent_pool, shared, (1,))
    assert np.isnan(z[:, 7]).all()
    assert np.isfinite(np.delete(z, 7, axis=1)).all()
    assert np.array_equal(region_scores(probes, pool, shared, (1,)), before)


def test_it_prints_nothing_and_cannot_be_copied(material):
    side = CleanSpace(*material)
    assert repr(side) == "<CleanSpace: sealed>"
    with pytest.raises(SecretLeakError):
        side.__reduce__()
