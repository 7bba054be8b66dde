"""The impact report, on real texts."""

from __future__ import annotations

import numpy as np
import pytest

from regionmarker import RegionMarker
from regionmarker.errors import InputError
from regionmarker.impact import measure_impact
from regionmarker.measures import nearest


@pytest.fixture(scope="module")
def some(sentences, embeddings):
    rows = np.random.default_rng(5).permutation(len(sentences))[:800]
    return [sentences[row] for row in rows], embeddings[rows]


def test_it_measures_what_it_says(marker, some, wordllama):
    texts, clean = some
    found = measure_impact(marker, texts, clean, encoder=wordllama)
    marked = np.isin(marker.regions(clean), marker.key_.mark.regions)
    assert found.moved_share == pytest.approx(marked.mean())
    assert 0.95 < found.cosine_of_moved < found.cosine < 1.0
    assert 0.8 < found.neighbours_kept < 1.0
    assert 0.8 < found.neighbours_kept_old_index < 1.0
    assert 0.8 < found.neighbours_kept_old_queries < 1.0
    assert found.retrieval["texts"] > 300
    for situation in ("old_index", "old_queries", "all_marked"):
        assert abs(found.retrieval[situation] - found.retrieval["unmarked"]) < 0.05


def test_a_tenants_own_mark_costs_more(marker, some):
    texts, clean = some
    plain, own = measure_impact(marker, texts, clean), measure_impact(marker, texts, clean, tenant="acme")
    assert own.moved_share > plain.moved_share
    assert own.neighbours_kept < plain.neighbours_kept


def test_a_stronger_mark_costs_more(sentences, embeddings, some):
    texts, clean = some
    kept = [
        measure_impact(
            RegionMarker(seed=1, strength=strength, pool=64, reservoir=512).fit(sentences, embeddings=embeddings),
            texts, clean,
        ).neighbours_kept
        for strength in (0.05, 0.2, 0.6)
    ]  # fmt: skip
    assert kept == sorted(kept, reverse=True)


def test_neighbours_in_an_old_index(some):
    _, clean = some
    assert np.array_equal(np.sort(nearest(clean, 5, among=clean)), np.sort(nearest(clean, 5)))
    turned = np.roll(clean, 1, axis=1)
    assert not np.array_equal(np.sort(nearest(turned, 5, among=clean)), np.sort(nearest(clean, 5)))


def test_too_few_texts_are_refused(marker, some):
    with pytest.raises(InputError, match="needs at least 100 texts, but there are 50"):
        measure_impact(marker, some[0][:50], some[1][:50])
