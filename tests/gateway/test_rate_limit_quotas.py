"""A bucket of requests a tenant."""

from __future__ import annotations

import pytest

from regionmarker.gateway.errors import ApiError
from regionmarker.gateway.rate_limit import Quotas
from regionmarker.gateway.tenants import Tenant


def test_a_minutes_requests_may_come_at_once_and_then_at_the_rate():
    now = [0.0]
    quotas, tenant = Quotas(clock=lambda: now[0]), Tenant("a", requests_per_minute=60)
    for _ in range(60):
        quotas.spend(tenant)
    with pytest.raises(ApiError) as refused:
        quotas.spend(tenant)
    assert dict(refused.value.headers)[b"retry-after-ms"] == b"1000"
    now[0] += 1.0
    quotas.spend(tenant)
    with pytest.raises(ApiError):
        quotas.spend(tenant)
    now[0] += 3600.0
    assert dict(quotas.spend(tenant))[b"x-ratelimit-remaining-requests"] == b"59"


def test_tenants_have_buckets_of_their_own_and_some_have_none():
    quotas = Quotas(clock=lambda: 0.0)
    quotas.spend(Tenant("a", requests_per_minute=1))
    quotas.spend(Tenant("b", requests_per_minute=1))
    assert quotas.spend(Tenant("c")) == []
    with pytest.raises(ApiError):
        quotas.spend(Tenant("a", requests_per_minute=1))


def test_a_limit_of_nothing_refuses_everything():
    with pytest.raises(ApiError):
        Quotas().spend(Tenant("a", requests_per_minute=0))
