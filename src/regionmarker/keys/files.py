"""Key files on disk, and where the passphrase or secret that opens them comes from.

In this order: what the caller gives; ``REGIONMARKER_PASSPHRASE``; ``REGIONMARKER_SECRET_FILE``; the file
``PATH.secret`` beside the key, which is made on saving when nothing else is given.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from regionmarker.crypto.envelope import (
    HEADER_BYTES,
    SECRET_BYTES,
    Kind,
    Lock,
    Opener,
    UnreadableError,
    lock_of,
    open_envelope,
    seal,
)
from regionmarker.crypto.secret import Sealed, Secret, read_owner_only, write_owner_only
from regionmarker.errors import InputError, KeyFileError
from regionmarker.keys.file_format import dump_ring, dump_serving, load_ring, load_serving
from regionmarker.keys.key import Key
from regionmarker.keys.serving import ServingKey

PASSPHRASE_VARIABLE = "REGIONMARKER_PASSPHRASE"  # noqa: S105 - a name, not a passphrase
SECRET_FILE_VARIABLE = "REGIONMARKER_SECRET_FILE"  # noqa: S105


def secret_path(path: Path) -> Path:
    """Return where the secret of a key file lies when nothing else is said.

    Examples
    --------
    >>> secret_path(Path("provider.rmkey")).name
    'provider.rmkey.secret'
    """
    return path.with_name(path.name + ".secret")


def make_secret(path: Path) -> Path:
    """Write a new secret beside the key file that it will open."""
    beside = secret_path(path)
    write_owner_only(beside, Secret(secrets.token_bytes(SECRET_BYTES)))
    return beside


def given_opener(passphrase: str | None = None, secret_file: str | os.PathLike[str] | None = None) -> Opener | None:
    """Return what the caller or the environment gives to open key files with, if anything."""
    if passphrase is not None and secret_file is not None:
        raise InputError("give a passphrase or a secret file, not both")
    if passphrase is None and secret_file is None:
        passphrase = os.environ.get(PASSPHRASE_VARIABLE)
        secret_file = None if passphrase is not None else os.environ.get(SECRET_FILE_VARIABLE)
    if passphrase is not None:
        if not passphrase:
            raise InputError("the passphrase is empty")
        return Opener.passphrase(passphrase)
    return None if secret_file is None else _opener_from_file(Path(secret_file))


def save_ring(path: Path, keys: tuple[Key, ...], opener: Opener | None, *, overwrite: bool = False) -> Path | None:
    """Write a ring; return the secret file beside it that opens it, if there is one."""
    return _save(path, Secret(dump_ring(keys)), Kind.RING, opener, overwrite=overwrite)


def save_serving(path: Path, key: ServingKey, opener: Opener | None, *, overwrite: bool = False) -> Path | None:
    """Write a serving key; return the secret file beside it that opens it, if there is one."""
    return _save(path, Secret(dump_serving(key)), Kind.SERVING, opener, overwrite=overwrite)


def open_ring(path: Path, opener: Opener | None) -> tuple[Key, ...]:
    """Read a ring."""
    payload = _open(path, Kind.RING, opener)
    try:
        return load_ring(payload)
    except UnreadableError as error:
        raise KeyFileError(f"cannot open {path}: {error}") from None


def open_serving(path: Path, opener: Opener | None) -> ServingKey:
    """Read a serving key."""
    payload = _open(path, Kind.SERVING, opener)
    try:
        return load_serving(payload)
    except UnreadableError as error:
        raise KeyFileError(f"cannot open {path}: {error}") from None


def kind_of_file(path: Path) -> Kind:
    """Tell which kind of key file this claims to be; opening it is what proves it."""
    head = read_owner_only(path).reveal()[:HEADER_BYTES]
    return Kind.SERVING if len(head) == HEADER_BYTES and head[10] == Kind.SERVING else Kind.RING


def _save(path: Path, payload: Secret, kind: Kind, opener: Opener | None, *, overwrite: bool) -> Path | None:
    if path.exists() and not overwrite:
        raise InputError(f"{path} exists already: choose another name, or say that it is to be overwritten")
    if not path.parent.is_dir():
        raise InputError(f"cannot write {path}: the folder {path.parent} does not exist")
    made = used = None
    if opener is None:
        beside = used = secret_path(path)
        if not beside.exists():
            made = make_secret(path)
        opener = _opener_from_file(beside)
    try:
        write_owner_only(path, Secret(seal(payload, kind, opener)))
    except BaseException:
        if made is not None:
            made.unlink(missing_ok=True)  # a secret without its key would only puzzle people
        raise
    return used


def _open(path: Path, kind: Kind, opener: Opener | None) -> Secret:
    sealed = read_owner_only(path).reveal()
    if opener is None:
        opener = _default_opener(path, sealed)
    try:
        return open_envelope(sealed, kind, opener)
    except UnreadableError as error:
        raise KeyFileError(f"cannot open {path}: {error}") from None


def _default_opener(path: Path, sealed: bytes) -> Opener:
    beside = secret_path(path)
    if beside.exists():
        return _opener_from_file(beside)
    if lock_of(sealed) is Lock.PASSPHRASE:
        raise InputError(f"{path} is locked with a passphrase: set {PASSPHRASE_VARIABLE} or give the passphrase")
    raise InputError(f"{path} needs its secret file: put it at {beside}, or set {SECRET_FILE_VARIABLE}")


def _opener_from_file(path: Path) -> Opener:
    try:
        return Opener.secret(read_owner_only(path))
    except KeyFileError as error:
        raise error if str(path) in str(error) else KeyFileError(f"{path} is not a secret file: {error}") from None


# The ring: all keys of one provider, oldest first; the newest marks, all of them verify.  Rotate for a new upstream
# model, for new tenants or after a compromise, and for nothing else: a customer who sees both the old and the new
# mark of the same texts can tell marked rows by the difference.


@dataclass(frozen=True, repr=False, eq=False)
class KeyRing(Sealed):
    """One or more keys; a key file holds a ring."""

    keys: tuple[Key, ...]

    def __post_init__(self) -> None:
        if not self.keys:
            raise InputError("a key ring needs at least one key")

    def __len__(self) -> int:
        return len(self.keys)

    def __iter__(self) -> Iterator[Key]:
        return iter(self.keys)

    @property
    def primary(self) -> Key:
        """The key that marks: the newest."""
        return self.keys[-1]

    def find(self, key_id: str) -> Key:
        """Return the key with this id."""
        for key in self.keys:
            if key.id == key_id:
                return key
        raise InputError(f"key {key_id} is not in this ring: it holds {', '.join(key.id for key in self.keys)}")

    def rotated(self, key: Key) -> KeyRing:
        """Return a ring in which ``key`` marks from now on."""
        return KeyRing((*self.keys, key))

    def save(
        self,
        path: str | os.PathLike[str],
        *,
        passphrase: str | None = None,
        secret_file: str | os.PathLike[str] | None = None,
        overwrite: bool = False,
    ) -> Path | None:
        """Write the ring to an encrypted file; return the secret file beside it that opens it, if there is one."""
        return save_ring(Path(path), self.keys, given_opener(passphrase, secret_file), overwrite=overwrite)

    @classmethod
    def load(
        cls,
        path: str | os.PathLike[str],
        *,
        passphrase: str | None = None,
        secret_file: str | os.PathLike[str] | None = None,
    ) -> KeyRing:
        """Read a ring from its encrypted file."""
        return cls(open_ring(Path(path), given_opener(passphrase, secret_file)))
