"""Bytes that must not be seen: no repr, no pickle, no copy."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, NoReturn

from regionmarker.errors import InputError, KeyFileError, SecretLeakError
from regionmarker.files import HEAD_BYTES, atomic_path


class Sealed:
    """Base of everything that holds key material: it prints as its type and refuses to be copied or pickled.

    A copy through ``pickle`` or ``copy`` is how secrets end up in task queues, caches and crash reports, so the way to
    carry a key elsewhere is its encrypted file and nothing else.
    """

    __slots__ = ()
    _instead: ClassVar[str] = "save it to a key file and load that"

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: sealed>"

    __str__ = __repr__

    def __format__(self, _spec: str) -> str:
        return repr(self)

    def _refuse(self, *_: Any) -> NoReturn:
        raise SecretLeakError(
            f"{type(self).__name__} holds key material and cannot be copied or pickled: {self._instead}"
        )

    __copy__ = __deepcopy__ = __reduce__ = __reduce_ex__ = __getstate__ = _refuse


class Secret(Sealed):
    """Bytes behind a seal, shown only to the one who calls :meth:`reveal`.

    Call ``reveal`` inside the expression that needs the bytes and do not keep the answer in a variable: tracebacks that
    print local variables would show it.

    Examples
    --------
    >>> Secret(b"swordfish")
    <Secret: sealed>
    >>> len(Secret(b"swordfish").reveal())
    9
    """

    __slots__ = ("_bytes",)

    def __init__(self, material: bytes) -> None:
        self._bytes = bytes(material)

    def reveal(self) -> bytes:
        """Return the bytes themselves."""
        return self._bytes


OWNER_ONLY = 0o600
_OTHERS = 0o077
SMALL = 1 << 20  # bytes: secrets and signing keys have far fewer


def write_owner_only(path: Path, content: Secret) -> None:
    """Write ``content`` atomically to a file that only its owner can read."""
    with atomic_path(path, OWNER_ONLY) as temporary:
        temporary.write_bytes(content.reveal())


def read_owner_only(
    path: Path,
    *,
    most: int = SMALL,
    first: int | None = None,
    hint: str = "",
    recognise: Callable[[bytes], str] | None = None,
) -> Secret:
    """Read a secret file; refuse symbolic links, what is no file, files that others can read, and large ones.

    Parameters
    ----------
    path
        The file.
    most
        The largest number of bytes that it may have; it is looked at before anything is read.
    first
        Read only so many bytes.
    hint
        What to say to someone whose file is larger.
    recognise
        Given the first bytes, says what is wrong with them, or "": before anybody is told to change a file's mode.
    """
    try:
        # Without waiting: opening a named pipe would otherwise last until somebody writes to it.
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError as error:
        if path.is_symlink():
            raise KeyFileError(f"{path} is a symbolic link: give the path of the file itself") from None
        raise InputError(f"cannot open {path}: {error.strerror}") from None
    try:
        found = os.fstat(descriptor)
        mode = found.st_mode
        if not stat.S_ISREG(mode):
            raise KeyFileError(f"{path} is not a file")
        wrong = recognise(os.pread(descriptor, HEAD_BYTES, 0)) if recognise is not None else ""
        if wrong:
            raise KeyFileError(f"{path} {wrong}")
        if mode & _OTHERS:
            raise KeyFileError(f"{path} can be read by others: run chmod 600 {path}")
        if found.st_size > most:
            raise KeyFileError(f"{path} has {found.st_size} bytes, but may have {most}: {hint or 'give another file'}")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            return Secret(file.read(most if first is None else first))
    finally:
        os.close(descriptor)
