"""Where a key comes from, said in words that may travel: a path, and what opens it on the machine that needs it.

A reference holds no key material, so it may be a task's argument, a log line or a row in a queue. Whoever gets it opens
the key itself: with the secret file beside the key, with the environment, or with a key service by an **opener spec**:

- ``file:PATH``: the 32 bytes of a file;
- ``environment:NAME``: 64 hexadecimal digits in an environment variable;
- ``NAME:REST``: what another package adds by an entry point of the group ``regionmarker.openers``. It is called with
  what stands after the colon and returns the 32 bytes, from a key management service, say.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from regionmarker.crypto.envelope import Kind, Opener
from regionmarker.crypto.secret import Secret, read_owner_only
from regionmarker.errors import InputError
from regionmarker.keys.files import KeyRing, given_opener, kind_of_file, open_ring, open_serving
from regionmarker.marking.marker import RegionMarker
from regionmarker.specs import Registry

OPENERS = Registry(
    "opener",
    "regionmarker.openers",
    {"file": "regionmarker.keys.openers:from_file", "environment": "regionmarker.keys.openers:from_environment"},
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

    def material(self, passphrase: str | None = None) -> Opener | None:
        """Return what opens the key; None where that is the secret file beside it."""
        return load_opener(self.opener) if self.opener is not None else given_opener(passphrase, self.secret_file)

    def open(self, passphrase: str | None = None) -> RegionMarker:
        """Open the key here."""
        path = Path(self.path)
        if kind_of_file(path) is Kind.SERVING:
            return RegionMarker.from_serving(open_serving(path, self.material(passphrase)))
        return RegionMarker.from_key(KeyRing(open_ring(path, self.material(passphrase))).primary)


@lru_cache(maxsize=8)
def opened_once(reference: KeyReference) -> RegionMarker:
    """Open a key once in this process, however many tasks ask for it."""
    return reference.open()
