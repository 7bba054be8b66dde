"""The marking step: nothing leaves unmarked unless two people said so, and then everybody hears of it."""

from __future__ import annotations

import numpy as np
import pytest
from prometheus_client import CollectorRegistry, generate_latest
from tests.support.gateways import Log, vectors_of

from regionmarker.errors import InputError
from regionmarker.gateway.errors import ApiError
from regionmarker.gateway.marking import Marking, Rollout, shortened
from regionmarker.gateway.served_key import ServedKey
from regionmarker.gateway.tenants import Tenant
from regionmarker.marks.number_format import NumberFormat, in_format


@pytest.fixture(scope="module")
def key_version(marker):
    return ServedKey(marker.key_.serving(["acme", "zenith"])).current()


def everyone_marked():
    return Rollout("nobody", Log(), CollectorRegistry())


@pytest.mark.parametrize("tenant", ["", "acme"])
def test_blocks_make_the_same_as_the_whole(key_version, key_marker, sentences, tenant):
    clean = vectors_of(sentences[:150])
    marking = Marking(key_version, Tenant(tenant), everyone_marked())
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


def test_where_nobody_is_served_unmarked_even_a_shadow_tenant_gets_marked_rows(key_version, key_marker, sentences):
    clean = vectors_of(sentences[:50])
    served = Marking(key_version, Tenant("", mode="shadow"), everyone_marked()).serve(clean)
    np.testing.assert_array_equal(served, key_marker.transform(clean))


@pytest.mark.parametrize(
    ("damage", "kind"), [(np.nan, "not_finite"), (np.inf, "not_finite"), (3.0, "norm")], ids=["nan", "inf", "long"]
)
def test_a_bad_row_is_named_and_nothing_is_served(key_version, damage, kind):
    rows = vectors_of(["a", "b", "c"])
    rows[1, 7] = damage
    with pytest.raises(ApiError, match="vector 65") as refused:
        Marking(key_version, Tenant(""), everyone_marked()).serve(rows, 64)
    assert (refused.value.status, refused.value.kind) == (502, kind)


@pytest.mark.parametrize(
    ("damage", "kind", "said"),
    [
        (np.nan, "not_finite", "vector 66 holds NaN or infinity"),
        (0.0, "norm", "vector 66 has length 0 which cannot be scaled to 1"),
    ],
)
def test_where_rows_are_scaled_a_long_row_before_it_is_not_blamed(key_marker, damage, kind, said):
    rows = vectors_of(["a", "b", "c"])
    rows[1] *= 3.0  # of another length: that is what scaling is for
    rows[2] *= damage
    key_version = ServedKey(key_marker.key_.serving(), normalise=True).current()
    with pytest.raises(ApiError, match=said) as refused:
        Marking(key_version, Tenant(""), everyone_marked()).serve(rows, 64)
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


@pytest.fixture
def served(key_version, embeddings):
    """Serve 200 rows to a tenant under a roll-out; return what was served, clean and marked."""

    def serve(rollout, tenant):
        clean = embeddings[:200].copy()
        marked = key_version.mark(clean, tenant.name, np.empty_like(clean))
        assert not np.array_equal(clean, marked)
        return rollout.serve(tenant, key_version, clean, marked), clean, marked

    return serve


@pytest.mark.parametrize(
    ("unmarked", "mode", "leaves"),
    [
        ("nobody", "mark", "marked"),
        ("nobody", "shadow", "marked"),  # in doubt a vector is marked
        ("shadow-tenants", "mark", "marked"),
        ("shadow-tenants", "shadow", "clean"),
        ("everyone", "mark", "clean"),
        ("everyone", "shadow", "clean"),
    ],
)
def test_who_is_served_what(served, unmarked, mode, leaves):
    out, clean, marked = served(Rollout(unmarked, Log(), CollectorRegistry()), Tenant("acme", mode=mode))
    assert out is (marked if leaves == "marked" else clean) or np.array_equal(out, locals()[leaves])


def test_it_is_said_loudly(served):
    log, registry = Log(), CollectorRegistry()
    rollout = Rollout("shadow-tenants", log, registry)
    assert log.lines == [("UNMARKED VECTORS MAY BE SERVED", {"mode": "shadow-tenants"})]
    for _ in range(3):
        served(rollout, Tenant("acme", mode="shadow"))
    served(rollout, Tenant("zenith"))
    assert [event for event, _ in log.lines[1:]] == ["SERVED UNMARKED"]  # once, not a line a request
    text = generate_latest(registry).decode()
    assert "regionmarker_serving_unmarked 1.0" in text
    assert 'regionmarker_unmarked_embeddings_total{tenant="acme"} 600.0' in text
    assert "zenith" not in text


def test_the_usual_gateway_says_nothing(served):
    log, registry = Log(), CollectorRegistry()
    served(Rollout("nobody", log, registry), Tenant("acme"))
    assert log.lines == []
    assert "regionmarker_serving_unmarked 0.0" in generate_latest(registry).decode()


def test_a_shadow_tenant_on_a_gateway_that_marks_is_told_of_once(served):
    log = Log()
    rollout = Rollout("nobody", log, CollectorRegistry())
    for _ in range(3):
        served(rollout, Tenant("acme", mode="shadow"))
    ((event, fields),) = log.lines
    assert "it marks" in event
    assert fields == {"tenant": "acme"}


def test_what_marking_would_have_done_is_measured(served):
    rollout = Rollout("everyone", Log(), CollectorRegistry())
    _, clean, marked = served(rollout, Tenant("acme"))
    served(rollout, Tenant("acme"))
    found = rollout.measured["acme"]
    cosines = (clean * marked).sum(axis=1) / np.linalg.norm(clean, axis=1) / np.linalg.norm(marked, axis=1)
    assert found.vectors == 400
    assert found.mean_cosine == pytest.approx(cosines.mean(), abs=1e-4)
    assert found.lowest == pytest.approx(cosines.min(), abs=1e-6)


def test_other_words_are_refused():
    with pytest.raises(InputError, match="--serve-unmarked takes nobody, shadow-tenants, everyone, not 'all'"):
        Rollout("all", Log(), CollectorRegistry())


def test_unmarked_rows_are_scaled_where_marked_ones_are(marker, sentences):
    key = ServedKey(marker.key_.serving(), normalise=True).current()
    clean = vectors_of(sentences[:20])
    served = Marking(key, Tenant(""), Rollout("everyone", Log(), CollectorRegistry())).serve(3 * clean)
    np.testing.assert_allclose(np.linalg.norm(served, axis=1), 1.0, atol=1e-3)
    np.testing.assert_allclose(served, clean, atol=2e-4)
    assert in_format(served, key.number_format).all()  # as marked rows are
