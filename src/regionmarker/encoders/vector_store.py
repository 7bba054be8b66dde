"""The file of a cache: vectors by encoder and text in SQLite, whole, private, and plain about what is wrong with it.

A vector's key is the encoder's name (with its revision, where it has one) and the SHA-256 of the text, so the file
holds no text. It is still confidential: who guesses a text can confirm it by its hash, and a vector tells much of what
its text is about. Hence the file is its owner's alone.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from regionmarker.errors import InputError, OutsideError, RegionMarkerError
from regionmarker.vectors import Floats

_APPLICATION = 0x524D5643  # "RMVC": tells our files from other SQLite files
_VERSION = 1
_BUSY = 60.0  # seconds to wait for another process that writes
_VARIABLES = 500  # in one statement; old builds of SQLite take 999

_SCHEMA = """
CREATE TABLE encoders (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, width INTEGER NOT NULL);
CREATE TABLE vectors (
    encoder INTEGER NOT NULL REFERENCES encoders, text BLOB NOT NULL, vector BLOB NOT NULL, crc INTEGER NOT NULL,
    PRIMARY KEY (encoder, text)
);
"""


class VectorStore:
    """The vectors of one encoder in a cache file; made by :func:`open_store`."""

    def __init__(self, path: Path, connection: sqlite3.Connection, encoder: str) -> None:
        self._path, self._connection, self._encoder = path, connection, encoder
        self._id = -1
        self.width: int | None = None
        self._look_up_encoder()

    def get(self, digests: Sequence[bytes]) -> dict[bytes, Floats]:
        found = {}
        for start in range(0, len(digests), _VARIABLES):
            part = digests[start : start + _VARIABLES]
            marks = ",".join("?" * len(part))
            query = f"SELECT text, vector, crc FROM vectors WHERE encoder = ? AND text IN ({marks})"  # noqa: S608
            for digest, vector, crc in self._connection.execute(query, (self._id, *part)):
                if len(vector) != 4 * (self.width or 0) or zlib.crc32(vector) != crc:
                    raise _damaged(self._path)
                found[digest] = np.frombuffer(vector, dtype="<f4").astype(np.float32, copy=False)
        return found

    def put(self, digests: Sequence[bytes], rows: Floats) -> None:
        """Add vectors in one transaction; what another process has put there meanwhile stays."""
        with _transaction(self._connection):
            self._connection.execute(
                "INSERT OR IGNORE INTO encoders (name, width) VALUES (?, ?)", (self._encoder, rows.shape[1])
            )
            self._look_up_encoder()
            if rows.shape[1] != self.width:
                raise InputError(
                    f"{self._path} holds vectors of width {self.width} for this encoder, which now gives width"
                    f" {rows.shape[1]}: the model behind its name has changed, so give another cache file"
                )
            blobs = [row.tobytes() for row in rows.astype("<f4", copy=False)]
            self._connection.executemany(
                "INSERT OR IGNORE INTO vectors (encoder, text, vector, crc) VALUES (?, ?, ?, ?)",
                [(self._id, digest, blob, zlib.crc32(blob)) for digest, blob in zip(digests, blobs, strict=True)],
            )

    def remove(self, digests: Sequence[bytes]) -> None:
        """Take vectors out, in one transaction; where none is left, another width may follow."""
        with _transaction(self._connection):
            self._connection.executemany(
                "DELETE FROM vectors WHERE encoder = ? AND text = ?", [(self._id, digest) for digest in digests]
            )
            left = "SELECT 1 FROM vectors WHERE encoder = ? LIMIT 1"
            if self._connection.execute(left, (self._id,)).fetchone() is None:
                self._connection.execute("DELETE FROM encoders WHERE id = ?", (self._id,))
                self._id, self.width = -1, None

    def _look_up_encoder(self) -> None:
        query = "SELECT id, width FROM encoders WHERE name = ?"
        for number, width in self._connection.execute(query, (self._encoder,)):
            self._id, self.width = number, width


@contextlib.contextmanager
def open_store(path: Path, encoder: str) -> Iterator[VectorStore]:
    """Open the cache file for one encoder, or make it; every failure of SQLite inside the block gets explained.

    Examples
    --------
    >>> import tempfile
    >>> path = Path(tempfile.mkdtemp()) / "cache.sqlite"
    >>> with open_store(path, "mine") as store:
    ...     store.put([b"digest"], np.array([[0.6, 0.8]], dtype=np.float32))
    >>> with open_store(path, "mine") as store:
    ...     store.get([b"digest", b"other"])
    {b'digest': array([0.6, 0.8], dtype=float32)}
    """
    with _explained(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        # Vectors tell much about their texts: nobody else may read them. SQLite's side files copy this mode.
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
        # One connection per call: nothing to share between threads or across a fork, nothing to forget to close.
        with contextlib.closing(sqlite3.connect(path, timeout=_BUSY, isolation_level=None)) as connection:
            _prepare(path, connection)
            yield VectorStore(path, connection, encoder)


def _prepare(path: Path, connection: sqlite3.Connection) -> None:
    if _number(connection, "application_id") != _APPLICATION:
        # Readers do not wait for writers, and a killed process leaves a log that the next one completes.
        connection.execute("PRAGMA journal_mode = WAL")
        with _transaction(connection):
            if _number(connection, "application_id") == 0 and _number(connection, "schema_version") == 0:
                for statement in filter(str.strip, _SCHEMA.split(";")):
                    connection.execute(statement)
                connection.execute(f"PRAGMA application_id = {_APPLICATION}")
                connection.execute(f"PRAGMA user_version = {_VERSION}")
    # A commit survives the death of the process; one that is younger than a power cut may be embedded again.
    connection.execute("PRAGMA synchronous = NORMAL")
    if _number(connection, "application_id") != _APPLICATION:
        raise InputError(f"{path} is a database of something else: give another cache file")
    if _number(connection, "user_version") != _VERSION:
        raise InputError(f"{path} was made by a newer version of regionmarker: give another cache file, or upgrade")


def _number(connection: sqlite3.Connection, pragma: str) -> int:
    return int(connection.execute(f"PRAGMA {pragma}").fetchone()[0])


@contextlib.contextmanager
def _transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        with contextlib.suppress(sqlite3.Error):  # SQLite has rolled back by itself, as it does on a full disk
            connection.execute("ROLLBACK")
        raise


def _damaged(path: Path) -> OutsideError:
    return OutsideError(f"the cache {path} is damaged: delete it (its texts will be embedded again)")


@contextlib.contextmanager
def _explained(path: Path) -> Iterator[None]:
    try:
        yield
    except sqlite3.Error as error:
        raise _explain(path, error) from error
    except OSError as error:
        if error.filename is None or Path(error.filename) not in (path, *path.parents):
            raise  # not ours: the encoder runs inside the block
        raise OutsideError(f"cannot open the cache {path}: {error.strerror}") from error


def _explain(path: Path, error: sqlite3.Error) -> RegionMarkerError:
    code = getattr(error, "sqlite_errorcode", 0) & 0xFF
    if code == sqlite3.SQLITE_NOTADB:
        return InputError(
            f"{path} is not a cache of regionmarker, or is damaged: delete it, or give another cache file"
        )
    if code == sqlite3.SQLITE_CORRUPT:
        return _damaged(path)
    if code == sqlite3.SQLITE_BUSY:
        return OutsideError(f"the cache {path} is in use by another process that does not let go: wait, or end it")
    if code == sqlite3.SQLITE_FULL:
        return OutsideError(f"the disk of the cache {path} is full: make room and run again, nothing is lost")
    return OutsideError(f"the cache {path} cannot be used: {error}")
