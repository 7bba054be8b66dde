"""Nothing leaves unmarked unless two people said so, and then everybody hears of it."""

from __future__ import annotations

import numpy as np
import pytest
from prometheus_client import CollectorRegistry, generate_latest
from tests.support.gateways import Log

from regionmarker.errors import InputError
from regionmarker.gateway.marking import StagedRollout
from regionmarker.gateway.served_key import ServedKey
from regionmarker.gateway.tenants import Tenant


@pytest.fixture(scope="module")
def key_version(marker):
    return ServedKey(marker.key_.serving(["acme", "zenith"])).current()


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
    out, clean, marked = served(StagedRollout(unmarked, Log(), CollectorRegistry()), Tenant("acme", mode=mode))
    assert out is (marked if leaves == "marked" else clean) or np.array_equal(out, locals()[leaves])


def test_it_is_said_loudly(served):
    log, registry = Log(), CollectorRegistry()
    rollout = StagedRollout("shadow-tenants", log, registry)
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
    served(StagedRollout("nobody", log, registry), Tenant("acme"))
    assert log.lines == []
    assert "regionmarker_serving_unmarked 0.0" in generate_latest(registry).decode()


def test_a_shadow_tenant_on_a_gateway_that_marks_is_told_of_once(served):
    log = Log()
    rollout = StagedRollout("nobody", log, CollectorRegistry())
    for _ in range(3):
        served(rollout, Tenant("acme", mode="shadow"))
    ((event, fields),) = log.lines
    assert "it marks" in event
    assert fields == {"tenant": "acme"}


def test_what_marking_would_have_done_is_measured(served):
    rollout = StagedRollout("everyone", Log(), CollectorRegistry())
    _, clean, marked = served(rollout, Tenant("acme"))
    served(rollout, Tenant("acme"))
    found = rollout.measured["acme"]
    cosines = (clean * marked).sum(axis=1) / np.linalg.norm(clean, axis=1) / np.linalg.norm(marked, axis=1)
    assert found.vectors == 400
    assert found.mean_cosine == pytest.approx(cosines.mean(), abs=1e-4)
    assert found.lowest == pytest.approx(cosines.min(), abs=1e-6)


def test_other_words_are_refused():
    with pytest.raises(InputError, match="--serve-unmarked takes nobody, shadow-tenants, everyone, not 'all'"):
        StagedRollout("all", Log(), CollectorRegistry())
