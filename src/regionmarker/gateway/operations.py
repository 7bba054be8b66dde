"""Running a gateway: what watches it, and what the operator may know.

    keywatch      a new key without a restart
    rollout       who is served marked vectors
    drift         traffic that leaves the fitted regions
    canaries      an upstream that is another model

:class:`Operations` gives all of it to a gateway and tells the console.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
from prometheus_client import Gauge
from prometheus_client.metrics import MetricWrapperBase
from starlette.routing import BaseRoute

from regionmarker._version import __version__
from regionmarker.errors import OutsideError
from regionmarker.gateway.console import Console
from regionmarker.gateway.dialects.openai import EmbeddingRequest
from regionmarker.gateway.drift import Canaries, RegionWatch
from regionmarker.gateway.gateway import Gateway
from regionmarker.gateway.logs import RecentErrors
from regionmarker.gateway.marking import StagedRollout
from regionmarker.gateway.served_key import KeyReloader, Opened
from regionmarker.gateway.tenants.accounts import Accounts
from regionmarker.vectors import Floats

_QUIET = ("timestamp", "level", "event", "logger")


class Operations:
    """A gateway with its watchers.

    Parameters
    ----------
    gateway
        What is run; its roll-out is replaced, and the watchers are added to what it does in the background.
    unmarked
        Who may be served unmarked vectors; see :class:`~regionmarker.gateway.marking.StagedRollout`.
    recent_errors
        The log's last complaints.
    accounts
        The tenants, where there is a database.
    canary_file
        Where the upstream's first answers are kept.
    """

    def __init__(
        self,
        gateway: Gateway,
        *,
        unmarked: str = "nobody",
        recent_errors: RecentErrors | None = None,
        accounts: Accounts | None = None,
        canary_file: Path | None = None,
    ) -> None:
        self.gateway = gateway
        self.accounts = accounts
        self.watch: KeyReloader | None = None
        self._recent_errors = recent_errors
        self._started = datetime.now(UTC)
        registry = gateway.metrics.registry
        self._alarms = Gauge(
            "regionmarker_drift_alarm", "1 while traffic or the upstream's model is another.", ["kind"],
            registry=registry,
        )  # fmt: skip
        for kind in ("regions", "model"):
            self._alarms.labels(kind).set(0)
        self.regions = RegionWatch(self._regions_alarm)
        self.canaries = Canaries(self._embed, gateway.served_key, self._model_alarm, canary_file)
        self.rollout = StagedRollout(unmarked, gateway.logger, registry, [self.regions])
        gateway.rollout = self.rollout
        gateway.background.append(self.canaries.run)

    def watch_key(self, path: Path, open_it: Callable[[], Opened], names: Callable[[], Sequence[str]] = tuple) -> None:
        """Follow the key file, and load it again on SIGHUP."""
        gateway = self.gateway
        self.watch = KeyReloader(path, open_it, gateway.served_key, gateway.logger, gateway.metrics.registry, names)
        gateway.background.append(self.watch.run)
        gateway.reload = self.reload

    async def reload(self) -> None:
        """Load the key file again, now."""
        if self.watch is not None:
            await self.watch.reload()

    def routes(self) -> list[BaseRoute]:
        """Return the console's routes; none without an admin token."""
        token = self.gateway.settings.admin_token
        return Console(self, token).routes() if token else []

    # ---- what the operator may know

    async def facts(self) -> dict[str, Any]:
        """Return what the console shows."""
        key = self.gateway.served_key.current()
        return {
            "now": datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S UTC"),
            "version": __version__,
            "alarms": self.alarms(),
            "status": self._status(),
            "key": [
                ("key id", key.key_id),
                ("commitment", key.commitment or "not known: export the serving key again"),
                ("version since the start", key.version),
                ("width and grid", f"{key.width}, {key.number_format.value}"),
                ("tenants in the key", len(key.tenants)),
            ],
            "traffic": self._traffic(),
            "tenants": await self._tenants(),
            "served": {"", *key.tenants},
            "measured": sorted(self.rollout.measured.items()),
            "errors": [_line(entry) for entry in (self._recent_errors.latest() if self._recent_errors else [])],
        }

    def alarms(self) -> list[str]:
        """Return what the operator must not overlook."""
        found = []
        if self.rollout.unmarked != "nobody":
            found.append(f"This gateway may serve UNMARKED vectors (--serve-unmarked {self.rollout.unmarked}).")
        if self.watch is not None and self.watch.trouble:
            found.append(f"The new key file is not used, the old key goes on serving: {self.watch.trouble}.")
        if self.regions.drifting:
            found.append(f"Drift: {self.regions.state}. Fit a new key on texts like those that come now.")
        if self.canaries.trouble:
            found.append(f"Drift: {self.canaries.trouble}. Make a new key for the new model.")
        return found

    def _status(self) -> list[tuple[str, object]]:
        gateway = self.gateway
        state = "draining" if gateway.draining else "ready" if gateway.upstream_seen else "waiting for the upstream"
        return [
            ("state", state),
            ("running since", self._started.strftime("%Y-%m-%d %H:%M:%S UTC")),
            ("upstream", f"{gateway.upstream.name}, model {gateway.upstream.model}"),
            ("model for clients", ", ".join(gateway.models)),
            ("marking", "everyone is marked" if self.rollout.unmarked == "nobody" else "STAGED, see above"),
            ("traffic", self.regions.state),
            ("upstream's model", self.canaries.state),
        ]

    def _traffic(self) -> list[tuple[str, object]]:
        metrics, admission = self.gateway.metrics, self.gateway.admission
        codes = _sums(metrics.requests, "code")
        refused = _sums(metrics.rejected, "reason")
        return [
            ("requests", int(sum(codes.values()))),
            ("by answer", ", ".join(f"{code}: {int(count)}" for code, count in sorted(codes.items())) or "none"),
            ("refused for load", ", ".join(f"{why}: {int(n)}" for why, n in sorted(refused.items())) or "none"),
            ("vectors served", int(sum(_sums(metrics.embeddings, "tenant").values()))),
            ("tokens", int(sum(_sums(metrics.tokens, "tenant").values()))),
            ("inputs under way, waiting", f"{admission.in_flight}, {admission.queued}"),
            ("bad upstream answers", int(sum(_sums(metrics.upstream_invalid, "kind").values()))),
        ]

    async def _tenants(self) -> Any:
        if self.accounts is None:
            return None
        try:
            return await asyncio.to_thread(self.accounts.all)
        except OutsideError as error:
            return str(error)

    # ---- alarms

    def _regions_alarm(self, drifting: bool) -> None:
        self._alarms.labels("regions").set(drifting)
        if drifting:
            self.gateway.logger.error("DRIFT: traffic has left the fitted regions", kind="regions")
        else:
            self.gateway.logger.warning("traffic is back in the fitted regions", kind="regions")

    def _model_alarm(self, trouble: str) -> None:
        self._alarms.labels("model").set(bool(trouble))
        if trouble:
            self.gateway.logger.error("DRIFT: the upstream is another model", kind="model", reason=trouble)
        else:
            self.gateway.logger.warning("the upstream answers as before", kind="model")

    async def _embed(self, texts: list[str]) -> Floats:
        """Ask the upstream past marking; the answer is compared here and goes nowhere."""
        gateway = self.gateway
        width = gateway.served_key.current().width
        request = EmbeddingRequest(
            texts, in_tokens=False, model=gateway.upstream.model, base64=True, dimensions=None, user=None
        )
        answer = await gateway.upstream.embed(request, width, lambda rows, _: [row.tobytes() for row in rows])
        return np.stack([np.frombuffer(vector, dtype=np.float32) for vector in answer.vectors])


def _sums(metric: MetricWrapperBase, label: str) -> dict[str, float]:
    """Add a counter up by one of its labels."""
    sums: dict[str, float] = {}
    for family in metric.collect():
        for sample in family.samples:
            if sample.name.endswith("_total"):
                sums[sample.labels[label]] = sums.get(sample.labels[label], 0.0) + sample.value
    return sums


def _line(entry: dict[str, Any]) -> dict[str, str]:
    details = " ".join(f"{name}={value}" for name, value in entry.items() if name not in _QUIET)
    return {
        "timestamp": str(entry.get("timestamp", ""))[:19].replace("T", " "),
        "level": str(entry.get("level", "")),
        "event": str(entry.get("event", "")),
        "details": details,
    }
