"""Notices that a client has left, and stops working for it."""

from __future__ import annotations

import asyncio
from types import TracebackType

from starlette.types import Receive

_HEAD_START = 0.005  # seconds


class ClientGoneError(Exception):
    """Nobody is there to answer to."""


class Attendance:
    """Cancels the block when the client leaves; what comes out of it then is :class:`ClientGoneError`.

    Cancelling closes the upstream's connection, so that a server which can stop working stops as well. The watch begins
    after a few milliseconds: most requests are done by then, and never pay for it.
    """

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._gone = False

    def __enter__(self) -> Attendance:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("not inside a task")
        self._task: asyncio.Task[object] = task
        self._watch: asyncio.Task[None] | None = None
        self._timer = asyncio.get_running_loop().call_later(_HEAD_START, self._begin)
        return self

    def _begin(self) -> None:
        self._watch = asyncio.get_running_loop().create_task(self._listen())

    async def _listen(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._gone = True
        self._task.cancel()

    def end(self) -> None:
        """Stop watching: the answer is about to be sent."""
        self._timer.cancel()
        if self._watch is not None:
            self._watch.cancel()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()
        if self._gone and kind is asyncio.CancelledError and self._task.uncancel() == 0:
            raise ClientGoneError from None
