"""A folder behind an fsspec URL such as ``s3://bucket/vectors``: its temporary copies here, and its lock there.

A store has no lock of the kernel's. The holder writes its name and the time every few seconds; a lock that was not
renewed for a minute, or whose process is gone from the same machine, counts as left behind.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any

from regionmarker.bulk.storage import FileInfo, busy
from regionmarker.errors import InputError, MissingExtraError, OutsideError
from regionmarker.files import lock_folder

RENEW_SECONDS = 10.0
STALE_SECONDS = 60.0
_PREFIX = "regionmarker-spool-"  # as in 0.1.0, so that what its killed jobs left is removed too


class RemoteStorage:
    """A folder behind an fsspec URL. Credentials and end points come from the environment, as its driver documents.

    Examples
    --------
    >>> storage = RemoteStorage("memory://example")
    >>> storage.write("a/b.txt", b"whole")
    >>> [(file.name, file.bytes) for file in storage.files()]
    [('a/b.txt', 5)]
    >>> with storage.lock("lock"):
    ...     with storage.lock("lock"):
    ...         pass
    Traceback (most recent call last):
    ...
    regionmarker.errors.InputError: another job is writing to memory://example: wait for it, or choose another output
    """

    def __init__(self, where: str) -> None:
        self.where = where.rstrip("/")
        self._files, self._root = _file_system(self.where)

    def exists(self) -> bool:
        return True

    def files(self) -> list[FileInfo]:
        with self._reaching():
            self._files.invalidate_cache()
            found = self._files.find(self._root, detail=True)
        prefix = self._root.strip("/") + "/"
        named = [(path.strip("/"), facts) for path, facts in found.items()]
        return sorted(
            (_file_info(path.removeprefix(prefix), facts) for path, facts in named if path.startswith(prefix)),
            key=lambda info: info.name,
        )

    def info(self, name: str) -> FileInfo | None:
        with self._reaching():
            self._files.invalidate_cache()
            try:
                facts = self._files.info(self._path(name))
            except FileNotFoundError:
                return None
        return _file_info(name, facts) if facts["type"] == "file" else None

    @contextlib.contextmanager
    def open_local(self, name: str) -> Iterator[Path]:
        with temporary_folder() as folder:
            copy = folder / PurePosixPath(name).name
            with self._reaching():
                self._files.get_file(self._path(name), str(copy))
            yield copy

    def local_folder(self, name: str) -> None:
        """Return None: it is not on this machine."""

    @contextlib.contextmanager
    def new_file(self, folder: str) -> Iterator[Path]:  # noqa: ARG002 - it is written on this machine
        with temporary_folder() as local:
            yield local / "shard.tmp"

    def commit(self, written: Path, name: str) -> None:
        """Upload a file; a store shows it when it is whole."""
        with self._reaching():
            self._files.makedirs(self._path(name).rpartition("/")[0], exist_ok=True)
            self._files.put_file(str(written), self._path(name))
        written.unlink()

    def read(self, name: str) -> bytes | None:
        with self._reaching():
            try:
                return bytes(self._files.cat_file(self._path(name)))
            except FileNotFoundError:
                return None

    def write(self, name: str, content: bytes) -> None:
        with self._reaching():
            self._files.pipe_file(self._path(name), content)

    def note(self, name: str) -> None:
        self.write(name, b"")

    def remove(self, name: str) -> None:
        with self._reaching(), contextlib.suppress(FileNotFoundError):
            self._files.rm(self._path(name), recursive=True)

    def remove_partial(self, folder: str, file: str) -> None:
        """Do nothing: a store holds whole files alone."""

    @contextlib.contextmanager
    def lock(self, name: str) -> Iterator[None]:
        """Hold the lock by a note that says who holds it, renewed every few seconds."""
        mine = {"host": socket.gethostname(), "pid": os.getpid(), "token": secrets.token_hex(8)}
        holder = self._holder(name)
        if holder is not None and not _is_left_behind(holder):
            raise busy(self.where)
        self._renew(name, mine)
        if (self._holder(name) or {}).get("token") != mine["token"]:  # two came at once: the last writer has it
            raise busy(self.where)
        ended = threading.Event()

        def keep() -> None:
            while not ended.wait(RENEW_SECONDS):
                with contextlib.suppress(OutsideError):  # the store may be away for a moment; the job itself will tell
                    self._renew(name, mine)

        renewing = threading.Thread(target=keep, daemon=True)
        renewing.start()
        try:
            yield
        finally:
            ended.set()
            renewing.join()
            self.remove(name)

    def _renew(self, name: str, mine: dict[str, object]) -> None:
        self.write(name, json.dumps({**mine, "time": time.time()}).encode())

    def _holder(self, name: str) -> dict[str, object] | None:
        content = self.read(name)
        try:
            return None if content is None else dict(json.loads(content))
        except ValueError:
            return None

    def _path(self, name: str) -> str:
        return f"{self._root.rstrip('/')}/{name}"

    @contextlib.contextmanager
    def _reaching(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise OutsideError(f"cannot reach {self.where}: {error.strerror or error}") from None


def _is_left_behind(holder: dict[str, object]) -> bool:
    if holder.get("host") == socket.gethostname() and not Path(f"/proc/{holder.get('pid')}").exists():
        return Path("/proc/self").exists()  # elsewhere than on Linux only the time can tell
    return time.time() - float(str(holder.get("time", 0.0))) > STALE_SECONDS


def _file_system(where: str) -> tuple[Any, str]:
    try:
        import fsspec
    except ImportError:
        raise MissingExtraError.for_module("fsspec", "bulk") from None
    try:
        found, root = fsspec.core.url_to_fs(where)
    except (ImportError, ValueError) as error:  # a driver that is not installed, a protocol that nobody knows
        raise InputError(f"cannot open {where}: {error}") from None
    return found, root


def _file_info(name: str, facts: dict[str, Any]) -> FileInfo:
    stamps = (facts[key] for key in ("ETag", "etag", "mtime", "LastModified", "created") if key in facts)
    return FileInfo(name, int(facts["size"] or 0), _stamp(next(stamps, "")))


def _stamp(value: object) -> str:
    """Write a stamp one way: some drivers give a time as a number in listings and as a date elsewhere."""
    if isinstance(value, datetime):
        value = value.timestamp()
    return f"{value:.3f}" if isinstance(value, float) else str(value).strip('"')


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    """Give a temporary folder for copies, and remove those that killed processes left behind.

    A folder is in use while its maker holds the lock on it, and the kernel lets go of the lock however the maker ends.

    Examples
    --------
    >>> with temporary_folder() as folder:
    ...     _ = (folder / "part").write_text("one")
    >>> folder.exists()
    False
    """
    remove_stale_folders()
    with contextlib.ExitStack() as stack:
        folder = _locked_folder(stack)
        try:
            yield folder
        finally:
            shutil.rmtree(folder, ignore_errors=True)


def remove_stale_folders() -> None:
    """Remove the temporary folders whose makers are gone."""
    for left in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError, InputError), lock_folder(left, "in use"):
            shutil.rmtree(left, ignore_errors=True)


def _locked_folder(stack: contextlib.ExitStack) -> Path:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        # Another process may take it for a stale one and clean it away before it is locked: then take a new one.
        with contextlib.suppress(FileNotFoundError, InputError):
            stack.enter_context(lock_folder(folder, "in use"))
            if folder.exists():
                return folder
