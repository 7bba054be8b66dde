"""The open choices of the graded mark: what fits a width, and how a corpus is divided."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest

from regionmarker.errors import InputError
from regionmarker.marks.graded_settings import LEAST_LIST, LEAST_PROBES, RESERVOIR, GradedSettings


@pytest.mark.parametrize("tenants", [True, False])
@pytest.mark.parametrize("width", [32, 33, 64, 100, 256, 384, 768, 1536, 3072])
def test_spans_fit_every_width(width, tenants):
    found = GradedSettings.within(width, tenants=tenants)
    assert 0 < found.band_start < found.band_end <= width
    assert max(found.singles, found.tenant_singles) <= found.single_end - found.single_start
    assert found.single_end <= found.band_end
    assert max(found.pairs, found.tenant_pairs) <= comb(found.pair_planes, 2)
    assert found.pair_planes <= found.pair_span <= width


def test_groups_are_parts_of_all_carriers():
    found = GradedSettings()
    provider, tenants = found.places("provider"), found.places("tenants")
    assert sorted([*provider, *tenants]) == list(range(found.all_singles + found.all_pairs))
    assert not len(GradedSettings.within(768, tenants=False).places("tenants"))


@pytest.mark.parametrize("texts", [500, 2_000, 5_000, 6_000, 100_000])
def test_a_small_corpus_makes_a_smaller_key(texts):
    found = GradedSettings()
    pool, reservoir = found.divided(texts, RESERVOIR)
    assert pool % found.lists == 0
    assert pool // found.lists >= LEAST_LIST
    assert LEAST_PROBES <= reservoir <= RESERVOIR
    assert pool + reservoir <= texts
    assert pool <= found.pool_size()


def test_below_what_a_test_needs_is_an_error():
    least = GradedSettings().lists * LEAST_LIST + LEAST_PROBES
    GradedSettings().divided(least, RESERVOIR)
    with pytest.raises(InputError, match=f"has {least - 1} distinct texts, but a key needs at least {least}"):
        GradedSettings().divided(least - 1, RESERVOIR)


def test_weights_have_unit_variance_in_both_branches():
    for matched in (True, False):
        for group in ("provider", "tenants"):
            assert np.isclose(np.square(GradedSettings().test_weights(group, matched=matched)).sum(), 1.0)
