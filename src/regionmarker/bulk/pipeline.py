"""Work ahead: let one step run in a thread of its own while the next one uses what is ready."""

from __future__ import annotations

import contextlib
import hashlib
import queue
import threading
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

import pyarrow as pa

from regionmarker.errors import InputError, OutsideError

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


# Write Parquet and digest it on the way, so that nothing has to be read a second time.

_BUFFER_BYTES = 1 << 20
_WAITING = 16  # writes that may wait for the digest; Parquet's are about a megabyte each


class DigestingFile:
    """A file to write to, whose SHA-256 is taken by a thread of its own while the next bytes are made.

    Examples
    --------
    >>> import tempfile
    >>> with DigestingFile(Path(tempfile.mkdtemp()) / "file") as file:
    ...     _ = file.write(b"whole")
    ...     file.hexdigest()[:8]
    '5d5766cf'
    """

    def __init__(self, path: Path) -> None:
        self._file = path.open("wb", buffering=_BUFFER_BYTES)
        self._digest = hashlib.sha256()
        self._waiting: queue.Queue[bytes | None] = queue.Queue(_WAITING)
        self._thread: threading.Thread | None = threading.Thread(target=self._take, daemon=True)
        self._thread.start()

    def _take(self) -> None:
        while (data := self._waiting.get()) is not None:
            self._digest.update(data)

    def write(self, data: Any) -> int:
        """Write bytes; the digest follows."""
        whole = data if isinstance(data, bytes) else bytes(data)  # the caller may use its buffer again
        self._file.write(whole)
        self._waiting.put(whole)
        return len(whole)

    def tell(self) -> int:
        """Return how much was written."""
        return self._file.tell()

    def flush(self) -> None:
        """Hand everything to the operating system."""
        self._file.flush()

    @property
    def closed(self) -> bool:
        """Tell whether the file is closed."""
        return self._file.closed

    def hexdigest(self) -> str:
        """Return the SHA-256 of all that was written."""
        self._end_digest()
        return self._digest.hexdigest()

    def close(self) -> None:
        """Close the file."""
        self._end_digest()
        self._file.close()

    def _end_digest(self) -> None:
        if self._thread is not None:
            self._waiting.put(None)
            self._thread.join()
            self._thread = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


@contextlib.contextmanager
def writing(where: str, name: str) -> Iterator[None]:
    """Turn what can go wrong while writing into one sentence."""
    try:
        yield
    except OSError as error:
        raise OutsideError(
            f"cannot write {name} to {where}: {error.strerror or error}; what was finished before stays, "
            "and the same command goes on from there"
        ) from None
    except pa.ArrowException as error:
        raise InputError(f"{name} cannot be written as Parquet: {str(error).splitlines()[0]}") from None
