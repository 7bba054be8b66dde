"""The graded mark in a serving key: stored and read again it marks the same bits, for the accounts it has alone."""

from __future__ import annotations

import numpy as np
import pytest

from regionmarker import RegionMarker
from regionmarker.errors import InputError
from regionmarker.marking import engine
from regionmarker.marks.number_format import NumberFormat
from regionmarker.marks.served_carriers import WATCHED, ServedCarriers


@pytest.fixture(scope="module")
def served(sentences, embeddings) -> ServedCarriers:
    mark = RegionMarker(seed=1).fit(sentences, embeddings=embeddings).key_.serving(["", "acme"]).mark
    assert isinstance(mark, ServedCarriers)
    return mark


def test_stored_and_read_again_it_marks_the_same_bits(served, embeddings):
    again = ServedCarriers.from_parts(served.document(), served.arrays())
    for name in ("", "acme"):
        plans = [mark.plan(name, NumberFormat.float32) for mark in (served, again)]
        first, second = (engine.mark(plan, embeddings[:50]) for plan in plans)
        assert first.tobytes() == second.tobytes()


def test_it_names_its_tenants_and_refuses_others(served):
    assert served.tenants == ("acme",)
    assert served.describe()["tenants"] == 1
    with pytest.raises(InputError, match="tenant 'globex' is not in this serving key"):
        served.plan("globex", NumberFormat.float32)


def test_it_watches_the_first_hyperplanes_as_the_corpus_fills_them(served, embeddings):
    assert served.shares.shape == (2**WATCHED,)
    assert served.shares.sum() == pytest.approx(1.0)
    assert np.allclose(served.signed_distances(embeddings), embeddings @ served.planes.T - served.offsets)
