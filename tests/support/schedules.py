"""An event loop that runs what is ready in any order, in a time of its own: the same seed, the same order.

asyncio runs ready callbacks first come, first served. A program that is right only then breaks on the day on which two
sockets become ready the other way round. This loop shuffles what is ready in every turn, and its clock jumps to the
next timer, so that thousands of orders are tried in seconds.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Coroutine
from typing import Any


class _Clock:
    """Stands in for the selector: nothing is ever waited for."""

    def __init__(self) -> None:
        self.now = 0.0

    def select(self, timeout: float | None) -> list[Any]:
        if timeout is None:
            raise RuntimeError("every task waits for something that never comes")
        self.now += timeout
        return []


class ShuffledLoop(asyncio.BaseEventLoop):
    """Runs ready callbacks in the order that ``seed`` gives."""

    def __init__(self, seed: int) -> None:
        super().__init__()
        self.random = random.Random(seed)
        self.complaints: list[str] = []
        self._selector = _Clock()
        self._clock_resolution = 1e-9
        self.set_exception_handler(lambda _, context: self.complaints.append(str(context)))

    def time(self) -> float:
        return self._selector.now

    def _process_events(self, events: list[Any]) -> None:
        """There are none."""

    def _write_to_self(self) -> None:
        """Nobody calls from another thread."""

    def _run_once(self) -> None:
        ready = list(self._ready)
        self.random.shuffle(ready)
        self._ready = deque(ready)
        super()._run_once()


def run_shuffled(seed: int, coroutine: Coroutine[Any, Any, Any]) -> None:
    """Run a coroutine in the order of ``seed``; whatever nobody caught is an error."""
    loop = ShuffledLoop(seed)
    try:
        loop.run_until_complete(coroutine)
    finally:
        loop.close()
    assert loop.complaints == []
