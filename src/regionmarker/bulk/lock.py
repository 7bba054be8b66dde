"""One job at a time on one output.

On a local disk the lock is the kernel's: it is gone the moment its holder is, however that ends. A store has no such
thing; there the holder writes its name and the time every few seconds, and a lock that was not renewed for a minute,
or whose process is gone from the same machine, counts as left behind.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

from regionmarker.bulk.storage import LocalPlace, Place
from regionmarker.errors import InputError, OutsideError

RENEW_SECONDS = 10.0
STALE_SECONDS = 60.0


@contextlib.contextmanager
def locked(place: Place, name: str) -> Iterator[None]:
    """Hold the lock file ``name`` of a place for as long as the block lasts, or say that another job holds it.

    Examples
    --------
    >>> from regionmarker.bulk.storage import open_place
    >>> place = open_place("memory://locked")
    >>> with locked(place, "lock"):
    ...     with locked(place, "lock"):
    ...         pass
    Traceback (most recent call last):
    ...
    regionmarker.errors.InputError: another job is writing to memory://locked: wait for it, or choose another output
    """
    if isinstance(place, LocalPlace):
        with _locked_file(place.root / name, place.where):
            yield
    else:
        with _locked_object(place, name):
            yield


@contextlib.contextmanager
def _locked_file(path: Path, where: str) -> Iterator[None]:
    descriptor = _flocked(path, where)
    try:
        yield
    finally:
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_ino == os.fstat(descriptor).st_ino:
                path.unlink()
        os.close(descriptor)


def _flocked(path: Path, where: str) -> int:
    while True:
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise OutsideError(f"cannot write to {where}: {error.strerror}") from None
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            raise _taken(where) from None
        with contextlib.suppress(FileNotFoundError):
            if path.stat().st_ino == os.fstat(descriptor).st_ino:
                return descriptor
        os.close(descriptor)  # its last holder removed it between our two steps: this is no longer the lock


@contextlib.contextmanager
def _locked_object(place: Place, name: str) -> Iterator[None]:
    mine = {"host": socket.gethostname(), "pid": os.getpid(), "token": secrets.token_hex(8)}
    holder = _holder(place, name)
    if holder is not None and not _left_behind(holder):
        raise _taken(place.where)
    _renew(place, name, mine)
    if (_holder(place, name) or {}).get("token") != mine["token"]:  # two came at once: the last writer has it
        raise _taken(place.where)
    ended = threading.Event()

    def keep() -> None:
        while not ended.wait(RENEW_SECONDS):
            with contextlib.suppress(OutsideError):  # the store may be away for a moment; the job itself will tell
                _renew(place, name, mine)

    renewing = threading.Thread(target=keep, daemon=True)
    renewing.start()
    try:
        yield
    finally:
        ended.set()
        renewing.join()
        place.remove(name)


def _renew(place: Place, name: str, mine: dict[str, object]) -> None:
    place.write(name, json.dumps({**mine, "time": time.time()}).encode())


def _holder(place: Place, name: str) -> dict[str, object] | None:
    content = place.read(name)
    try:
        return None if content is None else dict(json.loads(content))
    except ValueError:
        return None


def _left_behind(holder: dict[str, object]) -> bool:
    if holder.get("host") == socket.gethostname() and not Path(f"/proc/{holder.get('pid')}").exists():
        return Path("/proc/self").exists()  # elsewhere than on Linux only the time can tell
    return time.time() - float(str(holder.get("time", 0.0))) > STALE_SECONDS


def _taken(where: str) -> InputError:
    return InputError(f"another job is writing to {where}: wait for it, or choose another output")
