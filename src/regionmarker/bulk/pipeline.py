"""Steps of one shard that run at the same time: batches are made before they are used, what is written is digested.

A file's digest is taken on the way to the disk, so that nothing has to be read a second time.
"""

from __future__ import annotations

import contextlib
import hashlib
import queue
import threading
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, Self, TypeVar

import pyarrow as pa

from regionmarker.errors import InputError, OutsideError

Item = TypeVar("Item")

_DEPTH = 2
_END: Any = object()
_BUFFER_BYTES = 1 << 20
_WAITING = 16  # writes that may wait for the digest; Parquet's are about a megabyte each


@contextlib.contextmanager
def prefetch(items: Iterable[Item], depth: int = _DEPTH) -> Iterator[Iterator[Item]]:
    """Give ``items``, up to ``depth`` of which another thread makes before they are used.

    An error of the maker is raised at the place in the row where it happened. When the block ends early, the maker is
    stopped and closed before the block is left.

    Examples
    --------
    >>> with prefetch(number * number for number in range(3)) as squares:
    ...     list(squares)
    [0, 1, 4]
    """
    maker = iter(items)
    waiting: deque[Future[Item]] = deque()

    def use(pool: ThreadPoolExecutor) -> Iterator[Item]:
        while (item := waiting.popleft().result()) is not _END:
            waiting.append(pool.submit(next, maker, _END))
            yield item
            del item  # before the next is waited for: what was handed on must not be kept alive here

    try:
        with ThreadPoolExecutor(1) as pool:
            waiting.extend(pool.submit(next, maker, _END) for _ in range(depth))
            try:
                yield use(pool)
            finally:
                for future in waiting:
                    future.cancel()
    finally:
        if hasattr(maker, "close"):
            maker.close()


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
        whole = data if isinstance(data, bytes) else bytes(data)  # the caller may use its buffer again
        self._file.write(whole)
        self._waiting.put(whole)
        return len(whole)

    def tell(self) -> int:
        return self._file.tell()

    def flush(self) -> None:
        self._file.flush()

    @property
    def closed(self) -> bool:
        return self._file.closed

    def hexdigest(self) -> str:
        self._end_digest()
        return self._digest.hexdigest()

    def close(self) -> None:
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
