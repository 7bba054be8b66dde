"""How often a tenant may ask, and when those who ask too often hear so."""

from __future__ import annotations

import asyncio

import pytest

from regionmarker.gateway.errors import ApiError
from regionmarker.gateway.rate_limit import HeldRefusals, Quotas
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


def test_who_waits_as_told_is_never_held_back():
    now = [0.0]

    async def main():
        refusals = HeldRefusals(room=10, clock=lambda: now[0])
        for _ in range(5):
            told = asyncio.ensure_future(refusals.hold("a", 30.0))
            await asyncio.sleep(0)
            assert told.done()
            now[0] += 30.0

    asyncio.run(main())


def test_who_comes_early_is_held_back_and_others_are_not():
    async def main():
        refusals = HeldRefusals(room=1)
        await refusals.hold("a", 600.0)
        early = asyncio.ensure_future(refusals.hold("a", 600.0))
        await asyncio.sleep(0)
        assert refusals.waiting == 1
        await refusals.hold("b", 600.0)  # another tenant
        await refusals.hold("a", 600.0)  # no room for another one: refused at once
        assert not early.done()
        early.cancel()
        await asyncio.gather(early, return_exceptions=True)
        assert refusals.waiting == 0

    asyncio.run(main())


def test_nobody_is_held_back_for_long():
    async def main():
        refusals = HeldRefusals(room=1)
        await refusals.hold("a", 1e9)
        await asyncio.wait_for(refusals.hold("a", 1e9), 60)

    asyncio.run(main())
