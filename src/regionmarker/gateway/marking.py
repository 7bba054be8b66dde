"""The marking step: clean rows in, the rows to serve out. Nothing reaches a response but through here.

Unmarked vectors leave only where two people said so: whoever started the gateway (``--serve-unmarked``), and, for one
tenant at a time, whoever put that tenant in shadow mode. In doubt a vector is marked. While anything may leave
unmarked, the log, a metric and the console say so.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from prometheus_client import CollectorRegistry, Counter, Gauge
from structlog.typing import FilteringBoundLogger

from regionmarker.errors import InputError
from regionmarker.gateway.errors import ApiError, bad_request, invalid_answer
from regionmarker.gateway.served_key import KeyVersion
from regionmarker.gateway.tenants import Tenant
from regionmarker.marking.engine import bad_rows
from regionmarker.marks.number_format import NumberFormat, round_to_format
from regionmarker.measures import row_cosines
from regionmarker.vectors import Floats, normalised

UNMARKED = ("nobody", "shadow-tenants", "everyone")
_REMINDED_EVERY = 10_000  # vectors


class Marking:
    """Marks the rows of one request, block by block.

    Parameters
    ----------
    key
        The key's version that this request is served with.
    tenant
        Whose vectors these are.
    rollout
        Decides what is served in the end.
    dimensions
        Serve this many leading columns; None for all.
    """

    def __init__(self, key: KeyVersion, tenant: Tenant, rollout: Rollout, dimensions: int | None = None) -> None:
        self.key = key
        self.tenant = tenant
        self.rollout = rollout
        self.dimensions = None if dimensions == key.width else dimensions
        self.seconds = 0.0
        """Time spent marking so far."""
        self._room = np.empty((0, key.width), dtype=np.float32)

    def serve(self, clean: Floats, first: int = 0) -> Floats:
        """Return the rows to serve, (n, D); ``first`` is the number of the first row, for messages.

        The array is used again for the next block.
        """
        started = time.perf_counter()
        if len(self._room) < len(clean):
            self._room = np.empty_like(clean)
        marked = self._room[: len(clean)]
        try:
            self.key.mark(clean, self.tenant.label, marked)
        except InputError:
            raise _bad_row(clean, first, self.key.normalise) from None
        served = self.rollout.serve(self.tenant, self.key, clean, marked)
        if self.dimensions is not None:
            served = shortened(served, self.dimensions, self.key.number_format)
        self.seconds += time.perf_counter() - started
        return served


def shortened(rows: Floats, dimensions: int, number_format: NumberFormat) -> Floats:
    """Return the leading columns, scaled to unit length and rounded to the number format: (n, D) -> (n, dimensions).

    Marked and unmarked rows take the same path, as in marking itself.

    Examples
    --------
    >>> shortened(np.float32([[0.6, 0.0, 0.8]]), 2, NumberFormat.float32)
    array([[1., 0.]], dtype=float32)
    """
    short = rows[:, :dimensions].astype(np.float64)
    norms = np.sqrt(np.einsum("ij,ij->i", short, short))
    if not norms.all():
        raise bad_request(f"a vector has nothing but zeros in its first {dimensions} dimensions", "dimensions")
    return round_to_format(short / norms[:, None], number_format)


def _bad_row(rows: Floats, first: int, normalise: bool) -> ApiError:
    """Say which vector cannot be marked, and why."""
    row = int(np.argmax(bad_rows(rows, normalise=normalise)))
    with np.errstate(over="ignore", invalid="ignore"):
        length = float(np.linalg.norm(rows[row].astype(np.float64)))
    if not np.isfinite(length):
        return invalid_answer("not_finite", f"the upstream's vector {first + row} holds NaN or infinity")
    wrong = "which cannot be scaled to 1" if normalise else "where 1 is expected"
    return invalid_answer("norm", f"the upstream's vector {first + row} has length {length:.3g} {wrong}")


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


class Rollout:
    """Decides what is served, tenant by tenant.

    Parameters
    ----------
    unmarked
        Who may be served unmarked vectors: ``"nobody"``, ``"shadow-tenants"`` (those whose mode says so) or
        ``"everyone"``.
    logger, registry
        Where it is said.
    watch
        Called with every block of clean rows (n, D); must be quick, and must not keep them.
    """

    def __init__(
        self,
        unmarked: str,
        logger: FilteringBoundLogger,
        registry: CollectorRegistry,
        watch: Callable[[KeyVersion, Floats], None] | None = None,
    ) -> None:
        if unmarked not in UNMARKED:
            raise InputError(f"--serve-unmarked takes {', '.join(UNMARKED)}, not {unmarked!r}")
        self.unmarked = unmarked
        self.measured: dict[str, Measured] = {}
        self._logger = logger
        self._watch = watch
        self._lock = threading.Lock()
        self._overruled: set[str] = set()
        self._served = Counter(
            "regionmarker_unmarked_embeddings", "Vectors served WITHOUT a mark.", ["tenant"], registry=registry
        )
        allowed = Gauge("regionmarker_serving_unmarked", "1 while vectors may leave without a mark.", registry=registry)
        allowed.set(unmarked != "nobody")
        if unmarked != "nobody":
            logger.warning("UNMARKED VECTORS MAY BE SERVED", mode=unmarked)

    def serve(self, tenant: Tenant, key: KeyVersion, clean: Floats, marked: Floats) -> Floats:
        """Return ``marked``; or ``clean``, both (n, D), where both sides said so.

        Called for every block of rows. The arrays are used again for the next one: copy what is to be kept.
        """
        if self._watch is not None:
            self._watch(key, clean)
        if self.unmarked == "everyone" or (self.unmarked == "shadow-tenants" and tenant.mode == "shadow"):
            self._measure(tenant, clean, marked)
            return round_to_format(normalised(clean), key.number_format) if key.normalise else clean
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
