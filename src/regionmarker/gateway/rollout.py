"""Rolling the mark out: who is served marked vectors, and what marking would do to those who are not.

Unmarked vectors leave only where two people said so: whoever started the gateway (``--serve-unmarked``), and, for one
tenant at a time, whoever put that tenant in shadow mode. In doubt a vector is marked. While anything may leave
unmarked, the log, a metric and the console say so.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from prometheus_client import CollectorRegistry, Counter, Gauge
from structlog.typing import FilteringBoundLogger

from regionmarker.benchmark.utility import row_cosines
from regionmarker.errors import InputError
from regionmarker.gateway.keyhold import Snapshot
from regionmarker.gateway.tenants import Tenant
from regionmarker.protocols import Floats

UNMARKED = ("nobody", "shadow-tenants", "everyone")
_REMINDED_EVERY = 10_000  # vectors


class Watcher(Protocol):
    """Sees the clean rows that pass."""

    def see(self, snapshot: Snapshot, clean: Floats) -> None:
        """Look at rows (n, D) that are about to be served; must be quick, and must not keep them."""
        ...


@dataclass
class Measured:
    """What marking would have done to the vectors that left unmarked; for the operator alone."""

    vectors: int = 0
    cosines: float = 0.0  # their sum
    lowest: float = 1.0

    @property
    def mean_cosine(self) -> float | None:
        """How close a marked vector would have been to what was served, on average."""
        return round(self.cosines / self.vectors, 4) if self.vectors else None


class StagedRollout:
    """Decides what is served, tenant by tenant.

    Parameters
    ----------
    unmarked
        Who may be served unmarked vectors: ``"nobody"``, ``"shadow-tenants"`` (those whose mode says so) or
        ``"everyone"``.
    logger, registry
        Where it is said.
    watchers
        Shown every block of clean rows.
    """

    def __init__(
        self,
        unmarked: str,
        logger: FilteringBoundLogger,
        registry: CollectorRegistry,
        watchers: Sequence[Watcher] = (),
    ) -> None:
        if unmarked not in UNMARKED:
            raise InputError(f"--serve-unmarked takes {', '.join(UNMARKED)}, not {unmarked!r}")
        self.unmarked = unmarked
        self.measured: dict[str, Measured] = {}
        self._logger = logger
        self._watchers = tuple(watchers)
        self._lock = threading.Lock()
        self._overruled: set[str] = set()
        self._served = Counter(
            "regionmarker_unmarked_embeddings", "Vectors served WITHOUT a mark.", ["tenant"], registry=registry
        )
        allowed = Gauge("regionmarker_serving_unmarked", "1 while vectors may leave without a mark.", registry=registry)
        allowed.set(unmarked != "nobody")
        if unmarked != "nobody":
            logger.warning("UNMARKED VECTORS MAY BE SERVED", mode=unmarked)

    def serve(self, tenant: Tenant, snapshot: Snapshot, clean: Floats, marked: Floats) -> Floats:
        """Return ``marked``; or ``clean``, both (n, D), where both sides said so."""
        for watcher in self._watchers:
            watcher.see(snapshot, clean)
        if self.unmarked == "everyone" or (self.unmarked == "shadow-tenants" and tenant.mode == "shadow"):
            self._measure(tenant, clean, marked)
            return clean
        if tenant.mode == "shadow" and tenant.name not in self._overruled:
            self._overruled.add(tenant.name)
            self._logger.warning(
                "tenant is in shadow mode, but this gateway serves nobody unmarked: it marks", tenant=tenant.name
            )
        return marked

    def _measure(self, tenant: Tenant, clean: Floats, marked: Floats) -> None:
        cosines = row_cosines(clean, marked)
        self._served.labels(tenant.name).inc(len(clean))
        with self._lock:
            found = self.measured.setdefault(tenant.name, Measured())
            before, found.vectors = found.vectors, found.vectors + len(clean)
            found.cosines += float(cosines.sum())
            found.lowest = min(found.lowest, float(cosines.min(initial=1.0)))
        if before == 0 or before // _REMINDED_EVERY != found.vectors // _REMINDED_EVERY:
            self._logger.warning("SERVED UNMARKED", tenant=tenant.name, count=found.vectors, mode=self.unmarked)
