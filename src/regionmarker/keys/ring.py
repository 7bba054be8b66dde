"""The ring: all keys of one provider, oldest first; the newest marks, all of them verify.

Rotate for a new upstream model, for new tenants or after a compromise, and for nothing else: a customer who sees both
the old and the new mark of the same texts can tell marked rows by the difference.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from regionmarker.errors import InputError
from regionmarker.keys.key import Key
from regionmarker.keys.secret import Sealed
from regionmarker.keys.store import given_opener, open_ring, save_ring


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
