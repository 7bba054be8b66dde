"""A new key without a restart: the key file is replaced, the gateway notices, checks it and swaps it in.

Whoever rotates replaces the file by renaming another one over it (as ``key export-serving --force`` does), or tells the
gateway by SIGHUP or from the console. A file that cannot be opened or does not fit keeps the old key in use, and is
complained about once, loudly, until it is mended. Requests under way finish with the key that they began with.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path

from prometheus_client import CollectorRegistry, Counter, Gauge
from structlog.typing import FilteringBoundLogger

from regionmarker.errors import InputError, OutsideError, RegionMarkerError
from regionmarker.gateway.keyhold import Keyhold, Opened, Snapshot

EVERY_SECONDS = 2.0


class KeyWatch:
    """Watches a key file for a gateway.

    Parameters
    ----------
    path
        The key file.
    open_it
        Opens and checks it, off the event loop; raises a ``RegionMarkerError`` where it is not fit to serve.
    keyhold
        Whose key is swapped.
    logger, registry
        Where it is told.
    names
        The tenants that the key is derived for, where the file is a whole key: a new one calls for a new serving key.
    """

    def __init__(
        self,
        path: Path,
        open_it: Callable[[], Opened],
        keyhold: Keyhold,
        logger: FilteringBoundLogger,
        registry: CollectorRegistry,
        names: Callable[[], Sequence[str]] = tuple,
    ) -> None:
        self._names = names
        self._seen: tuple[str, tuple[str, ...]] = ("", ())
        self._path, self._open, self._keyhold, self._logger = path, open_it, keyhold, logger
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
        """Look for ever whether the file is another one."""
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
        async with self._lock:  # SIGHUP, the console and the watch may ask at once
            found = await asyncio.to_thread(self._fingerprint)
            try:
                opened = await asyncio.to_thread(self._open)
                self._check(opened)
                snapshot = await asyncio.to_thread(self._swap, opened)
            except (RegionMarkerError, OSError) as error:
                self._seen = found  # tried: not again before it changes
                self._complain(str(error))
                return False
            self._seen = found
            self.trouble = ""
            self._stale.set(0)
            self._reloads.labels("swapped").inc()
            self._logger.warning("serving with a new key", key_id=snapshot.key_id, version=snapshot.version)
            return True

    def _swap(self, opened: Opened) -> Snapshot:
        return self._keyhold.swap(opened.serving, commitment=opened.commitment)

    def _check(self, opened: Opened) -> None:
        current = self._keyhold.current()
        if opened.serving.width != current.width:
            raise InputError(
                f"the new key is for width {opened.serving.width}, the one in use for {current.width}: "
                "start another gateway for another upstream model"
            )
        if opened.serving.grid is not current.grid:
            raise InputError(
                f"the new key has the grid {opened.serving.grid.value}, the one in use {current.grid.value}: a change "
                "of grid shows which vectors came before; start another gateway for another upstream model"
            )
        lost = sorted(set(current.tenants) - set(opened.serving.tenants))
        if lost:
            raise InputError(
                f"the new key lacks {len(lost)} tenants that are served now, such as {lost[0]}: "
                "export it again with the names that tenants list --names prints"
            )

    def _complain(self, reason: str) -> None:
        self._reloads.labels("refused").inc()
        self._stale.set(1)
        self.trouble = reason
        self._logger.error("THE NEW KEY FILE IS NOT USED, the old key goes on serving", reason=reason)

    def _fingerprint(self) -> tuple[str, tuple[str, ...]]:
        """Return what tells one key from the next: a digest, because times and sizes may be the same, and the names."""
        try:
            names = tuple(sorted(self._names()))
        except OutsideError:
            names = self._seen[1]  # the database is away: that changes no key
        try:
            with self._path.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest(), names
        except OSError as error:
            return f"unreadable: {error.errno}", names
