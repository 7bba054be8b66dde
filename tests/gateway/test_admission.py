"""The door counts inputs, is fair between tenants, and gives back every place."""

from __future__ import annotations

import asyncio
import contextlib

import pytest

from regionmarker.gateway.admission import Admission
from regionmarker.gateway.errors import ApiError
from regionmarker.gateway.tenants import Tenant

A, B, C = Tenant("a"), Tenant("b"), Tenant("c")


class Guest:
    """One request that stays until it is told to leave."""

    def __init__(self, door: Admission, tenant: Tenant, inputs: int) -> None:
        self.leave = asyncio.Event()
        self.inside = False
        self.task = asyncio.ensure_future(self._stay(door, tenant, inputs))

    async def _stay(self, door: Admission, tenant: Tenant, inputs: int) -> None:
        async with door.enter(tenant, inputs):
            self.inside = True
            await self.leave.wait()
        self.inside = False

    async def go(self) -> None:
        self.leave.set()
        await self.task

    async def refusal(self) -> ApiError:
        with pytest.raises(ApiError) as refused:
            await self.task
        return refused.value


async def settle() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def run(test):
    """Run an asynchronous test; afterwards the door must be as it was."""

    def wrapped():
        async def main():
            door = Admission(capacity=10, queue=10, patience=600.0)
            guests: list[Guest] = []

            async def come(tenant, inputs):
                guests.append(Guest(door, tenant, inputs))
                await settle()
                return guests[-1]

            await test(door, come)
            for guest in guests:
                guest.leave.set()
            with contextlib.suppress(ApiError):
                await asyncio.gather(*(guest.task for guest in guests), return_exceptions=True)
            assert (door.in_flight, door.queued, door._lines) == (0, 0, {})

        asyncio.run(main())

    wrapped.__name__, wrapped.__doc__ = test.__name__, test.__doc__
    return wrapped


@run
async def test_capacity_is_in_inputs(door, come):
    large = await come(A, 8)
    assert large.inside
    small, other = await come(A, 2), await come(A, 1)
    assert small.inside
    assert not other.inside
    assert (door.in_flight, door.queued) == (10, 1)
    await small.go()
    await settle()
    assert other.inside


@run
async def test_a_full_queue_refuses_and_says_when_to_come_back(door, come):
    await come(A, 10)
    await come(A, 10)
    assert door.is_full_for(A)
    failure = await (await come(A, 1)).refusal()
    assert (failure.status, failure.code, failure.kind) == (429, "rate_limit_exceeded", "busy")
    assert int(dict(failure.headers)[b"retry-after-ms"]) > 0


@run
async def test_a_tenant_with_nothing_in_the_queue_takes_room_from_the_one_that_fills_it(door, come):
    await come(A, 10)
    waiting = [await come(A, 2) for _ in range(5)]
    assert not door.is_full_for(B)
    newcomer = await come(B, 2)
    assert (await waiting[-1].refusal()).kind == "pushed_out"
    assert not newcomer.task.done()
    assert door.is_full_for(A)


@run
async def test_the_tenant_with_the_least_under_way_is_next(door, come):
    first, second = await come(A, 6), await come(A, 4)
    a, b = await come(A, 4), await come(B, 4)  # a came first, but a's tenant has six under way
    await second.go()
    await settle()
    assert (a.inside, b.inside) == (False, True)
    await first.go()
    await settle()
    assert a.inside


@run
async def test_a_large_request_is_not_passed_for_ever(door, come):
    first, second = await come(A, 5), await come(A, 5)
    large = await come(B, 9)
    small = await come(C, 1)
    await first.go()
    await settle()
    assert not small.inside  # it would fit, but the large one was first
    await second.go()
    await settle()
    assert large.inside


@run
async def test_a_tenants_own_limit_holds_up_nobody_else(door, come):
    limited = Tenant("limited", inputs_in_flight=3)
    inside, waits = await come(limited, 3), await come(limited, 1)
    other = await come(B, 5)
    assert (inside.inside, waits.inside, other.inside) == (True, False, True)
    await inside.go()
    await settle()
    assert waits.inside
    failure = await (await come(limited, 4)).refusal()
    assert (failure.status, failure.param) == (400, "input")


@run
async def test_who_leaves_the_queue_leaves_no_trace(door, come):
    await come(A, 10)
    large, small = await come(B, 9), await come(C, 1)
    large.task.cancel()
    await settle()
    assert large.task.cancelled()
    assert door.queued == 1
    assert not small.inside


@run
async def test_who_leaves_at_its_turn_gives_the_place_back(door, come):
    first, second, third = await come(A, 10), await come(B, 10), None
    first.leave.set()
    while not second.task.done() and door.queued:
        await asyncio.sleep(0)
    second.task.cancel()  # between its turn and its waking up
    third = await come(C, 10)
    assert third.inside


def test_patience_ends():
    async def main():
        door = Admission(capacity=1, queue=1, patience=0.01)
        first = Guest(door, A, 1)
        await settle()
        assert (await Guest(door, A, 1).refusal()).kind == "patience"
        await first.go()
        assert door.queued == 0

    asyncio.run(main())


def test_the_wait_that_is_told_follows_the_rate():
    now = [0.0]

    async def main():
        door = Admission(capacity=100, queue=100, patience=1.0, clock=lambda: now[0])
        for _ in range(10):
            async with door.enter(A, 50):
                now[0] += 0.5  # a hundred inputs a second
        async with door.enter(A, 100):
            assert 0.75 <= door.seconds_to_wait() <= 1.25

    asyncio.run(main())


def test_a_greedy_tenant_does_not_starve_a_modest_one():
    """Greed sends a hundred times as much; the modest one is served all the same, after one turn at the most."""

    async def main():
        door = Admission(capacity=10, queue=20, patience=600.0)
        turns, refused = [], 0

        async def ask(tenant, inputs):
            nonlocal refused
            try:
                async with door.enter(tenant, inputs):
                    turns.append(tenant.name)
                    await asyncio.sleep(0)
            except ApiError:
                refused += 1
                turns.append(f"{tenant.name} refused")

        greedy = [asyncio.ensure_future(ask(A, 10)) for _ in range(50)]
        await settle()
        modest = []
        for _ in range(10):
            greedy += [asyncio.ensure_future(ask(A, 10)) for _ in range(50)]
            await asyncio.sleep(0)
            modest.append(asyncio.ensure_future(ask(B, 1)))
            await settle()
        await asyncio.gather(*greedy, *modest)
        assert "b refused" not in turns
        assert turns.count("b") == 10
        assert refused > 0

    asyncio.run(main())
