"""Which mark the parameters of a marker choose, and what does not go together."""

from __future__ import annotations

import numpy as np
import pytest

from regionmarker import RegionMarker
from regionmarker.errors import InputError
from regionmarker.marking.parameters import is_graded, mark_settings
from regionmarker.marks.graded_settings import GradedSettings
from regionmarker.marks.regions import RegionSettings

PUBLISHED = [{"dimension": 4}, {"ratio": 0.2}, {"subspace": 32}, {"strength": 0.2}, {"tenant_ratio": 0.0}, {"pool": 64},
             {"reducer": "umap"}, {"reducer": "none"}]  # fmt: skip


@pytest.mark.parametrize("given", PUBLISHED, ids=lambda given: next(iter(given)))
def test_any_of_the_papers_parameters_chooses_the_published_mark(given):
    assert not is_graded(RegionMarker(**given).get_params())
    assert isinstance(mark_settings(RegionMarker(**given).get_params(), 256), RegionSettings)


@pytest.mark.parametrize("given", [{}, {"kept": 0.9}, {"reducer": "svd"}, {"tenants": False}, {"reservoir": 500}])
def test_anything_else_is_the_graded_mark(given):
    assert is_graded(RegionMarker(**given).get_params())
    assert isinstance(mark_settings(RegionMarker(**given).get_params(), 256), GradedSettings)


@pytest.mark.parametrize("given", PUBLISHED, ids=lambda given: next(iter(given)))
def test_the_two_do_not_go_together(given, sentences, embeddings):
    with pytest.raises(InputError, match=r"kept and .* do not go together"):
        RegionMarker(kept=0.9, **given).fit(sentences[:600], embeddings=embeddings[:600])
    with pytest.raises(InputError, match=r"tenants=False and .* do not go together"):
        RegionMarker(tenants=False, **given).fit(sentences[:600], embeddings=embeddings[:600])


@pytest.mark.parametrize(
    ("given", "message"),
    [({"kept": 1.0}, "kept is 1.0"), ({"kept": 0.1}, "kept is 0.1"), ({"reducer": "lda"}, "'lda' is not known"),
     ({"level": 0.0}, "level is 0.0"), ({"grid": "int8"}, "'int8' is not known")],
)  # fmt: skip
def test_what_is_out_of_range_is_named(given, message, sentences, embeddings):
    with pytest.raises(InputError, match=message):
        RegionMarker(**given).fit(sentences[:600], embeddings=embeddings[:600])


def test_the_papers_own_setting(sentences, embeddings):
    marker = RegionMarker.published(seed=1, pool=64, reservoir=256).fit(sentences[:600], embeddings=embeddings[:600])
    settings = marker.key_.mark.settings
    assert (settings.dimension, settings.ratio, settings.strength, settings.subspace) == (4, 0.2, 0.2, 4)
    assert settings.tenant_ratio == 0.0


@pytest.mark.parametrize(
    "given", [{"kept": 0.9, "tenants": False}, {"kept": 0.95}, {"strength": 0.3, "pool": 64, "reservoir": 256}]
)
def test_a_marker_of_a_key_has_the_keys_parameters(given, sentences, embeddings):
    fitted = RegionMarker(seed=1, **given).fit(sentences[:1000], embeddings=embeddings[:1000])
    again = RegionMarker.from_key(fitted.key_)
    assert all(getattr(again, name) == value for name, value in given.items())
    assert np.array_equal(again.transform(embeddings[:50]), fitted.transform(embeddings[:50]))


def test_two_thousand_texts_make_a_key_that_catches_a_copy(sentences, embeddings):
    marker = RegionMarker(seed=2).fit(sentences[:2000], embeddings=embeddings[:2000])
    assert len(marker.key_.pool) + len(marker.key_.reservoir) == 2000
    assert len(marker.key_.reservoir) < 2000
