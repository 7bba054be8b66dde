"""The key that a gateway serves with: one immutable version at a time, swapped whole, without a restart.

A request takes the version once, at its start, so that every vector of one response is marked by one version of the
key, whatever is loaded in the meantime. Only what a serving key holds is kept: a full key file is opened, its serving
key is derived, and the rest is dropped.

Whoever rotates replaces the key file by renaming another one over it (as ``key export-serving --force`` does), or asks
the gateway by SIGHUP or from the console to load it again. A file that cannot be opened or does not fit keeps the old
key in use, and is complained about once, loudly, until it is mended.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from prometheus_client import CollectorRegistry, Counter, Gauge
from structlog.typing import FilteringBoundLogger

from regionmarker.crypto.secret import Sealed
from regionmarker.errors import InputError, OutsideError, RegionMarkerError
from regionmarker.keys.commitment import serving_with_commitment
from regionmarker.keys.files import open_key
from regionmarker.keys.serving import ServingKey
from regionmarker.marking.marker import RegionMarker
from regionmarker.marks.number_format import NumberFormat
from regionmarker.vectors import Floats

EVERY_SECONDS = 2.0  # between two looks at the key file


@dataclass(frozen=True, repr=False, eq=False)
class KeyVersion(Sealed):
    """One version of the key, ready to mark.

    Attributes
    ----------
    marker
        Made from a serving key: it can mark for the tenants served, and nothing else.
    version
        Counts up with every swap of a :class:`ServedKey`.
    """

    marker: RegionMarker
    version: int = 1

    @property
    def key_id(self) -> str:
        return self.marker.serving_.id

    @property
    def commitment(self) -> str | None:
        """What was published about the key, where it is known; serving keys of earlier versions do not say."""
        return self.marker.serving_.commitment or None

    @property
    def width(self) -> int:
        return self.marker.n_features_in_

    @property
    def number_format(self) -> NumberFormat:
        return self.marker.serving_.number_format

    @property
    def normalise(self) -> bool:
        """Whether rows of any length are scaled to unit length instead of refused."""
        return self.marker.normalise

    @cached_property
    def labels(self) -> frozenset[str]:
        """The labels of tenants whose marks are in this key: names and places."""
        return frozenset(self.marker.serving_.tenants)

    def mark(self, rows: Floats, tenant: str, out: Floats) -> Floats:
        """Mark rows (n, D) into ``out``; rows that are not finite or not of unit length are an ``InputError``."""
        return self.marker.transform(rows, tenant=tenant, out=out)


class ServedKey:
    """Holds the version of the key that new requests are served with.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.standard_normal((400, 32)).astype(np.float32)
    >>> rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    >>> marker = RegionMarker(seed=1, pool=64, reservoir=256).fit([f"text {n}" for n in range(400)], embeddings=rows)
    >>> served = ServedKey(marker.key_.serving())
    >>> served.current().version, sorted(served.swap(marker.key_.serving(["acme"])).labels), served.current().version
    (1, ['acme'], 2)
    """

    def __init__(self, serving: ServingKey, *, normalise: bool = False) -> None:
        self._normalise = normalise
        self._current = self._ready(serving, 1)

    def current(self) -> KeyVersion:
        """Return the version in use; take it once per request."""
        return self._current

    def swap(self, serving: ServingKey) -> KeyVersion:
        """Serve new requests with another key; those under way finish with theirs."""
        if serving.width != self._current.width:
            raise InputError(
                f"the new key is for width {serving.width}, the one in use for {self._current.width}: "
                "start another gateway for another upstream model"
            )
        self._current = self._ready(serving, self._current.version + 1)
        return self._current

    def _ready(self, serving: ServingKey, version: int) -> KeyVersion:
        marker = RegionMarker.from_serving(serving)
        marker.set_params(normalise=self._normalise or serving.normalise)
        key = KeyVersion(marker, version)
        row = np.zeros((1, serving.width), dtype=np.float32)
        row[0, 0] = 1.0
        key.mark(row, "", np.empty_like(row))  # loads and compiles the engine before the first request needs it
        return key


def open_serving_key(
    path: Path, labels: Sequence[str] = (), *, passphrase: str | None = None, secret_file: Path | None = None
) -> ServingKey:
    """Read a serving key file; or a key file, of which only the serving key for the tenants' ``labels`` is kept.

    A TEST key is refused: anyone can make it again.
    """
    opened = open_key(path, passphrase=passphrase, secret_file=secret_file)
    if isinstance(opened, ServingKey):
        serving = opened
        missing = sorted(set(labels) - {"", *serving.tenants})
        if missing:
            raise InputError(f"the serving key {path} lacks the tenant {missing[0]}: export it again with --tenant")
    else:
        serving = serving_with_commitment(opened.primary, labels if opened.primary.marks_tenants else ())
    if serving.test:
        raise InputError(f"{path} holds a TEST key, which anyone can make again: make a real one with keygen")
    return serving


def refuse_without_tenants(serving: ServingKey, path: Path) -> None:
    """Refuse to serve a tenants database with a key that has no marks for tenants: nobody could be traced."""
    if not serving.marks_tenants:
        raise InputError(
            f"{path} has no marks for tenants (it was made with --no-tenants), so it cannot serve the tenants of a "
            "database: make a key without --no-tenants for the next version of the model, or serve without --database"
        )


def refuse_removal(serving: ServingKey, unmarked: str, current: KeyVersion | None) -> None:
    """Refuse what would let customers remove a graded mark: clean vectors, or another key, beside the same model.

    Whoever holds vectors of the same texts with and without a mark, or under two marks, subtracts them and has the span
    of the targets.
    """
    if serving.mark.kind != "graded":
        return
    if unmarked != "nobody":
        raise InputError(
            f"--serve-unmarked {unmarked} beside a graded mark lets customers subtract clean vectors from marked ones "
            "and remove the mark: measure on a sample with regionmarker impact, then serve a new version of the model "
            "marked to everyone; or give --accept-removal"
        )
    if current is not None and current.key_id != serving.id:
        raise InputError(
            f"the new key {serving.id} is another than {current.key_id}, which is in use: customers who hold vectors "
            "of the same texts under two graded keys can remove both marks; start another gateway with the next "
            "version of the model, or give --accept-removal"
        )


class KeyReloader:
    """Loads a key file again when it is another one, or when asked to.

    Parameters
    ----------
    path
        The key file.
    open_it
        Opens and checks it, off the event loop; raises a ``RegionMarkerError`` where it is not fit to serve.
    served_key
        Whose key is swapped.
    logger, registry
        Where it is said.
    labels
        Of the tenants that the key is derived for, where the file is a whole key: a new one calls for a new serving
        key.
    swapped
        Called with a key that is in use from now on, off the event loop.
    """

    def __init__(
        self,
        path: Path,
        open_it: Callable[[], ServingKey],
        served_key: ServedKey,
        logger: FilteringBoundLogger,
        registry: CollectorRegistry,
        labels: Callable[[], Sequence[str]] = tuple,
        swapped: Callable[[KeyVersion], None] = lambda _key: None,
    ) -> None:
        self._labels, self._swapped = labels, swapped
        self._seen: tuple[str, tuple[str, ...]] = ("", ())
        self._path, self._open, self._served_key, self._logger = path, open_it, served_key, logger
        self._seen = self._fingerprint()
        self._lock: asyncio.Lock | None = None
        self.trouble = ""
        self._reloads = Counter(
            "regionmarker_key_reloads", "Times that a key file was loaded again.", ["outcome"], registry=registry
        )
        self._stale = Gauge(
            "regionmarker_key_stale", "1 while the key file is newer than the key in use.", registry=registry
        )

    async def run(self, every: float = EVERY_SECONDS) -> None:
        while True:
            await asyncio.sleep(every)
            await self.look()

    async def look(self) -> bool:
        """Load the file if it is another one than before; return whether the key was swapped."""
        found = await asyncio.to_thread(self._fingerprint)
        if found == self._seen:
            return False
        return await self.reload()

    async def reload(self) -> bool:
        """Load the file and swap the key; a file that does not do keeps the old one. Return whether it was swapped."""
        if self._lock is None:
            self._lock = asyncio.Lock()
        async with self._lock:  # SIGHUP, the console and the clock may ask at once
            found = await asyncio.to_thread(self._fingerprint)
            try:
                serving = await asyncio.to_thread(self._open)
                self._check(serving)
                key = await asyncio.to_thread(self._served_key.swap, serving)
            except (RegionMarkerError, OSError) as error:
                self._seen = found  # tried: not again before it changes
                self._complain(str(error))
                return False
            self._seen = found
            self.trouble = ""
            self._stale.set(0)
            self._reloads.labels("swapped").inc()
            self._logger.warning("serving with a new key", key_id=key.key_id, version=key.version)
            await asyncio.to_thread(self._swapped, key)
            return True

    def _check(self, serving: ServingKey) -> None:
        current = self._served_key.current()
        new, old = serving.number_format, current.number_format
        if new is not old:
            raise InputError(
                f"the new key has the grid {new.value}, the one in use {old.value}: a change "
                "of grid shows which vectors came before; start another gateway for another upstream model"
            )
        lost = sorted(current.labels - set(serving.tenants))
        if lost:
            raise InputError(
                f"the new key lacks {len(lost)} tenants that are served now, such as {lost[0]}: "
                "export it again with the labels that tenants list --labels prints, and as many --places"
            )

    def _complain(self, reason: str) -> None:
        self._reloads.labels("refused").inc()
        self._stale.set(1)
        self.trouble = reason
        self._logger.error("THE NEW KEY FILE IS NOT USED, the old key goes on serving", reason=reason)

    def _fingerprint(self) -> tuple[str, tuple[str, ...]]:
        """Return what tells one key from the next: a digest, as times and sizes may be the same, and labels."""
        try:
            labels = tuple(sorted(self._labels()))
        except OutsideError:
            labels = self._seen[1]  # the database is away: that changes no key
        try:
            with self._path.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest(), labels
        except OSError as error:
            return f"unreadable: {error.errno}", labels
