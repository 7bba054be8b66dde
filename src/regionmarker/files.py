"""Files that are either whole or not there, and secrets that only their owner can read."""

from __future__ import annotations

import contextlib
import os
import secrets
import stat
from collections.abc import Iterator
from pathlib import Path

from regionmarker.errors import InputError, KeyFileError, OutsideError
from regionmarker.keys.secret import Secret

OWNER_ONLY = 0o600
_OTHERS = 0o077


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


def write_owner_only(path: Path, content: Secret) -> None:
    """Write ``content`` atomically to a file that only its owner can read."""
    with atomic_path(path, OWNER_ONLY) as temporary:
        temporary.write_bytes(content.reveal())


def read_owner_only(path: Path) -> Secret:
    """Read a secret file; refuse symbolic links and files that others can read."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        if path.is_symlink():
            raise KeyFileError(f"{path} is a symbolic link: give the path of the file itself") from None
        raise InputError(f"cannot open {path}: {error.strerror}") from None
    try:
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            raise KeyFileError(f"{path} is not a file")
        if mode & _OTHERS:
            raise KeyFileError(f"{path} can be read by others: run chmod 600 {path}")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return Secret(file.read())
    finally:
        os.close(descriptor)


def sync(path: Path) -> None:
    """See a file, or a folder's list of files, to the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
