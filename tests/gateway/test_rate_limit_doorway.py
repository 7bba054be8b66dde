"""Those who come back too early hear of it later."""

from __future__ import annotations

import asyncio

from regionmarker.gateway.rate_limit import HeldRefusals


def test_who_waits_as_told_is_never_held_back():
    now = [0.0]

    async def main():
        refusals = HeldRefusals(room=10, clock=lambda: now[0])
        for _ in range(5):
            await asyncio.wait_for(refusals.hold("a", 30.0), 60)
            now[0] += 30.0
            assert not refusals.is_early("a")

    asyncio.run(main())


def test_who_comes_early_is_held_back_and_others_are_not():
    async def main():
        refusals = HeldRefusals(room=1)
        await refusals.hold("a", 600.0)
        early = asyncio.ensure_future(refusals.hold("a", 600.0))
        await asyncio.sleep(0)
        assert refusals.waiting == 1
        await refusals.hold("b", 600.0)  # another tenant
        await refusals.hold("a", 600.0)  # no room in the refusals: refused at once
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
