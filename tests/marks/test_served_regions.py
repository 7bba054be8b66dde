"""The published mark in a serving key: stored and read again it marks the same bits, for the tenants it has alone."""

from __future__ import annotations

import pytest

from regionmarker import RegionMarker
from regionmarker.errors import InputError
from regionmarker.marks.number_format import NumberFormat
from regionmarker.marks.served_regions import ServedRegions


@pytest.fixture(scope="module", params=["pca", "none"])
def served(request, sentences, embeddings) -> ServedRegions:
    small = {"dimension": 3, "ratio": 0.2, "tenant_ratio": 0.2, "pool": 64, "reservoir": 256}
    marker = RegionMarker(**small, reducer=request.param, seed=1).fit(sentences, embeddings=embeddings)
    mark = marker.key_.serving(["acme"]).mark
    assert isinstance(mark, ServedRegions)
    return mark


def test_stored_and_read_again_it_lays_out_the_same(served, embeddings):
    again = ServedRegions.from_parts(served.document(), served.arrays())
    first, second = (mark.plan("acme", NumberFormat.float32) for mark in (served, again))
    assert first.target_of_region.tolist() == second.target_of_region.tolist()
    assert first.targets.tobytes() == second.targets.tobytes()
    distances = [mark.signed_distances(embeddings[:20]) for mark in (served, again)]
    assert distances[0].tobytes() == distances[1].tobytes()


def test_nobody_in_particular_has_the_providers_regions_alone(served):
    nobody, acme = (served.plan(name, NumberFormat.float32).target_of_region for name in ("", "acme"))
    assert (nobody > 0).sum() == len(served.regions)
    assert (acme > 0).sum() == len(served.regions) + len(served.tenant_regions)
    with pytest.raises(InputError, match="tenant 'globex' is not in this serving key"):
        served.plan("globex", NumberFormat.float32)
