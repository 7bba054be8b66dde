"""Files that are either whole or not there, and folders that one process at a time may change."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
from collections.abc import Iterator
from pathlib import Path

from regionmarker.errors import InputError, OutsideError

HEAD_BYTES = 64
SMALL = 1 << 20
"""Bytes; public keys, certificates, time stamps, statements and rounds of beacons have far fewer."""
_HEADS = {
    b"PAR1": "a Parquet file", b"ARROW1": "an Arrow file", b"\x93NUMPY": "a NumPy file", b"PK\x03\x04": "a zip file",
    b"SQLite format 3": "an SQLite database", b"-----BEGIN": "a PEM file", b"{": "a JSON file",
}  # fmt: skip


def recognised(head: bytes) -> str:
    """Say what a file looks like by its first bytes, "" where they tell nothing.

    Examples
    --------
    >>> recognised(b"PAR1 and so on"), recognised(b"once upon a time")
    ('a Parquet file', '')
    """
    return next((name for first, name in _HEADS.items() if head.startswith(first)), "")


def read_bounded(path: Path, most: int = SMALL) -> bytes:
    """Read a file that may be a stranger's: kind and size are looked at first.

    A named pipe would keep whoever reads it waiting for ever, and a few bytes of disk may claim to be gigabytes.

    Examples
    --------
    >>> read_bounded(Path("/dev/null"))
    Traceback (most recent call last):
    ...
    regionmarker.errors.InputError: /dev/null does not exist, or is not a file
    """
    if not path.is_file():
        raise InputError(f"{path} does not exist, or is not a file")
    try:
        with path.open("rb") as file:
            found = file.read(most + 1)
    except OSError as error:
        raise OutsideError(f"cannot read {path}: {error.strerror}") from None
    if len(found) > most:
        raise InputError(f"{path} has more than {most} bytes, which is more than such a file ever has")
    return found


@contextlib.contextmanager
def atomic_path(path: Path, mode: int = 0o666) -> Iterator[Path]:
    """Give a temporary path beside ``path``; when the block ends well it takes ``path``'s place, else it is removed.

    Examples
    --------
    >>> import tempfile
    >>> target = Path(tempfile.mkdtemp()) / "whole.txt"
    >>> with atomic_path(target) as temporary:
    ...     _ = temporary.write_text("all of it")
    >>> target.read_text()
    'all of it'
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(6)}.tmp")
    try:
        os.close(os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY, mode))
        yield temporary
        sync(temporary)
        temporary.replace(path)
        sync(path.parent)
    except OSError as error:
        raise OutsideError(f"cannot write {path}: {error.strerror or error}; nothing was changed") from None
    finally:
        temporary.unlink(missing_ok=True)


def write_whole(path: Path, text: str) -> Path:
    """Write a text file, all of it or nothing; return its path."""
    with atomic_path(path) as temporary:
        temporary.write_text(text, encoding="utf-8")
    return path


def sync(path: Path) -> None:
    """See a file, or a folder's list of files, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextlib.contextmanager
def lock_folder(folder: Path, refusal: str) -> Iterator[None]:
    """Hold a folder's lock for as long as the block lasts; raise an InputError with ``refusal`` where another holds it.

    The lock is the kernel's: it leaves no file, and it is gone the moment its holder is, however that ends.

    Examples
    --------
    >>> import tempfile
    >>> folder = Path(tempfile.mkdtemp())
    >>> with lock_folder(folder, "wait"):
    ...     with lock_folder(folder, "another run is writing here: wait for it"):
    ...         pass
    Traceback (most recent call last):
    ...
    regionmarker.errors.InputError: another run is writing here: wait for it
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        if not try_lock(descriptor):
            raise InputError(refusal)
        yield
    finally:
        os.close(descriptor)


def try_lock(descriptor: int) -> bool:
    """Take the kernel's lock on an open file or folder; tell whether nobody else holds it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True
