"""The serving key marks for its tenants and knows nothing else."""

from __future__ import annotations

import numpy as np
import pytest

from regionmarker import RegionMarker
from regionmarker.crypto.secret import Secret
from regionmarker.errors import InputError
from regionmarker.keys.commitment import commit, serving_with_commitment
from regionmarker.keys.file_format import _dump, _load, dump_serving, load_serving
from regionmarker.keys.files import given_opener, open_serving, save_serving


@pytest.fixture
def served(tmp_path, marker):
    path = tmp_path / "serving.rmkey"
    save_serving(path, marker.key_.serving(["acme", "zenith"]), None)
    return path


def test_it_marks_as_the_key_does(served, marker, embeddings):
    worker = RegionMarker.load(served)
    for tenant in ("", "acme", "zenith"):
        assert np.array_equal(worker.transform(embeddings, tenant), marker.transform(embeddings, tenant))
    assert np.array_equal(worker.regions(embeddings), marker.regions(embeddings))
    assert np.allclose(worker.margins(embeddings), marker.margins(embeddings), atol=1e-6)


def test_it_scales_rows_where_the_key_does(tmp_path, sentences, embeddings):
    """0.1.0 lost this: a serving key refused the rows that its own key took."""
    marker = RegionMarker(seed=3, pool=64, reservoir=512, normalise=True).fit(sentences, embeddings=embeddings)
    path = tmp_path / "serving.rmkey"
    save_serving(path, marker.key_.serving(["acme"]), None)
    worker, long_rows = RegionMarker.load(path), 3.0 * embeddings[:50]
    assert worker.normalise
    assert np.array_equal(worker.transform(long_rows, "acme"), marker.transform(long_rows, "acme"))


def test_a_tenant_that_was_not_exported_is_refused(served, embeddings):
    with pytest.raises(InputError, match="tenant 'other' is not in this serving key: export it again"):
        RegionMarker.load(served).transform(embeddings, tenant="other")


def test_it_holds_no_master_secret_and_no_texts(served, marker):
    payload = dump_serving(open_serving(served, given_opener()))
    assert marker.key_.master.reveal() not in payload
    assert marker.key_.master.reveal().hex().encode() not in payload
    assert not any(text.encode() in payload for text in (*marker.key_.pool.texts, *marker.key_.reservoir.texts))


def test_it_cannot_be_saved_as_a_key(served, tmp_path):
    with pytest.raises(InputError, match="it has no master secret"):
        RegionMarker.load(served).save(tmp_path / "other.rmkey")


@pytest.mark.parametrize("reducer", ["svd", "autoencoder", "none"])
def test_it_works_for_every_reducer(tmp_path, sentences, embeddings, reducer):
    marker = RegionMarker(seed=2, reducer=reducer, ratio=0.1, tenant_ratio=0.1, pool=64, reservoir=512)
    marker.fit(sentences, embeddings=embeddings)
    path = tmp_path / "serving.rmkey"
    save_serving(path, marker.key_.serving(["acme"]), None)
    rows = embeddings[:200]
    assert np.array_equal(RegionMarker.load(path).transform(rows, "acme"), marker.transform(rows, "acme"))


def test_it_names_the_commitment_and_the_salt_of_its_key(tmp_path, real_marker, marker):
    key = real_marker.key_.with_salt(bytes(range(16)))
    path = tmp_path / "serving.rmkey"
    save_serving(path, serving_with_commitment(key, ["acme"]), None)
    serving = RegionMarker.load(path).serving_
    assert (serving.commitment, serving.salt) == (commit(key), key.salt.hex())
    assert serving_with_commitment(marker.key_, []).commitment == ""  # a TEST key


def test_a_serving_key_of_the_first_days_has_neither(served):
    serving = open_serving(served, given_opener())
    document, tensors = _load(Secret(dump_serving(serving)))
    del document["commitment"], document["salt"], document["normalise"]
    old = load_serving(Secret(_dump(document, tensors)))
    assert (old.commitment, old.salt, old.normalise) == ("", "", False)
    assert old.tenants == serving.tenants
