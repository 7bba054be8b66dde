"""The gateway as a whole: the parts that a request meets on its way."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from starlette.middleware import Middleware
from structlog.typing import FilteringBoundLogger

from regionmarker.gateway.admission import Admission
from regionmarker.gateway.logs import make_logger
from regionmarker.gateway.marking import EveryoneMarked, Rollout
from regionmarker.gateway.metrics import Metrics
from regionmarker.gateway.rate_limit import HeldRefusals, Quotas
from regionmarker.gateway.served_key import ServedKey
from regionmarker.gateway.settings import Settings
from regionmarker.gateway.tenants import OpenLookup, TenantLookup
from regionmarker.gateway.upstreams.protocol import Upstream

_PROBE_EVERY = 1.0  # seconds between two looks for an upstream that was not there


class Gateway:
    """All parts of one gateway; every one of them can be replaced.

    Attributes
    ----------
    draining
        Whether it was told to stop: ``/readyz`` says 503, and every answer closes its connection.
    upstream_seen
        Whether the upstream has been reached once.
    reload
        Called on SIGHUP, if anything.
    background
        Run while the gateway runs, such as what watches the key file.
    middleware
        Wrapped around all routes, such as tracing.
    """

    def __init__(
        self,
        settings: Settings,
        served_key: ServedKey,
        upstream: Upstream,
        *,
        directory: TenantLookup | None = None,
        rollout: Rollout | None = None,
        metrics: Metrics | None = None,
        logger: FilteringBoundLogger | None = None,
    ) -> None:
        self.settings = settings
        self.served_key = served_key
        self.upstream = upstream
        self.tenants: TenantLookup = directory or OpenLookup()
        self.rollout: Rollout = rollout or EveryoneMarked()
        self.metrics = metrics or Metrics()
        self.logger = logger or make_logger()
        self.admission = Admission(settings.capacity, settings.queue, settings.patience)
        self.quotas = Quotas()
        self.held_refusals = HeldRefusals(settings.held_refusals)
        self.draining = False
        self.upstream_seen = False
        self.reload: Callable[[], Awaitable[None]] | None = None
        self.middleware: list[Middleware] = []
        self.background: list[Callable[[], Awaitable[None]]] = []
        self.models = (settings.model or upstream.model, *settings.aliases)
        self._tasks: list[asyncio.Future[None]] = []

    @property
    def model(self) -> str:
        """The model's name for clients."""
        return self.models[0]

    async def start(self) -> None:
        """Open the upstream and begin to look for it."""
        self.metrics.watch(self.admission)
        self.metrics.watch_key(self.served_key)
        await self.upstream.start()
        self._tasks = [asyncio.ensure_future(self._run(job)) for job in (self._look_for_upstream, *self.background)]

    async def stop(self) -> None:
        """Close everything."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.upstream.close()
        await self.tenants.close()

    async def _run(self, job: Callable[[], Awaitable[None]]) -> None:
        try:
            await job()
        except Exception:  # a job that dies must not die in silence
            self.logger.error("background job failed", exc_info=True)

    async def _look_for_upstream(self) -> None:
        while not await self.upstream.is_there():
            await asyncio.sleep(_PROBE_EVERY)
        self.upstream_seen = True
