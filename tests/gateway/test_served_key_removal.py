"""With a graded key nothing is served that would let customers subtract the mark, unless someone accepts that."""

from __future__ import annotations

from dataclasses import replace

import pytest

from regionmarker import RegionMarker
from regionmarker.errors import InputError
from regionmarker.gateway.gateway import open_gateway
from regionmarker.gateway.served_key import KeyVersion, refuse_removal
from regionmarker.gateway.settings import Settings


@pytest.fixture(scope="module")
def graded(sentences, embeddings) -> RegionMarker:
    fitted = RegionMarker(seed=3).fit(sentences[:600], embeddings=embeddings[:600])
    return RegionMarker.from_key(replace(fitted.key_, test=False))


@pytest.mark.parametrize("unmarked", ["shadow-tenants", "everyone"])
def test_clean_vectors_beside_a_graded_mark_are_refused(graded, tmp_path, unmarked):
    graded.save(tmp_path / "k.rmkey")
    with pytest.raises(InputError, match=f"--serve-unmarked {unmarked} beside a graded mark"):
        open_gateway(Settings(tmp_path / "k.rmkey", unmarked=unmarked))
    open_gateway(Settings(tmp_path / "k.rmkey", unmarked=unmarked, accept_removal=True))
    open_gateway(Settings(tmp_path / "k.rmkey"))


def test_another_key_for_the_same_model_is_refused(graded, sentences, embeddings):
    current = KeyVersion(RegionMarker.from_serving(graded.serving_))
    other = RegionMarker(seed=4).fit(sentences[:600], embeddings=embeddings[:600])
    refuse_removal(graded.key_.serving(["a new tenant"]), "nobody", current)
    with pytest.raises(InputError, match="can remove both marks"):
        refuse_removal(other.serving_, "nobody", current)


def test_the_published_mark_may_be_staged_and_rotated(marker, real_marker):
    refuse_removal(marker.serving_, "everyone", KeyVersion(RegionMarker.from_serving(real_marker.serving_)))
