"""From settings to a gateway that is ready to run: opens the key, the tenants database and the upstream."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import sqlalchemy as sa
from structlog.typing import FilteringBoundLogger

from regionmarker.errors import InputError
from regionmarker.gateway.console import check_token
from regionmarker.gateway.gateway import Gateway
from regionmarker.gateway.logs import RecentErrors, make_logger
from regionmarker.gateway.metrics import Metrics
from regionmarker.gateway.operations import Operations
from regionmarker.gateway.served_key import Opened, ServedKey, open_key
from regionmarker.gateway.settings import Settings
from regionmarker.gateway.tenants.accounts import Accounts
from regionmarker.gateway.tenants.database import explained, reading, tenants
from regionmarker.gateway.tenants.lookup import DatabaseLookup
from regionmarker.gateway.upstreams import load_upstream
from regionmarker.keys.files import holds_serving_key

if TYPE_CHECKING:
    from regionmarker.gateway.telemetry import Telemetry


@dataclass(frozen=True, repr=False)
class Plan:
    """What a gateway is made of.

    Attributes
    ----------
    key, passphrase, secret_file
        A serving key file, or a whole key, and what opens it.
    normalise
        Scale the upstream's vectors to unit length.
    upstream, upstream_key, batch
        The upstream's spec, the API key that it wants, and how many inputs it takes at once.
    database
        The tenants' database; ``None`` makes everyone the default tenant, on loopback alone.
    unmarked
        Who may be served unmarked vectors: ``"nobody"``, ``"shadow-tenants"`` or ``"everyone"``.
    canaries
        A file that keeps the upstream's first answers to the canary texts; ``None`` keeps them in memory.
    telemetry
        Tell OpenTelemetry, by its own environment variables.
    """

    key: Path
    passphrase: str | None = None
    secret_file: Path | None = None
    normalise: bool = False
    upstream: str = "wordllama"
    upstream_key: str = ""
    batch: int | None = None
    database: str | None = None
    unmarked: str = "nobody"
    canaries: Path | None = None
    log_level: str = "info"
    telemetry: bool = False


def assemble(settings: Settings, plan: Plan) -> Operations:
    """Return a gateway that is ready to run, with all that watches it; nothing is served yet."""
    if plan.database is None and not settings.on_loopback:
        raise InputError(f"--host {settings.host} can be reached by others: give a tenants database with --database")
    if settings.admin_token:
        check_token(settings.admin_token)
    recent_errors = RecentErrors(sys.stderr)
    logger = make_logger(plan.log_level, recent_errors)  # type: ignore[arg-type]  # it is written to, and that is all
    telemetry = _telemetry() if plan.telemetry else None
    metrics = Metrics() if telemetry is None else telemetry.metrics()
    directory = None
    if plan.database is not None:
        directory = DatabaseLookup.open(plan.database, complain=_complainer(logger))
    names = _names(plan, directory)
    try:
        opened = _open(plan, names)()
        upstream = load_upstream(plan.upstream, settings, metrics, api_key=plan.upstream_key, batch=plan.batch)
        served_key = ServedKey(opened.serving, commitment=opened.commitment, normalise=plan.normalise)
        gateway = Gateway(settings, served_key, upstream, directory=directory, metrics=metrics, logger=logger)
        if telemetry is not None:
            telemetry.follow(gateway)
        operations = Operations(
            gateway,
            unmarked=plan.unmarked,
            recent_errors=recent_errors,
            accounts=None if directory is None else Accounts(directory.engine),
            canary_file=plan.canaries,
        )
    except BaseException:
        if directory is not None:
            directory.abandon()
        raise
    operations.watch_key(plan.key, _open(plan, names), names)
    return operations


def _telemetry() -> Telemetry:
    from regionmarker.gateway.telemetry import Telemetry  # an extra of its own

    return Telemetry.from_environment()


def _names(plan: Plan, directory: DatabaseLookup | None) -> Callable[[], tuple[str, ...]]:
    """Return what tells the tenants that a whole key is cut down to; a serving key holds its own."""
    if directory is None or holds_serving_key(plan.key):
        return tuple

    def ask() -> tuple[str, ...]:
        with explained(directory.engine), reading(directory.engine) as connection:
            return tuple(connection.execute(sa.select(tenants.c.name)).scalars())

    return ask


def _open(plan: Plan, names: Callable[[], tuple[str, ...]]) -> Callable[[], Opened]:
    return lambda: open_key(plan.key, names(), passphrase=plan.passphrase, secret_file=plan.secret_file)


def _complainer(logger: FilteringBoundLogger) -> Callable[[Exception | None], None]:
    def complain(error: Exception | None) -> None:
        if error is None:
            logger.warning("the tenants database answers again")
        else:
            logger.error("the tenants database does not answer", reason=str(error))

    return complain
