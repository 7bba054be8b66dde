"""The gateway as a whole: all parts that a request meets and all that watch them, built once from the settings."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING

from structlog.typing import FilteringBoundLogger

from regionmarker.errors import InputError, RegionMarkerError
from regionmarker.gateway.admission import Admission
from regionmarker.gateway.connections import Connections
from regionmarker.gateway.drift import Canaries, DriftAlarms, RegionWatch, clean_vectors
from regionmarker.gateway.logs import RecentErrors, log_stream, make_logger
from regionmarker.gateway.marking import Rollout
from regionmarker.gateway.metrics import Metrics
from regionmarker.gateway.operator import Operator
from regionmarker.gateway.rate_limit import HeldRefusals, Quotas
from regionmarker.gateway.served_key import (
    KeyReloader,
    KeyVersion,
    ServedKey,
    open_serving_key,
    refuse_removal,
    refuse_without_tenants,
)
from regionmarker.gateway.settings import Settings, check_token
from regionmarker.gateway.tenants import OpenLookup, TenantLookup
from regionmarker.gateway.tenants.accounts import Accounts
from regionmarker.gateway.tenants.lookup import DatabaseLookup
from regionmarker.gateway.upstreams import Upstream, load_upstream
from regionmarker.keys.files import holds_serving_key
from regionmarker.keys.serving import ServingKey

if TYPE_CHECKING:
    from regionmarker.gateway.telemetry import Telemetry

_PROBE_EVERY = 1.0  # seconds between two looks for an upstream that was not there
_BEGIN_AGAIN = 5.0  # seconds after which a background job that failed begins again


class Gateway:
    """All parts of one gateway.

    :func:`open_gateway` makes a whole one; without the optional parts a gateway serves whoever asks, with the key that
    it was given.

    Parameters
    ----------
    settings, served_key, upstream
        How it behaves, what it marks with, and where clean vectors come from.
    tenants, accounts
        Who is asking, and the operator's list of them.
    metrics, logger, recent_errors
        What is counted, what is logged, and the last complaints of the log.
    key_reloader
        Loads the key file again.
    watch_model
        Whether to ask the upstream for the canary texts while the gateway runs.
    telemetry
        Traces requests.

    Attributes
    ----------
    draining
        Whether it was asked to stop: ``/readyz`` says 503, and every answer closes its connection.
    upstream_seen
        Whether the upstream has been reached once.
    stop_failures
        What could not be ended well, such as usage that was not written.
    """

    def __init__(
        self,
        settings: Settings,
        served_key: ServedKey,
        upstream: Upstream,
        *,
        tenants: TenantLookup | None = None,
        accounts: Accounts | None = None,
        metrics: Metrics | None = None,
        logger: FilteringBoundLogger | None = None,
        recent_errors: RecentErrors | None = None,
        key_reloader: KeyReloader | None = None,
        watch_model: bool = False,
        telemetry: Telemetry | None = None,
    ) -> None:
        self.settings = settings
        self.served_key = served_key
        self.upstream = upstream
        self.tenants: TenantLookup = tenants or OpenLookup()
        self.accounts = accounts
        self.metrics = metrics or Metrics()
        self.logger = logger or make_logger()
        self.recent_errors = recent_errors
        self.key_reloader = key_reloader
        self.telemetry = telemetry
        self.admission = admission = Admission(
            settings.capacity, settings.queue, settings.patience, most_bytes=settings.bytes_in_flight
        )
        self.connections = Connections(settings, self.metrics.registry)
        self.operator = None
        if settings.admin_token:
            self.operator = Operator(settings.admin_token, self.logger, self.metrics.registry)
        self.quotas = Quotas()
        self.held_refusals = HeldRefusals(settings.held_refusals)
        alarms = DriftAlarms(self.logger, self.metrics.registry)
        self.region_watch = RegionWatch(alarms.regions)
        self.canaries = Canaries(clean_vectors(upstream, served_key), served_key, alarms.model, settings.canaries)
        self.rollout = Rollout(settings.unmarked, self.logger, self.metrics.registry, self.region_watch.see)
        self.metrics.in_flight.set_function(lambda: admission.in_flight)
        self.metrics.queued.set_function(lambda: admission.queued)
        self.metrics.bytes_held.set_function(lambda: admission.bytes_held)
        self.models = (settings.model or upstream.model, *settings.aliases)
        self.started = datetime.now(UTC)
        self.draining = False
        self.upstream_seen = False
        self.stop_failures: list[str] = []
        self._watch_model = watch_model
        self._tasks: list[asyncio.Future[None]] = []

    @property
    def model(self) -> str:
        return self.models[0]

    async def start(self) -> None:
        await self.upstream.start()
        jobs: list[Callable[[], Awaitable[None]]] = [self._look_for_upstream]
        if self._watch_model:
            jobs.append(self.canaries.run)
        if self.key_reloader is not None:
            jobs.append(self.key_reloader.run)
        self._tasks = [asyncio.ensure_future(self._run(job)) for job in jobs]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        closing: list[Callable[[], Awaitable[None]]] = [self.upstream.close, self.tenants.close]
        if self.telemetry is not None:
            closing.append(partial(asyncio.to_thread, self.telemetry.close))
        for close in closing:  # each gets its turn, whatever becomes of the others
            try:
                await close()
            except Exception as error:
                self.stop_failures.append(str(error) if isinstance(error, RegionMarkerError) else type(error).__name__)
                self.logger.error("stopping failed", reason=self.stop_failures[-1], exc_info=True)

    async def reload_key(self) -> None:
        if self.key_reloader is not None:
            await self.key_reloader.reload()

    def drain(self) -> None:
        self.draining = True
        self.metrics.draining.set(1)

    def metrics_text(self) -> bytes:
        key = self.served_key.current()
        self.metrics.show_key(key.key_id, key.version)
        return self.metrics.text()

    async def _run(self, job: Callable[[], Awaitable[None]]) -> None:
        while True:
            try:
                await job()
            except Exception:  # a job that dies in silence would be missed late
                self.logger.error("background job failed, and begins again", exc_info=True)
                await asyncio.sleep(_BEGIN_AGAIN)
            else:
                return

    async def _look_for_upstream(self) -> None:
        while not await self.upstream.is_there():
            await asyncio.sleep(_PROBE_EVERY)
        self.upstream_seen = True


def open_gateway(settings: Settings) -> Gateway:
    """Open the key, the tenants' database and the upstream, and return a gateway that is ready to run."""
    if settings.database is None and not settings.on_loopback:
        raise InputError(f"--host {settings.host} can be reached by others: give a tenants database with --database")
    if settings.admin_token:
        check_token(settings.admin_token)
    recent_errors = RecentErrors(log_stream(sys.stderr))
    logger = make_logger(settings.log_level, recent_errors)  # type: ignore[arg-type]  # it is only written to
    telemetry = None
    if settings.telemetry:
        from regionmarker.gateway.telemetry import Telemetry  # an extra of its own

        telemetry = Telemetry.from_environment()
    metrics = Metrics() if telemetry is None else telemetry.metrics()
    tenants = None
    if settings.database is not None:
        tenants = DatabaseLookup.open(settings.database, complain=_complainer(logger))
    try:
        # A whole key is cut down to the tenants of the database; a serving key holds its own.
        labels = tuple if tenants is None or holds_serving_key(settings.key) else tenants.labels
        accounts = None if tenants is None else Accounts(tenants.engine)

        served: ServedKey | None = None

        def open_key() -> ServingKey:
            opened = open_serving_key(
                settings.key, labels(), passphrase=settings.passphrase, secret_file=settings.secret_file
            )
            if accounts is not None:
                refuse_without_tenants(opened, settings.key)
            if not settings.accept_removal:
                refuse_removal(opened, settings.unmarked, None if served is None else served.current())
            return opened

        def offer_places(key: KeyVersion) -> None:
            """Enter the places that the key holds, so that tenants add can give them out."""
            if accounts is None:
                return
            try:
                fresh = accounts.offer(key.labels)
            except RegionMarkerError as error:
                logger.error("the key's places could not be entered in the tenants database", reason=str(error))
            else:
                if fresh:
                    logger.info("new places for tenants", count=fresh)

        served = served_key = ServedKey(open_key(), normalise=settings.normalise)
        offer_places(served_key.current())
        upstream = load_upstream(settings, metrics)
        gateway = Gateway(
            settings,
            served_key,
            upstream,
            tenants=tenants,
            accounts=accounts,
            metrics=metrics,
            logger=logger,
            recent_errors=recent_errors,
            key_reloader=KeyReloader(
                settings.key, open_key, served_key, logger, metrics.registry, labels, offer_places
            ),
            watch_model=True,
            telemetry=telemetry,
        )
    except BaseException:
        if tenants is not None:
            tenants.abandon()
        raise
    if telemetry is not None:
        telemetry.model = gateway.model
    return gateway


def _complainer(logger: FilteringBoundLogger) -> Callable[[Exception | None], None]:
    def complain(error: Exception | None) -> None:
        if error is None:
            logger.warning("the tenants database answers again")
        else:
            logger.error("the tenants database has trouble", reason=str(error))

    return complain
