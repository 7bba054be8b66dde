"""The key that a gateway serves with: one immutable snapshot at a time, swapped whole.

A request takes the snapshot once, at its start, so that every vector of one response is marked by one version of the
key, whatever is loaded in the meantime. Only what a serving key holds is kept: a full key file is opened, its serving
key is derived, and the rest is dropped.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from regionmarker.errors import InputError
from regionmarker.keys.envelope import Kind
from regionmarker.keys.ring import KeyRing
from regionmarker.keys.secret import Sealed
from regionmarker.keys.serving import ServingKey
from regionmarker.keys.store import given_opener, kind_of_file, open_serving
from regionmarker.marking.grid import Grid
from regionmarker.marking.marker import RegionMarker
from regionmarker.protocols import Floats


@dataclass(frozen=True, repr=False, eq=False)
class Snapshot(Sealed):
    """One version of the key, ready to mark.

    Attributes
    ----------
    marker
        Made from a serving key: it can mark for the tenants served, and nothing else.
    key_id
        The key's public name.
    version
        Counts up with every swap of a :class:`Keyhold`.
    commitment
        What was published about the key, where it is known; serving keys of earlier versions do not tell.
    """

    marker: RegionMarker
    key_id: str
    version: int = 1
    commitment: str | None = None

    @property
    def width(self) -> int:
        """The embeddings' width D."""
        return self.marker.n_features_in_

    @property
    def grid(self) -> Grid:
        """The grid of numbers that served vectors lie on."""
        return self.marker.serving_.grid

    @property
    def tenants(self) -> tuple[str, ...]:
        """The tenants with a mark of their own in this key."""
        return self.marker.serving_.tenants

    def mark(self, rows: Floats, tenant: str, out: Floats) -> Floats:
        """Mark rows (n, D) into ``out``; rows that are not finite or not of unit length are an ``InputError``."""
        return self.marker.transform(rows, tenant=tenant, out=out)


class Keyhold:
    """Holds the snapshot that new requests are served with.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.standard_normal((400, 32)).astype(np.float32)
    >>> rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    >>> marker = RegionMarker(seed=1, pool=64, reservoir=256).fit([f"text {n}" for n in range(400)], embeddings=rows)
    >>> hold = Keyhold(marker.key_.serving())
    >>> hold.current().version, hold.swap(marker.key_.serving(["acme"])).tenants, hold.current().version
    (1, ('acme',), 2)
    """

    def __init__(self, serving: ServingKey, *, commitment: str | None = None, normalise: bool = False) -> None:
        self._normalise = normalise
        self._current = self._snapshot(serving, commitment, 1)

    def current(self) -> Snapshot:
        """Return the snapshot; take it once a request."""
        return self._current

    def swap(self, serving: ServingKey, *, commitment: str | None = None) -> Snapshot:
        """Serve new requests with another key; those under way finish with theirs."""
        if serving.width != self._current.width:
            raise InputError(
                f"the new key is for width {serving.width}, the one in use for {self._current.width}: "
                "start another gateway for another upstream model"
            )
        self._current = self._snapshot(serving, commitment, self._current.version + 1)
        return self._current

    def _snapshot(self, serving: ServingKey, commitment: str | None, version: int) -> Snapshot:
        marker = RegionMarker.from_serving(serving)
        marker.set_params(normalise=self._normalise)
        snapshot = Snapshot(marker, serving.id, version, commitment)
        row = np.zeros((1, serving.width), dtype=np.float32)
        row[0, 0] = 1.0
        snapshot.mark(row, "", np.empty_like(row))  # loads and compiles the kernel before the first request needs it
        return snapshot


@dataclass(frozen=True, repr=False, eq=False)
class Opened(Sealed):
    """What :func:`open_key` found: a serving key, and the commitment where the file could tell."""

    serving: ServingKey
    commitment: str | None


def open_key(
    path: str | os.PathLike[str],
    tenants: Sequence[str] = (),
    *,
    passphrase: str | None = None,
    secret_file: str | os.PathLike[str] | None = None,
) -> Opened:
    """Read a serving key file; or a key file, of which only the serving key for ``tenants`` is kept.

    A TEST key is refused: anyone can make it again.
    """
    from regionmarker.keys.commitment import commit

    path = Path(path)
    if kind_of_file(path) is Kind.SERVING:
        serving = open_serving(path, given_opener(passphrase, secret_file))
        commitment = serving.commitment or None  # files of earlier versions do not tell
        missing = sorted(set(tenants) - {"", *serving.tenants})
        if missing:
            raise InputError(f"the serving key {path} lacks the tenant {missing[0]}: export it again with --tenant")
    else:
        key = KeyRing.load(path, passphrase=passphrase, secret_file=secret_file).primary
        serving, commitment = key.serving(tenants), None if key.test else commit(key)
    if serving.test:
        raise InputError(f"{path} holds a TEST key, which anyone can make again: make a real one with keygen")
    return Opened(serving, commitment)
