"""The encrypted envelope around everything that regionmarker writes to disk in secret.

    offset  bytes  what
    0       8      magic: 89 52 4D 4B 45 59 0D 0A  (non-ASCII first, CR LF last: text-mode damage shows)
    8       2      format version, little-endian: 1
    10      1      kind: 1 key ring, 2 serving key (3, a survey under way, is never in a file)
    11      1      lock: 1 passphrase (Argon2id), 2 secret file (HKDF-SHA256 over its 32 bytes)
    12      4      Argon2id memory in KiB (lock 2: 0)
    16      4      Argon2id iterations    (lock 2: 0)
    20      4      Argon2id lanes         (lock 2: 0)
    24      16     salt
    40      12     AES-GCM nonce
    52      8      length of the ciphertext with its tag
    60      ...    AES-256-GCM ciphertext and 16-byte tag; bytes 0 .. 59 are the associated data

Every way of being unreadable (damage, truncation, trailing bytes, another format, a newer version, a wrong passphrase)
gives the same sentence: which one it was is nobody's business but the owner's, and often cannot be known.
"""

from __future__ import annotations

import os
import struct
from dataclasses import dataclass
from enum import IntEnum

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.argon2 import Argon2id
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from regionmarker.crypto.secret import Secret
from regionmarker.errors import KeyFileError

MAGIC = b"\x89RMKEY\r\n"
VERSION = 1
_HEADER = struct.Struct("<8sHBBIII16s12sQ")
HEADER_BYTES = _HEADER.size  # 60
_KIND_AT = 10
TAG_BYTES = 16
SECRET_BYTES = 32

# RFC 9106, second recommended option; the ceilings keep a forged header from eating the machine.
_MEMORY_KIB, _ITERATIONS, _LANES = 64 * 1024, 3, 4
_MEMORY_CEILING_KIB, _ITERATIONS_CEILING, _LANES_CEILING = 4 * _MEMORY_KIB, 2 * _ITERATIONS, 2 * _LANES

UNREADABLE = (
    "it is damaged, is not a regionmarker key, was written by a newer version, "
    "or the passphrase or secret file is wrong"
)


class Kind(IntEnum):
    """What is inside an envelope."""

    RING = 1
    SERVING = 2


class Lock(IntEnum):
    """How an envelope is locked."""

    PASSPHRASE = 1
    SECRET_FILE = 2


class UnreadableError(KeyFileError):
    """The one failure of :func:`open_envelope`."""

    def __init__(self) -> None:
        super().__init__(UNREADABLE)


@dataclass(frozen=True)
class Opener:
    """What opens an envelope: a passphrase, or the bytes of a secret file.

    Examples
    --------
    >>> opener = Opener.passphrase("correct horse")
    >>> sealed = seal(Secret(b"payload"), Kind.RING, opener)
    >>> open_envelope(sealed, Kind.RING, opener).reveal()
    b'payload'
    """

    lock: Lock
    material: Secret

    @classmethod
    def passphrase(cls, passphrase: str) -> Opener:
        return cls(Lock.PASSPHRASE, Secret(passphrase.encode()))

    @classmethod
    def secret(cls, material: Secret) -> Opener:
        if len(material.reveal()) != SECRET_BYTES:
            raise KeyFileError(f"the secret that opens a key must hold exactly {SECRET_BYTES} bytes")
        return cls(Lock.SECRET_FILE, material)

    def _cipher(self, salt: bytes, memory: int, iterations: int, lanes: int) -> AESGCM:
        if self.lock is Lock.PASSPHRASE:
            argon = Argon2id(salt=salt, length=32, iterations=iterations, lanes=lanes, memory_cost=memory)
            return AESGCM(argon.derive(self.material.reveal()))
        hkdf = HKDF(algorithm=SHA256(), length=32, salt=salt, info=b"regionmarker envelope 1")
        return AESGCM(hkdf.derive(self.material.reveal()))


def seal(payload: Secret, kind: Kind, opener: Opener) -> bytes:
    """Encrypt ``payload``."""
    salt, nonce = os.urandom(16), os.urandom(12)
    cost = (_MEMORY_KIB, _ITERATIONS, _LANES) if opener.lock is Lock.PASSPHRASE else (0, 0, 0)
    header = _HEADER.pack(MAGIC, VERSION, kind, opener.lock, *cost, salt, nonce, len(payload.reveal()) + TAG_BYTES)
    return header + opener._cipher(salt, *cost).encrypt(nonce, payload.reveal(), header)


def open_envelope(sealed: bytes, kind: Kind, opener: Opener) -> Secret:
    """Decrypt what :func:`seal` made; anything else raises :class:`UnreadableError`."""
    if len(sealed) < HEADER_BYTES + TAG_BYTES:
        raise UnreadableError
    header, body = sealed[:HEADER_BYTES], memoryview(sealed)[HEADER_BYTES:]
    magic, version, its_kind, lock, memory, iterations, lanes, salt, nonce, length = _HEADER.unpack(header)
    known = (magic, version, its_kind, lock, length) == (MAGIC, VERSION, kind, opener.lock, len(body))
    if not (known and _plausible(lock, memory, iterations, lanes)):
        raise UnreadableError
    try:
        return Secret(opener._cipher(salt, memory, iterations, lanes).decrypt(nonce, body, header))
    except (InvalidTag, ValueError, OverflowError, MemoryError):
        raise UnreadableError from None


def claimed_kind(sealed: bytes) -> Kind | None:
    """Tell what an envelope holds, as far as its (not yet authenticated) header says."""
    if len(sealed) < HEADER_BYTES or not sealed.startswith(MAGIC):
        return None
    return Kind(sealed[_KIND_AT]) if sealed[_KIND_AT] in set(Kind) else None


def lock_of(sealed: bytes) -> Lock | None:
    """Tell how an envelope is locked, as far as its (not yet authenticated) header says."""
    if len(sealed) < HEADER_BYTES or not sealed.startswith(MAGIC):
        return None
    return Lock(sealed[11]) if sealed[11] in set(Lock) else None


def _plausible(lock: int, memory: int, iterations: int, lanes: int) -> bool:
    if lock == Lock.SECRET_FILE:
        return (memory, iterations, lanes) == (0, 0, 0)
    return (
        1 <= lanes <= _LANES_CEILING
        and 1 <= iterations <= _ITERATIONS_CEILING
        and 8 * lanes <= memory <= _MEMORY_CEILING_KIB
    )
