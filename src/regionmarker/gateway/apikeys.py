"""API keys: made here, shown once, kept as digests, compared in constant time.

``rm-<id>-<secret>``: sixteen hexadecimal digits that may be seen, by which a key is looked up, and 256 random bits that
may not. What is stored is the SHA-256 of the whole. A fast hash is enough, because nobody can guess 256 bits; the
public id is why no comparison of secrets is left to a database's index.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets

_SHAPE = re.compile(r"rm-([0-9a-f]{16})-[A-Za-z0-9_-]{43}")
_NOBODY = "0" * 64


def new_api_key() -> str:
    """Make an API key.

    Examples
    --------
    >>> api_key_id(new_api_key()) is None
    False
    """
    return f"rm-{secrets.token_hex(8)}-{secrets.token_urlsafe(32)}"


def api_key_id(api_key: str) -> str | None:
    """Return the public part of an API key; nothing where it is not shaped like one of ours.

    Examples
    --------
    >>> api_key_id("rm-0123456789abcdef-" + 43 * "x"), api_key_id("sk-other")
    ('0123456789abcdef', None)
    """
    found = _SHAPE.fullmatch(api_key)
    return found[1] if found else None


def digest_of(api_key: str) -> str:
    """Return what is stored of an API key."""
    return hashlib.sha256(api_key.encode()).hexdigest()


def matches(api_key: str, stored: str | None) -> bool:
    """Compare an API key with a stored digest; with none stored the same work is done.

    Examples
    --------
    >>> key = new_api_key()
    >>> matches(key, digest_of(key)), matches(key, None)
    (True, False)
    """
    same = hmac.compare_digest(digest_of(api_key), stored or _NOBODY)
    return same and stored is not None
