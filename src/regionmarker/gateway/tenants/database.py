"""The tenants' tables: who may ask, with which API keys, whose mark its vectors carry, and how much was asked.

    regionmarker_schema      one row: the version of these tables
    tenants                  a customer: limits and mode
    places                   marks that serving keys hold for tenants to come
    assignments              whose mark is whose: rows are added, never changed, and chained by digests
    api_keys                 a tenant's API keys: a public id and the SHA-256 of the whole key, never the key
    usage                    requests, inputs and tokens, by tenant and day (UTC)
    usage_writers            the last batch of usage that each gateway has written, so that none counts twice
    console_logouts          sessions of the console that were ended before their time

The same tables in SQLite and in PostgreSQL. They are made, or brought to this version, in one transaction under a lock,
so that gateways that start at the same moment do not trip over each other.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import sqlalchemy as sa

from regionmarker.errors import InputError, MissingExtraError, OutsideError
from regionmarker.keys.places import next_assignment

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection, Engine

VERSION = 2
_LOCK = 0x7265676D  # PostgreSQL's advisory locks are numbers: "regm"
_SECONDS = 5  # patience for a connection, a statement or a lock

metadata = sa.MetaData()

schema_version = sa.Table("regionmarker_schema", metadata, sa.Column("version", sa.Integer, primary_key=True))

tenants = sa.Table(
    "tenants",
    metadata,
    sa.Column("name", sa.String(64), primary_key=True),
    sa.Column("folded", sa.String(64), nullable=False, unique=True),  # no two names that differ by case alone
    sa.Column("requests_per_minute", sa.Integer),
    sa.Column("inputs_in_flight", sa.Integer),
    sa.Column("mode", sa.String(16), nullable=False),
    sa.Column("created", sa.String(32), nullable=False),
)

places = sa.Table(
    "places",
    metadata,
    sa.Column("label", sa.String(64), primary_key=True),
    sa.Column("offered", sa.String(32), nullable=False),
)

assignments = sa.Table(
    "assignments",
    metadata,
    sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),  # 1, 2, 3 ...
    sa.Column("tenant", sa.String(64), sa.ForeignKey("tenants.name"), nullable=False, unique=True),
    sa.Column("label", sa.String(64), nullable=False, unique=True),  # what the targets follow from: never given twice
    sa.Column("assigned", sa.String(32), nullable=False),
    sa.Column("nonce", sa.String(32), nullable=False),  # without it a published digest could be searched for names
    sa.Column("digest", sa.String(64), nullable=False),
)

api_keys = sa.Table(
    "api_keys",
    metadata,
    sa.Column("id", sa.String(16), primary_key=True),
    sa.Column("tenant", sa.String(64), sa.ForeignKey("tenants.name"), nullable=False, index=True),
    sa.Column("digest", sa.String(64), nullable=False),
    sa.Column("created", sa.String(32), nullable=False),
    sa.Column("revoked", sa.String(32)),
)

UNITS = ("requests", "inputs", "tokens")
usage = sa.Table(
    "usage",
    metadata,
    sa.Column("tenant", sa.String(64), primary_key=True),
    sa.Column("day", sa.String(10), primary_key=True),
    *(sa.Column(unit, sa.BigInteger, nullable=False) for unit in UNITS),
)

usage_writers = sa.Table(
    "usage_writers",
    metadata,
    sa.Column("writer", sa.String(32), primary_key=True),
    sa.Column("batch", sa.BigInteger, nullable=False),
    sa.Column("day", sa.String(10), nullable=False),
)

console_logouts = sa.Table(
    "console_logouts",
    metadata,
    sa.Column("session", sa.String(32), primary_key=True),
    sa.Column("ends", sa.BigInteger, nullable=False),  # seconds since 1970: nobody need remember it longer
)


def open_database(address: str, *, new: bool = True) -> Engine:
    """Open ``sqlite:///FILE``, a path or ``postgresql://...``, and make its tables where there are none.

    A file that is not there is made only where ``new`` allows it: a mistyped name would be an empty list of tenants.

    Examples
    --------
    >>> import tempfile
    >>> engine = open_database(tempfile.mkdtemp() + "/tenants.db")
    >>> engine.dialect.name
    'sqlite'
    >>> engine.dispose()
    """
    engine = _engine(_url(address), new=new)
    try:
        with explained(engine), writing(engine) as connection:
            _create(connection)
    except BaseException:
        engine.dispose()
        raise
    return engine


@contextlib.contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """Open a transaction that only reads."""
    with engine.connect() as connection, connection.begin():
        yield connection


@contextlib.contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """Open a transaction that writes: in SQLite it takes the one writer's place at once, and waits for it."""
    with engine.connect().execution_options(regionmarker_writes=True) as connection, connection.begin():
        yield connection


@contextlib.contextmanager
def explained(engine: Engine) -> Iterator[None]:
    """Turn what a database driver raises into one sentence that names the database and no password."""
    try:
        yield
    except sa.exc.SQLAlchemyError as error:
        reason = str(getattr(error, "orig", None) or error).strip().partition("\n")[0]
        raise OutsideError(f"the tenants database {shown(engine.url)} does not answer: {_plain(reason)}") from None


def shown(url: Any) -> str:
    """Write a database's address without its password.

    Examples
    --------
    >>> shown(_url("postgresql://gate:secret@db/tenants"))
    'postgresql://gate:***@db/tenants'
    """
    return str(url.render_as_string(hide_password=True)).replace("postgresql+psycopg", "postgresql")


def _plain(reason: str) -> str:
    return "".join(letter if letter.isprintable() else " " for letter in reason)[:200].rstrip(". ")


def _url(address: str) -> Any:
    if not address:
        raise InputError("the tenants database has no address: give a file, sqlite:///FILE or postgresql://...")
    if "://" not in address:
        address = f"sqlite:///{address}"
    try:
        url = sa.make_url(address)
    except (sa.exc.ArgumentError, ValueError):
        raise InputError("the address of the tenants database cannot be read: give FILE or postgresql://...") from None
    if url.drivername in ("postgresql", "postgres", "postgresql+psycopg"):
        return url.set(drivername="postgresql+psycopg")
    if url.drivername in ("sqlite", "sqlite+pysqlite"):
        if not url.database or url.database == ":memory:":
            raise InputError("the tenants database must be a file: commands and gateways share it")
        return url
    raise InputError(f"tenants are kept in SQLite or PostgreSQL, not in {url.drivername.partition('+')[0]}")


def _engine(url: Any, *, new: bool) -> Engine:
    if url.drivername.startswith("sqlite"):
        return _sqlite(url, new=new)
    try:
        import psycopg  # noqa: F401 - SQLAlchemy's own message would not say which extra brings it
    except ImportError:
        raise MissingExtraError.for_module("psycopg", "gateway") from None
    options = {"connect_timeout": _SECONDS, "options": f"-c statement_timeout={_SECONDS}s -c lock_timeout={_SECONDS}s"}
    # pre_ping: a connection that the server dropped is replaced before it is used, so a restarted server is no error.
    return sa.create_engine(url, connect_args=options, pool_pre_ping=True, pool_timeout=_SECONDS, hide_parameters=True)


def _sqlite(url: Any, *, new: bool) -> Engine:
    path = Path(url.database)
    if not path.parent.is_dir():
        raise InputError(f"cannot open the tenants database {path}: the folder {path.parent} does not exist")
    if not new and not path.exists():
        raise InputError(f"the tenants database {path} does not exist: tenants add makes it")
    with contextlib.suppress(FileExistsError, OSError):  # what else is wrong with it, SQLite will say
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    engine = sa.create_engine(url, connect_args={"timeout": _SECONDS}, hide_parameters=True)

    @sa.event.listens_for(engine, "connect")
    def _connected(connection: Any, _record: Any) -> None:
        connection.isolation_level = None  # the driver's own BEGIN comes too late to guard a check before a write
        connection.execute("PRAGMA foreign_keys = ON")
        connection.execute("PRAGMA journal_mode = WAL")  # readers do not wait for the writer

    @sa.event.listens_for(engine, "begin")
    def _began(connection: Connection) -> None:
        writes = connection.get_execution_options().get("regionmarker_writes", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")

    return engine


def alone(connection: Connection) -> None:
    """Wait until no other transaction holds the tables for itself; in SQLite every writer does."""
    if connection.dialect.name == "postgresql":
        connection.execute(sa.select(sa.func.pg_advisory_xact_lock(_LOCK)))


def _create(connection: Connection) -> None:
    alone(connection)
    metadata.create_all(connection)
    found = connection.execute(sa.select(schema_version.c.version)).scalar()
    if found is None:
        connection.execute(sa.insert(schema_version).values(version=VERSION))
    elif found == 1:
        _give_names(connection)
        connection.execute(sa.update(schema_version).values(version=VERSION))
    elif found != VERSION:
        raise InputError(
            f"the tenants database has tables of version {found}, and this regionmarker knows version {VERSION}: "
            "use the regionmarker that made it, or another database"
        )


def _give_names(connection: Connection) -> None:
    """Enter what version 1 did not write down: every tenant's mark followed from its name."""
    last, now = None, datetime.now(UTC).isoformat(timespec="microseconds")
    for name in connection.execute(sa.select(tenants.c.name).order_by(tenants.c.created, tenants.c.name)).scalars():
        last = next_assignment(name, name, now, last)
        connection.execute(sa.insert(assignments).values(**last.to_dict()))
