"""Key files on disk: the ring, how any of them is opened, and where the secret that opens it comes from.

The passphrase or secret comes, in this order, from what the caller gives; ``REGIONMARKER_PASSPHRASE``;
``REGIONMARKER_SECRET_FILE``; the file ``PATH.secret`` beside the key, made on saving when nothing else is given.

A :class:`KeyReference` says in words that may travel where a key comes from and what opens it on the machine that needs
it. It holds no key material, so it may be a task's argument, a log line or a row in a queue. Whoever gets it opens the
key itself: with the secret file beside the key, with the environment, or with a key service by an **opener spec**:

- ``file:PATH``: the 32 bytes of a file;
- ``environment:NAME``: 64 hexadecimal digits in an environment variable;
- ``NAME:REST``: what another package adds by an entry point of the group ``regionmarker.openers``. It is called with
  what stands after the colon and returns the 32 bytes, from a key management service, say.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from regionmarker.crypto.envelope import (
    HEADER_BYTES,
    MAGIC,
    SECRET_BYTES,
    TAG_BYTES,
    Kind,
    Lock,
    Opener,
    UnreadableError,
    claimed_kind,
    lock_of,
    open_envelope,
    seal,
)
from regionmarker.crypto.secret import Sealed, Secret, read_owner_only, write_owner_only
from regionmarker.errors import InputError, KeyFileError
from regionmarker.files import recognised
from regionmarker.keys.file_format import dump_ring, dump_serving, load_ring, load_serving
from regionmarker.keys.key import Key
from regionmarker.keys.serving import ServingKey
from regionmarker.specs import Registry

PASSPHRASE_VARIABLE = "REGIONMARKER_PASSPHRASE"  # noqa: S105 - a name, not a passphrase
SECRET_FILE_VARIABLE = "REGIONMARKER_SECRET_FILE"  # noqa: S105
LARGEST_VARIABLE = "REGIONMARKER_LARGEST_KEY"
_DIGITS = 19
LARGEST = 1 << 30  # bytes of a key file; a key of the default size for vectors of width 4096 has less than a tenth
T = TypeVar("T")


@dataclass(frozen=True, repr=False, eq=False)
class KeyRing(Sealed):
    """All keys of one provider, oldest first: the newest marks, all of them verify. A key file holds a ring.

    Rotate for a new upstream model, for new tenants or after a compromise, and for nothing else: a customer who sees
    both the old and the new mark of the same texts can tell marked rows by the difference.
    """

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

    def describe(self) -> dict[str, object]:
        """Return the facts of the newest key that are not secret, and the names of the older ones."""
        return {**self.primary.describe(), "older_keys": [older.id for older in self.keys[:-1]]}

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
        opener = given_opener(passphrase, secret_file)
        return _save(Path(path), Secret(dump_ring(self.keys)), Kind.RING, opener, overwrite=overwrite)

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


@dataclass(frozen=True)
class KeyReference:
    """A key file and what opens it; no key material.

    Attributes
    ----------
    path
        The key file or serving key file.
    secret_file
        The file with the secret that opens it, if it is not beside the key or in the environment.
    opener
        An opener spec instead.

    Examples
    --------
    >>> KeyReference("serving.rmkey", opener="environment:SERVING_SECRET")
    KeyReference(path='serving.rmkey', secret_file=None, opener='environment:SERVING_SECRET')
    """

    path: str
    secret_file: str | None = None
    opener: str | None = None

    def __post_init__(self) -> None:
        if self.secret_file is not None and self.opener is not None:
            raise InputError("give a secret file or an opener, not both")

    def open(self, passphrase: str | None = None) -> KeyRing | ServingKey:
        return open_key(self.path, passphrase=passphrase, secret_file=self.secret_file, opener=self.opener)


def open_key(
    path: str | os.PathLike[str],
    *,
    passphrase: str | None = None,
    secret_file: str | os.PathLike[str] | None = None,
    opener: str | None = None,
) -> KeyRing | ServingKey:
    """Open a key file, whichever kind it is; an opener spec goes before a passphrase or a secret file."""
    lock = load_opener(opener) if opener is not None else given_opener(passphrase, secret_file)
    path = Path(path)
    return open_serving(path, lock) if holds_serving_key(path) else KeyRing(open_ring(path, lock))


def holds_serving_key(path: Path) -> bool:
    """Say whether a key file claims to hold a serving key; opening it is what proves it."""
    return claimed_kind(_read_sealed(path, first=HEADER_BYTES).reveal()) is Kind.SERVING


def secret_path(path: Path) -> Path:
    """Return where the secret of a key file lies when nothing else is said.

    Examples
    --------
    >>> secret_path(Path("provider.rmkey")).name
    'provider.rmkey.secret'
    """
    return path.with_name(path.name + ".secret")


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


def save_serving(path: Path, key: ServingKey, opener: Opener | None, *, overwrite: bool = False) -> Path | None:
    """Write a serving key; return the secret file beside it that opens it, if there is one."""
    return _save(path, Secret(dump_serving(key)), Kind.SERVING, opener, overwrite=overwrite)


def open_ring(path: Path, opener: Opener | None) -> tuple[Key, ...]:
    """Read a ring."""
    return _open(path, Kind.RING, opener, load_ring)


def open_serving(path: Path, opener: Opener | None) -> ServingKey:
    """Read a serving key."""
    return _open(path, Kind.SERVING, opener, load_serving)


OPENERS = Registry(
    "opener",
    "regionmarker.openers",
    {"file": "regionmarker.keys.files:from_file", "environment": "regionmarker.keys.files:from_environment"},
    {"file": ":PATH", "environment": ":NAME"},
)


def from_file(path: str) -> Secret:
    """Read the secret from a file that only its owner can read."""
    return read_owner_only(Path(path))


def from_environment(name: str) -> Secret:
    """Read the secret from an environment variable, as hexadecimal digits."""
    value = os.environ.get(name)
    if value is None:
        raise InputError(f"the environment variable {name or '(no name given)'} is not set here: it opens the key")
    try:
        return Secret(bytes.fromhex(value))
    except ValueError:
        raise InputError(f"the environment variable {name} does not hold hexadecimal digits") from None


def load_opener(spec: str) -> Opener:
    """Get what opens a key file from where the spec says."""
    found = OPENERS.load(spec)
    return Opener.secret(found if isinstance(found, Secret) else Secret(found))


def _save(path: Path, payload: Secret, kind: Kind, opener: Opener | None, *, overwrite: bool) -> Path | None:
    if path.exists() and not overwrite:
        raise InputError(f"{path} exists already: choose another name, or say that it is to be overwritten")
    if not path.parent.is_dir():
        raise InputError(f"cannot write {path}: the folder {path.parent} does not exist")
    if len(payload.reveal()) + HEADER_BYTES + TAG_BYTES > _largest():
        raise InputError(
            f"the key would have {len(payload.reveal()) >> 20} MiB, more than is ever opened: choose a smaller pool "
            f"and reservoir, or set {LARGEST_VARIABLE} here and wherever it is opened"
        )
    made = used = None
    if opener is None:
        used = secret_path(path)
        if not used.exists():
            write_owner_only(used, Secret(secrets.token_bytes(SECRET_BYTES)))
            made = used
        opener = _opener_from_file(used)
    try:
        write_owner_only(path, Secret(seal(payload, kind, opener)))
    except BaseException:
        if made is not None:
            made.unlink(missing_ok=True)  # a secret without its key would only puzzle people
        raise
    return used


def _open(path: Path, kind: Kind, opener: Opener | None, load: Callable[[Secret], T]) -> T:
    sealed = _read_sealed(path).reveal()
    if claimed_kind(sealed) not in (None, kind):
        raise KeyFileError(f"{path} {_OTHER_KIND[kind]}")
    if opener is None:
        opener = _default_opener(path, sealed)
    try:
        return load(open_envelope(sealed, kind, opener))
    except UnreadableError as error:
        raise KeyFileError(f"cannot open {path}: {error}") from None


def _read_sealed(path: Path, first: int | None = None) -> Secret:
    """Read a key file, whose size is looked at first: it may be anything at all."""
    hint = f"it is no key file, or set {LARGEST_VARIABLE} to the bytes that one may have"
    return read_owner_only(path, most=_largest(), first=first, hint=hint, recognise=_no_key)


_OTHER_KIND = {
    Kind.RING: "is a serving key, which can only mark: give the key file that it was exported from",
    Kind.SERVING: "is a whole key, and not a serving key: write one with regionmarker key export-serving",
}


def _no_key(head: bytes) -> str:
    """Say what a file is that does not begin like a key."""
    if head.startswith(MAGIC) or not head:
        return ""
    looks = recognised(head)
    found = f"it looks like {looks}" if looks else "it does not begin like one (its secret lies in a file of its own)"
    return f"is not a key file: {found}; keys are made with regionmarker keygen"


def _no_secret(head: bytes) -> str:
    if head.startswith(MAGIC):
        return "is a key file, and not the secret that opens one: give the file of 32 bytes, by default PATH.secret"
    looks = "" if len(head) == SECRET_BYTES else recognised(head)  # random bytes may look like anything
    return f"is not a secret file: it looks like {looks}; a secret has 32 random bytes" if looks else ""


def _largest() -> int:
    given = os.environ.get(LARGEST_VARIABLE)
    if given is None:
        return LARGEST
    if not (given.isascii() and given.isdigit() and len(given) < _DIGITS):
        raise InputError(f"{LARGEST_VARIABLE} is {given!r}, but must be a number of bytes")
    return int(given)


def _default_opener(path: Path, sealed: bytes) -> Opener:
    beside = secret_path(path)
    if beside.exists():
        return _opener_from_file(beside)
    if lock_of(sealed) is Lock.PASSPHRASE:
        raise InputError(f"{path} is locked with a passphrase: set {PASSPHRASE_VARIABLE} or give the passphrase")
    raise InputError(f"{path} needs its secret file: put it at {beside}, or set {SECRET_FILE_VARIABLE}")


def _opener_from_file(path: Path) -> Opener:
    try:
        return Opener.secret(read_owner_only(path, recognise=_no_secret))
    except KeyFileError as error:
        raise error if str(path) in str(error) else KeyFileError(f"{path} is not a secret file: {error}") from None
