"""Where a job's files lie: what a storage does, and the one that is a folder of this machine.

A shard is always worked on as a local file. It is opened as one, and committed when it is whole, so that every engine
runs the same code over the same bytes wherever they lie, and nothing half-written is ever visible.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from regionmarker.errors import InputError, OutsideError
from regionmarker.files import atomic_path, sync, try_lock

_PARTIAL = "partial"


@dataclass(frozen=True)
class FileInfo:
    """What a listing says of a file; ``stamp`` changes when the file does."""

    name: str  # relative to the storage, with forward slashes
    bytes: int
    stamp: str


class Storage(Protocol):
    """A folder of files, wherever it is."""

    where: str

    def exists(self) -> bool:
        """Tell whether files may be written here; an object store makes its folders by itself."""

    def files(self) -> list[FileInfo]:
        """List all files below, in order of name."""

    def info(self, name: str) -> FileInfo | None:
        """Return what is known of one file; None where there is none."""

    def open_local(self, name: str) -> contextlib.AbstractContextManager[Path]:
        """Give a file as a local path, for as long as the block lasts."""

    def local_folder(self, name: str) -> Path | None:
        """Return a folder as a local path; None where it is not on this machine."""

    def new_file(self, folder: str) -> contextlib.AbstractContextManager[Path]:
        """Give a new local path to write to; ``folder`` is that of the job's own files."""

    def commit(self, written: Path, name: str) -> None:
        """Move a whole file that was written to a new local path to its name, in one step."""

    def read(self, name: str) -> bytes | None:
        """Return a small file's content; None where there is none."""

    def write(self, name: str, content: bytes) -> None:
        """Write a small file in one step."""

    def note(self, name: str) -> None:
        """Leave an empty file at little cost: it outlives this process, but not a fall of the machine."""

    def remove(self, name: str) -> None:
        """Remove a file or a folder with all that is in it, if it is there."""

    def remove_partial(self, folder: str, file: str) -> None:
        """Remove what a killed job left half-written in the folder of its own files, and beside ``file``."""

    def lock(self, name: str) -> contextlib.AbstractContextManager[None]:
        """Hold the lock file ``name`` for as long as the block lasts, or say that another job holds it."""


def busy(where: str) -> InputError:
    """Return what a second job on one output is refused with."""
    return InputError(f"another job is writing to {where}: wait for it, or choose another output")


class LocalStorage:
    """A folder of this machine, or one that it mounts.

    Examples
    --------
    >>> import tempfile
    >>> storage = LocalStorage(tempfile.mkdtemp())
    >>> storage.write("a/b.txt", b"whole")
    >>> [(file.name, file.bytes) for file in storage.files()]
    [('a/b.txt', 5)]
    """

    def __init__(self, where: str) -> None:
        self.where = where
        self.root = Path(where)

    def exists(self) -> bool:
        return self.root.is_dir()

    def files(self) -> list[FileInfo]:
        paths = sorted(path for path in self.root.rglob("*") if path.is_file())
        names = [path.relative_to(self.root).as_posix() for path in paths]
        return [info for name in names if (info := self.info(name)) is not None]

    def info(self, name: str) -> FileInfo | None:
        try:
            found = (self.root / name).stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        if not stat.S_ISREG(found.st_mode):  # a named pipe would keep whoever reads it waiting for ever
            return None
        return FileInfo(name, found.st_size, str(found.st_mtime_ns))

    @contextlib.contextmanager
    def open_local(self, name: str) -> Iterator[Path]:
        yield self.root / name

    def local_folder(self, name: str) -> Path:
        return self.root / name

    @contextlib.contextmanager
    def new_file(self, folder: str) -> Iterator[Path]:
        """Give a path in ``folder``, on the same disk as the storage; what is left there afterwards is removed."""
        path = self.root / folder / _PARTIAL / f"{secrets.token_hex(8)}.tmp"
        _make_folder(path.parent)
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)

    def commit(self, written: Path, name: str) -> None:
        target = self.root / name
        try:
            sync(written)
            _make_folder(target.parent)
            written.replace(target)
            sync(target.parent)
        except OSError as error:
            raise OutsideError(f"cannot write {target}: {error.strerror or error}") from None

    def read(self, name: str) -> bytes | None:
        path = self.root / name
        try:
            return path.read_bytes() if path.is_file() else None
        except (FileNotFoundError, NotADirectoryError):
            return None

    def write(self, name: str, content: bytes) -> None:
        path = self.root / name
        _make_folder(path.parent)
        with atomic_path(path) as temporary:
            temporary.write_bytes(content)

    def note(self, name: str) -> None:
        path = self.root / name
        _make_folder(path.parent)
        try:
            path.touch()
        except OSError as error:
            raise OutsideError(f"cannot write {path}: {error.strerror}") from None

    def remove(self, name: str) -> None:
        path = self.root / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                path.unlink()

    def remove_partial(self, folder: str, file: str) -> None:
        """Remove new files that were never committed, and small files that were being written."""
        self.remove(f"{folder}/{_PARTIAL}")
        for left in [*(self.root / folder).rglob(".*.tmp"), *self.root.glob(f".{file}.*.tmp")]:
            left.unlink(missing_ok=True)

    @contextlib.contextmanager
    def lock(self, name: str) -> Iterator[None]:
        """Hold the kernel's lock on a file: it is gone the moment its holder is, however that ends."""
        path = self.root / name
        descriptor = self._locked(path)
        try:
            yield
        finally:
            if _is_same_file(path, descriptor):
                path.unlink()
            os.close(descriptor)

    def _locked(self, path: Path) -> int:
        while True:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o666)
            except OSError as error:
                raise OutsideError(f"cannot write to {self.where}: {error.strerror}") from None
            if not try_lock(descriptor):
                os.close(descriptor)
                raise busy(self.where)
            if _is_same_file(path, descriptor):
                return descriptor
            os.close(descriptor)  # its last holder removed it between our two steps: this is no longer the lock


def _is_same_file(path: Path, descriptor: int) -> bool:
    try:
        return path.stat().st_ino == os.fstat(descriptor).st_ino
    except FileNotFoundError:
        return False


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutsideError(f"cannot make the folder {folder}: {error.strerror}") from None
