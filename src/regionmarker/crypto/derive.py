"""Secret choices, derived from one master secret.

Every choice has its own label, so that two choices never share randomness and a new kind of choice never moves an old
one. A label is a sequence of strings, each prefixed with its length: ("a", "bc") and ("ab", "c") are different labels.

    subkey(label) = HKDF-SHA256(master, salt, "regionmarker key 1" || len(l_1) || l_1 || len(l_2) || l_2 ...)
    words(label)  = HMAC-SHA256(subkey, 0) || HMAC-SHA256(subkey, 1) || ...   read as unsigned 64-bit, little-endian

The words are fixed for ever by this page; NumPy's random streams are not (NEP 19), so they serve only for what the key
file stores as arrays.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Iterator

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from regionmarker.crypto.secret import Secret

_DOMAIN = b"regionmarker key 1"


def encode_label(*label: str) -> bytes:
    """Join the parts of a label so that no two labels read the same.

    Examples
    --------
    >>> encode_label("ab", "c") == encode_label("a", "bc")
    False
    """
    parts = [part.encode() for part in label]
    return b"".join(len(part).to_bytes(4, "little") + part for part in parts)


def subkey(master: Secret, *label: str, salt: bytes = b"") -> Secret:
    """Derive the 32 bytes that belong to ``label``.

    Examples
    --------
    >>> master = Secret(bytes(32))
    >>> subkey(master, "targets", "").reveal().hex()[:16]
    '833498c29895d350'
    """
    info = _DOMAIN + encode_label(*label)
    return Secret(HKDF(algorithm=SHA256(), length=32, salt=salt or None, info=info).derive(master.reveal()))


def words(key: Secret) -> Iterator[int]:
    """Yield an endless stream of uniform 64-bit integers that belongs to ``key``."""
    counter = 0
    while True:
        block = hmac.digest(key.reveal(), counter.to_bytes(8, "little"), hashlib.sha256)
        for start in range(0, 32, 8):
            yield int.from_bytes(block[start : start + 8], "little")
        counter += 1


def below(stream: Iterator[int], bound: int) -> int:
    """Draw uniformly from 0 .. bound - 1; words past the last whole multiple of ``bound`` are rejected (no bias)."""
    limit = (1 << 64) - (1 << 64) % bound
    while (word := next(stream)) >= limit:
        pass
    return word % bound


def draw_distinct(key: Secret, population: int, count: int) -> tuple[int, ...]:
    """Draw ``count`` distinct numbers below ``population``, in order, every ordered tuple equally likely.

    A Fisher-Yates shuffle stopped after ``count`` steps; only the places it touched are kept.

    Examples
    --------
    >>> sorted(draw_distinct(Secret(bytes(32)), population=5, count=5))
    [0, 1, 2, 3, 4]
    """
    if not 0 <= count <= population:
        raise ValueError(f"cannot draw {count} distinct numbers from {population}")
    stream = words(key)
    moved: dict[int, int] = {}
    drawn = []
    for place in range(count):
        other = place + below(stream, population - place)
        drawn.append(moved.get(other, other))
        moved[other] = moved.get(place, place)
    return tuple(drawn)
