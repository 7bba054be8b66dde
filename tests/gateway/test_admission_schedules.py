"""Whoever comes, leaves or finishes in whatever order: when nobody is inside, nothing is in flight."""

from __future__ import annotations

import asyncio
import random

import pytest
from tests.support.schedules import ShuffledLoop, run_shuffled

from regionmarker.gateway.admission import Admission
from regionmarker.gateway.errors import ApiError
from regionmarker.gateway.tenants import Tenant

SCHEDULES = 10_000
PARTS = 10
TENANTS = (Tenant("a"), Tenant("b"), Tenant("c", inputs_in_flight=3))


async def one_evening(seed: int) -> None:
    """Some guests who come at any moment, stay a while, and may leave at any moment, in the queue or inside."""
    dice, loop = random.Random(seed), asyncio.get_running_loop()
    assert isinstance(loop, ShuffledLoop)
    door = Admission(
        capacity=dice.randint(2, 5), queue=dice.randint(0, 6), patience=dice.choice((0.0, 2.0)), clock=loop.time
    )
    inside = 0

    async def come(tenant: Tenant, inputs: int, stays: asyncio.Event) -> None:
        nonlocal inside
        async with door.enter(tenant, inputs):
            inside += inputs
            try:
                assert inside <= door.in_flight <= door.capacity
                await stays.wait()
            finally:
                inside -= inputs

    tasks: list[asyncio.Task[None]] = []
    for _ in range(dice.randint(3, 8)):
        stays = asyncio.Event()
        coming = come(dice.choice(TENANTS), dice.randint(1, 3), stays)
        # A few whole moments for everybody: what happens in the same one happens in any order.
        arrives, finishes, leaves = dice.randint(0, 3), dice.randint(1, 4), dice.randint(0, 4)
        task = loop.create_task(_at(arrives, coming))
        tasks.append(task)
        loop.call_at(finishes, stays.set)
        if dice.random() < 0.6:
            loop.call_at(leaves, task.cancel)
            if dice.random() < 0.2:
                loop.call_at(leaves, task.cancel)
    ends = await asyncio.gather(*tasks, return_exceptions=True)
    unexpected = [end for end in ends if not isinstance(end, None | ApiError | asyncio.CancelledError)]
    assert unexpected == []
    assert all(end.status in (400, 429) for end in ends if isinstance(end, ApiError))
    assert (inside, door.in_flight, door.queued, door._lines) == (0, 0, 0, {})


async def _at(moment: float, coming) -> None:
    try:
        await asyncio.sleep(moment)
    except asyncio.CancelledError:
        coming.close()
        raise
    await coming


@pytest.mark.parametrize("part", range(PARTS))
def test_a_queue_loses_no_place_in_any_order(part):
    for seed in range(part, SCHEDULES, PARTS):
        try:
            run_shuffled(seed, one_evening(seed))
        except BaseException as error:
            error.add_note(f"seed {seed}")
            raise


def test_the_loop_runs_in_more_than_one_order_and_again_in_the_same():
    def order(seed: int) -> list[int]:
        seen: list[int] = []

        async def main() -> None:
            for number in range(5):
                asyncio.get_running_loop().call_soon(seen.append, number)
            await asyncio.sleep(1.0)

        run_shuffled(seed, main())
        return seen

    assert len({tuple(order(seed)) for seed in range(50)}) > 20
    assert order(7) == order(7)


def test_who_leaves_in_the_turn_in_which_its_place_frees_up_takes_no_place_along():
    """The attack, one after the other as it happens: leave, then a place frees up, then wake."""

    async def main() -> None:
        door = Admission(capacity=1, queue=2, patience=600.0)
        stays = asyncio.Event()

        async def come() -> str:
            async with door.enter(TENANTS[0], 1):
                await stays.wait()
                return "served"

        first, leaver, third = (asyncio.ensure_future(come()) for _ in range(3))
        await asyncio.sleep(0)
        assert (door.in_flight, door.queued) == (1, 2)
        stays.set()  # the first one will wake in the next turn
        leaver.cancel()
        assert await asyncio.gather(first, third) == ["served", "served"]
        assert (door.in_flight, door.queued) == (0, 0)

    asyncio.run(main())


def test_who_leaves_in_the_turn_in_which_it_is_pushed_out_harms_nobody():
    async def main() -> None:
        door = Admission(capacity=1, queue=2, patience=600.0)
        stays = asyncio.Event()

        async def come(tenant: Tenant, inputs: int = 1) -> str:
            async with door.enter(tenant, inputs):
                await stays.wait()
                return "served"

        inside, _, leaver = (asyncio.ensure_future(come(TENANTS[0])) for _ in range(3))
        await asyncio.sleep(0)
        newcomer = asyncio.ensure_future(come(TENANTS[1]))
        leaver.cancel()  # it wakes after the newcomer
        await asyncio.sleep(0)
        stays.set()
        assert await asyncio.gather(inside, newcomer) == ["served", "served"]

    asyncio.run(main())
