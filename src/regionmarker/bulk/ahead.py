"""Work ahead: let one step run in a thread of its own while the next one uses what is ready."""

from __future__ import annotations

import contextlib
import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from typing import Generic, TypeVar

Item = TypeVar("Item")
Result = TypeVar("Result")

_DEPTH = 1
_END = object()


@contextlib.contextmanager
def ahead(items: Iterable[Item], depth: int = _DEPTH) -> Iterator[Iterator[Item]]:
    """Give ``items``, made by another thread up to ``depth`` ahead of their use.

    An error of the maker is raised at the place in the row where it happened. When the block ends early, the maker is
    stopped and closed before the block is left.

    Examples
    --------
    >>> with ahead(number * number for number in range(3)) as squares:
    ...     list(squares)
    [0, 1, 4]
    """
    ready: queue.Queue[tuple[object, BaseException | None]] = queue.Queue(depth)
    stopped = threading.Event()

    def put(item: object, error: BaseException | None = None) -> bool:
        while not stopped.is_set():
            with contextlib.suppress(queue.Full):
                ready.put((item, error), timeout=0.1)
                return True
        return False

    def make() -> None:
        maker = iter(items)
        try:
            while put(next(maker)):  # no variable: what was handed on must not be kept alive here
                pass
        except StopIteration:
            pass
        except BaseException as error:  # noqa: BLE001 - it is raised again where the items are used
            put(None, error)
        finally:
            if hasattr(maker, "close"):
                maker.close()
            put(_END)

    def use() -> Iterator[Item]:
        while True:
            item, error = ready.get()
            if error is not None:
                raise error
            if item is _END:
                return
            yield item  # type: ignore[misc]
            item = None

    thread = threading.Thread(target=make, daemon=True)
    thread.start()
    try:
        yield use()
    finally:
        stopped.set()
        thread.join()


class Running(Generic[Result]):
    """One call in a thread of its own; :meth:`result` waits for it.

    Examples
    --------
    >>> Running(lambda: 6 * 7).result()
    42
    """

    def __init__(self, call: Callable[[], Result]) -> None:
        self._call = call
        self._answer: list[Result] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._answer.append(self._call())
        except BaseException as error:  # noqa: BLE001 - it is raised again by result()
            self._error = error

    def result(self) -> Result:
        """Wait for the answer, or raise what the call raised."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._answer[0]
