"""What every mark promises: it survives a key file, draws by the master secret, and serves no more than it must."""

from __future__ import annotations

import copy
import json
import pickle

import numpy as np
import pytest

from regionmarker import RegionMarker
from regionmarker.crypto.secret import Secret
from regionmarker.errors import SecretLeakError
from regionmarker.keys.key import Key
from regionmarker.marks import MARKS, SERVED_MARKS
from regionmarker.marks.number_format import NumberFormat

TENANTS = ("acme", "globex")


@pytest.fixture(scope="module", params=sorted(MARKS))
def key(request, sentences, embeddings) -> Key:
    """A key with a mark of this kind."""
    made = {"regions": {"pool": 64, "reservoir": 256}, "graded": {}}[request.param]
    found = RegionMarker(seed=7, **made).fit(sentences[:2000], embeddings=embeddings[:2000]).key_
    assert found.mark.kind == request.param
    return found


@pytest.fixture(scope="module")
def served(key):
    return key.serving(TENANTS).mark


def test_every_mark_has_a_served_half():
    assert MARKS.keys() == SERVED_MARKS.keys()
    assert all(kind == mark.kind for table in (MARKS, SERVED_MARKS) for kind, mark in table.items())


def test_both_halves_survive_a_file(key, served, embeddings):
    for mark in (key.mark, served):
        document = json.loads(json.dumps(mark.document()))
        again = type(mark).from_parts(document, {name: array.copy() for name, array in mark.arrays().items()})
        assert again.document() == mark.document()
        assert np.array_equal(again.signed_distances(embeddings[:50]), mark.signed_distances(embeddings[:50]))


def test_both_halves_see_a_vector_alike(key, served, embeddings):
    whole = key.mark.signed_distances(embeddings[:500])
    assert np.allclose(served.signed_distances(embeddings[:500]), whole, rtol=0, atol=1e-9)


def test_targets_follow_from_secret_salt_and_tenant_alone(key):
    mark, size = key.mark, len(key.pool)
    first, second = Secret(b"a" * 32), Secret(b"b" * 32)
    assert mark.provider_targets(first, b"", size) == mark.provider_targets(first, b"", size)
    assert mark.provider_targets(first, b"", size) != mark.provider_targets(second, b"", size)
    assert mark.provider_targets(first, b"salt", size) != mark.provider_targets(first, b"", size)
    assert mark.tenant_targets(first, b"", size, "acme") != mark.tenant_targets(first, b"", size, "globex")
    assert all(0 <= place < size for place in mark.provider_targets(first, b"", size))


def test_another_secret_draws_another_mark_of_the_same_settings(key):
    other = key.mark.redrawn(Secret(b"c" * 32), (key.pool, key.reservoir))
    assert other.settings == key.mark.settings
    name = "normals" if key.mark.kind == "regions" else "planes"
    assert not np.array_equal(other.arrays()[name], key.mark.arrays()[name])


def test_a_plan_differs_by_tenant_and_keeps_its_width(key, served):
    plans = {name: served.plan(name, NumberFormat.float32) for name in ("", *TENANTS)}
    assert {plan.width for plan in plans.values()} == {key.width}
    mixed = [plan.targets if key.mark.kind == "regions" else plan.directions for plan in plans.values()]
    assert len({one.tobytes() for one in mixed}) == len(plans)


def test_it_shows_and_copies_nothing(key, served):
    for mark in (key.mark, served):
        assert "sealed" in repr(mark)
        for leak in (copy.copy, copy.deepcopy, pickle.dumps):
            with pytest.raises(SecretLeakError):
                leak(mark)


def test_what_is_described_is_no_secret(key, served):
    told = json.dumps([key.mark.describe(), served.describe()])
    assert "regions" not in told
    assert "planes_of" not in told
    assert "targets" not in told
