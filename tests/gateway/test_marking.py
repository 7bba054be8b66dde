"""The marking step."""

from __future__ import annotations

import numpy as np
import pytest
from tests.support.gateways import vectors_of

from regionmarker.gateway.errors import ApiError
from regionmarker.gateway.marking import EveryoneMarked, Marking, shortened
from regionmarker.gateway.served_key import ServedKey
from regionmarker.gateway.tenants import Tenant
from regionmarker.marks.number_format import NumberFormat, in_format


@pytest.fixture
def key_version(key_marker):
    return ServedKey(key_marker.key_.serving(["acme"])).current()


@pytest.mark.parametrize("tenant", ["", "acme"])
def test_blocks_make_the_same_as_the_whole(key_version, key_marker, sentences, tenant):
    clean = vectors_of(sentences[:150])
    marking = Marking(key_version, Tenant(tenant), EveryoneMarked())
    blocks = [marking.serve(clean[start : start + 64], start).copy() for start in range(0, 150, 64)]
    np.testing.assert_array_equal(np.concatenate(blocks), key_marker.transform(clean, tenant=tenant))
    assert marking.seconds > 0


def test_a_rollout_sees_both_and_decides(key_version, key_marker, sentences):
    clean = vectors_of(sentences[:50])

    class Shadow:
        def serve(self, tenant, key_version, clean, marked):
            self.seen = (tenant.name, key_version.key_id, marked.copy())
            return clean

    shadow = Shadow()
    served = Marking(key_version, Tenant("acme", mode="shadow"), shadow).serve(clean)
    np.testing.assert_array_equal(served, clean)
    assert shadow.seen[:2] == ("acme", key_marker.key_.id)
    np.testing.assert_array_equal(shadow.seen[2], key_marker.transform(clean, tenant="acme"))


def test_without_a_rollout_even_a_shadow_tenant_gets_marked_rows(key_version, key_marker, sentences):
    clean = vectors_of(sentences[:50])
    served = Marking(key_version, Tenant("", mode="shadow"), EveryoneMarked()).serve(clean)
    np.testing.assert_array_equal(served, key_marker.transform(clean))


@pytest.mark.parametrize(
    ("damage", "kind"), [(np.nan, "not_finite"), (np.inf, "not_finite"), (3.0, "norm")], ids=["nan", "inf", "long"]
)
def test_a_bad_row_is_named_and_nothing_is_served(key_version, damage, kind):
    rows = vectors_of(["a", "b", "c"])
    rows[1, 7] = damage
    with pytest.raises(ApiError, match="vector 65") as refused:
        Marking(key_version, Tenant(""), EveryoneMarked()).serve(rows, 64)
    assert (refused.value.status, refused.value.kind) == (502, kind)


@pytest.mark.parametrize("grid", list(NumberFormat))
def test_shortened_rows_have_unit_length_on_the_grid(grid):
    rows = np.random.default_rng(0).standard_normal((50, 64)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    short = shortened(rows, 16, grid)
    assert in_format(short, grid).all()
    np.testing.assert_allclose(np.linalg.norm(short, axis=1), 1.0, atol=2.0**-7)


def test_nothing_left_of_a_vector_is_an_error():
    with pytest.raises(ApiError) as refused:
        shortened(np.float32([[0.0, 1.0]]), 1, NumberFormat.float32)
    assert refused.value.param == "dimensions"
