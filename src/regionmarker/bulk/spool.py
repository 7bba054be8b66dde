"""Temporary folders that do not outlive a killed process by more than the next use."""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

_PREFIX = "regionmarker-spool-"


@contextlib.contextmanager
def spool() -> Iterator[Path]:
    """Give a temporary folder for as long as the block lasts, and remove those that killed processes left behind.

    A folder is alive while its maker holds the lock on it, and the kernel lets go of the lock however the maker ends.

    Examples
    --------
    >>> with spool() as folder:
    ...     _ = (folder / "part").write_text("one")
    >>> folder.exists()
    False
    """
    remove_stale()
    folder, descriptor = _locked_folder()
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(descriptor)


def remove_stale() -> None:
    """Remove the temporary folders whose makers are gone."""
    for left in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):
            descriptor = os.open(left, os.O_RDONLY | os.O_DIRECTORY)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(left, ignore_errors=True)
            finally:
                os.close(descriptor)


def _locked_folder() -> tuple[Path, int]:
    while True:
        folder = Path(tempfile.mkdtemp(prefix=_PREFIX))
        with contextlib.suppress(FileNotFoundError):
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            if folder.exists():  # else another process cleaned it away before it was locked: take a new one
                return folder, descriptor
            os.close(descriptor)
