"""Where shards lie: a local folder, or one behind an fsspec URL such as ``s3://bucket/vectors``.

A shard is always worked on as a local file. From a URL it is fetched first and published when it is whole, so that
every engine and every store runs the same code over the same bytes, and nothing half-written is ever visible.
"""

from __future__ import annotations

import contextlib
import secrets
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import Any, Protocol

from regionmarker.bulk.spool import spool
from regionmarker.errors import InputError, MissingExtraError, OutsideError
from regionmarker.files import atomic_path, sync


@dataclass(frozen=True)
class FileFacts:
    """What a listing says of a file; ``stamp`` changes when the file does."""

    name: str  # relative to the place, with forward slashes
    bytes: int
    stamp: str


class Place(Protocol):
    """A folder of files, wherever it is."""

    where: str

    def files(self) -> list[FileFacts]:
        """List all files below, in order of name."""
        ...

    def facts(self, name: str) -> FileFacts | None:
        """Return what is known of one file; None where there is none."""
        ...

    def fetched(self, name: str) -> contextlib.AbstractContextManager[Path]:
        """Give a file, or a folder on a local disk, as a local path."""
        ...

    def scratch(self, folder: str) -> contextlib.AbstractContextManager[Path]:
        """Give a new local path to write to; ``folder`` is where it belongs, relative to the place."""
        ...

    def publish(self, written: Path, name: str) -> None:
        """Put a whole file in its place, in one step."""
        ...

    def read(self, name: str) -> bytes | None:
        """Return a small file's content; None where there is none."""
        ...

    def write(self, name: str, content: bytes) -> None:
        """Write a small file in one step."""
        ...

    def remove(self, name: str) -> None:
        """Remove a file or a folder with all that is in it, if it is there."""
        ...


def is_url(where: str) -> bool:
    """Tell an fsspec URL from a path.

    Examples
    --------
    >>> is_url("s3://bucket/vectors"), is_url("vectors/2024"), is_url("file:///vectors")
    (True, False, True)
    """
    return "://" in where


def parent_and_name(where: str) -> tuple[str, str]:
    """Split a path or URL into its folder and its last part.

    Examples
    --------
    >>> parent_and_name("s3://bucket/a/b.parquet"), parent_and_name("b.parquet")
    (('s3://bucket/a', 'b.parquet'), ('.', 'b.parquet'))
    """
    if not is_url(where):
        path = Path(where)
        return str(path.parent), path.name
    head, _, name = where.rstrip("/").rpartition("/")
    return head, name


def open_place(where: str) -> Place:
    """Return the folder at a path or an fsspec URL.

    Examples
    --------
    >>> place = open_place("memory://example")
    >>> place.write("a/b.txt", b"whole")
    >>> [(file.name, file.bytes) for file in place.files()]
    [('a/b.txt', 5)]
    """
    if where.startswith(("file://", "local://")):
        where = where.partition("://")[2]
    return RemotePlace(where) if is_url(where) else LocalPlace(where)


class LocalPlace:
    """A folder of this machine, or one that it mounts."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.root = Path(where)

    def files(self) -> list[FileFacts]:
        """List all files below, in order of name."""
        paths = sorted(path for path in self.root.rglob("*") if path.is_file())
        names = [path.relative_to(self.root).as_posix() for path in paths]
        return [facts for name in names if (facts := self.facts(name)) is not None]

    def facts(self, name: str) -> FileFacts | None:
        """Return what is known of one file; None where there is none."""
        try:
            found = (self.root / name).stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
        return FileFacts(name, found.st_size, str(found.st_mtime_ns))

    @contextlib.contextmanager
    def fetched(self, name: str) -> Iterator[Path]:
        """Give the file itself."""
        yield self.root / name

    @contextlib.contextmanager
    def scratch(self, folder: str) -> Iterator[Path]:
        """Give a path in ``folder``, on the same disk as the place; what is left there afterwards is removed."""
        path = self.root / folder / f"{secrets.token_hex(8)}.tmp"
        _made(path.parent)
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)

    def publish(self, written: Path, name: str) -> None:
        """Move a file from the scratch folder to its place and see both to the disk."""
        target = self.root / name
        try:
            sync(written)
            _made(target.parent)
            written.replace(target)
            sync(target.parent)
        except OSError as error:
            raise OutsideError(f"cannot write {target}: {error.strerror or error}") from None

    def read(self, name: str) -> bytes | None:
        """Return a small file's content; None where there is none."""
        try:
            return (self.root / name).read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return None

    def write(self, name: str, content: bytes) -> None:
        """Write a small file in one step."""
        path = self.root / name
        _made(path.parent)
        with atomic_path(path) as temporary:
            temporary.write_bytes(content)

    def remove(self, name: str) -> None:
        """Remove a file or a folder with all that is in it, if it is there."""
        path = self.root / name
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                path.unlink()


class RemotePlace:
    """A folder behind an fsspec URL. Credentials and end points come from the environment, as its driver documents."""

    def __init__(self, where: str) -> None:
        self.where = where.rstrip("/")
        self.files_at, self.root = _file_system(self.where)

    def files(self) -> list[FileFacts]:
        """List all files below, in order of name."""
        with self._reaching():
            self.files_at.invalidate_cache()
            found = self.files_at.find(self.root, detail=True)
        prefix = self.root.strip("/") + "/"
        named = [(path.strip("/"), information) for path, information in found.items()]
        return sorted(
            (_facts(path.removeprefix(prefix), info) for path, info in named if path.startswith(prefix)),
            key=lambda facts: facts.name,
        )

    def facts(self, name: str) -> FileFacts | None:
        """Return what is known of one file; None where there is none."""
        with self._reaching():
            self.files_at.invalidate_cache()
            try:
                information = self.files_at.info(self._path(name))
            except FileNotFoundError:
                return None
        return _facts(name, information) if information["type"] == "file" else None

    @contextlib.contextmanager
    def fetched(self, name: str) -> Iterator[Path]:
        """Give a local copy, for as long as the block lasts."""
        with spool() as folder:
            copy = folder / PurePosixPath(name).name
            with self._reaching():
                self.files_at.get_file(self._path(name), str(copy))
            yield copy

    @contextlib.contextmanager
    def scratch(self, folder: str) -> Iterator[Path]:  # noqa: ARG002 - stores have no scratch of their own
        """Give a path in a temporary folder of this machine."""
        with spool() as local:
            yield local / "shard.tmp"

    def publish(self, written: Path, name: str) -> None:
        """Upload a file; a store shows it when it is whole."""
        with self._reaching():
            self.files_at.makedirs(self._path(name).rpartition("/")[0], exist_ok=True)
            self.files_at.put_file(str(written), self._path(name))
        written.unlink()

    def read(self, name: str) -> bytes | None:
        """Return a small file's content; None where there is none."""
        with self._reaching():
            try:
                return bytes(self.files_at.cat_file(self._path(name)))
            except FileNotFoundError:
                return None

    def write(self, name: str, content: bytes) -> None:
        """Write a small file in one step."""
        with self._reaching():
            self.files_at.pipe_file(self._path(name), content)

    def remove(self, name: str) -> None:
        """Remove a file or a folder with all that is in it, if it is there."""
        with self._reaching(), contextlib.suppress(FileNotFoundError):
            self.files_at.rm(self._path(name), recursive=True)

    def _path(self, name: str) -> str:
        return f"{self.root.rstrip('/')}/{name}"

    @contextlib.contextmanager
    def _reaching(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise OutsideError(f"cannot reach {self.where}: {error.strerror or error}") from None


def _made(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutsideError(f"cannot make the folder {folder}: {error.strerror}") from None


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


def _facts(name: str, information: dict[str, Any]) -> FileFacts:
    stamps = (information[key] for key in ("ETag", "etag", "mtime", "LastModified", "created") if key in information)
    return FileFacts(name, int(information["size"] or 0), _stamp(next(stamps, "")))


def _stamp(value: object) -> str:
    """Write a stamp one way: some drivers give a time as a number in listings and as a date elsewhere."""
    if isinstance(value, datetime):
        value = value.timestamp()
    return f"{value:.3f}" if isinstance(value, float) else str(value).strip('"')
