"""Tenants and their API keys: added, listed, changed, revoked.

API keys are made here, shown once, kept as digests and compared in constant time.

``rm-<id>-<secret>``: sixteen hexadecimal digits that may be seen, by which a key is looked up, and 256 random bits that
may not. What is stored is the SHA-256 of the whole. A fast hash is enough, because nobody can guess 256 bits; the
public id is why no comparison of secrets is left to a database's index.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self, get_args

import sqlalchemy as sa

from regionmarker.errors import InputError
from regionmarker.gateway.tenants import Mode
from regionmarker.gateway.tenants.database import (
    UNITS,
    alone,
    api_keys,
    assignments,
    console_logouts,
    explained,
    open_database,
    reading,
    tenants,
    usage,
    writing,
)
from regionmarker.gateway.tenants.places import Places, assign, free_place, offer_places, read_places
from regionmarker.keys.places import is_place

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection, Engine

_SHAPE = re.compile(r"rm-([0-9a-f]{16})-[A-Za-z0-9_-]{43}")
_NOBODY = "0" * 64
_LONGEST_SESSION = 24 * 3600  # seconds
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,63}")
MODES: tuple[str, ...] = get_args(Mode)


def new_api_key() -> str:
    """Make an API key.

    Examples
    --------
    >>> api_key_id(new_api_key()) is None
    False
    """
    return f"rm-{secrets.token_hex(8)}-{secrets.token_urlsafe(32)}"


def api_key_id(api_key: str) -> str | None:
    """Return the public part of an API key; nothing where it is not shaped like one of ours.

    Examples
    --------
    >>> api_key_id("rm-0123456789abcdef-" + 43 * "x"), api_key_id("sk-other")
    ('0123456789abcdef', None)
    """
    found = _SHAPE.fullmatch(api_key)
    return found[1] if found else None


def digest_of(api_key: str) -> str:
    """Return what is stored of an API key."""
    return hashlib.sha256(api_key.encode()).hexdigest()


def matches(api_key: str, stored: str | None) -> bool:
    """Compare an API key with a stored digest; with none stored the same work is done.

    Examples
    --------
    >>> key = new_api_key()
    >>> matches(key, digest_of(key)), matches(key, None)
    (True, False)
    """
    same = hmac.compare_digest(digest_of(api_key), stored or _NOBODY)
    return same and stored is not None


@dataclass(frozen=True)
class Limits:
    """What a tenant may ask; ``None`` is no limit.

    Examples
    --------
    >>> Limits(requests_per_minute=0)
    Traceback (most recent call last):
    ...
    regionmarker.errors.InputError: requests_per_minute must be at least 1, but is 0
    """

    requests_per_minute: int | None = None
    inputs_in_flight: int | None = None

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if value is not None and value < 1:
                raise InputError(f"{name} must be at least 1, but is {value}")


@dataclass(frozen=True)
class Account:
    """What is known of one tenant."""

    name: str
    mode: str
    requests_per_minute: int | None
    inputs_in_flight: int | None
    created: str
    api_key_ids: tuple[str, ...]  # those that work
    revoked_key_ids: tuple[str, ...]
    requests: int
    inputs: int
    tokens: int
    label: str  # what its mark follows from: a place, or its name

    @property
    def active(self) -> bool:
        return bool(self.api_key_ids)


class Accounts:
    """The tenants of one database. Every method is one transaction.

    Examples
    --------
    >>> import tempfile
    >>> accounts = Accounts.open(tempfile.mkdtemp() + "/tenants.db")
    >>> key = accounts.add("acme", limits={"requests_per_minute": 600})
    >>> [(account.name, account.active) for account in accounts.all()]
    [('acme', True)]
    >>> accounts.revoke("acme")
    1
    >>> accounts.all()[0].active
    False
    >>> accounts.close()
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine

    @classmethod
    def open(cls, address: str, *, new: bool = True) -> Self:
        """Open the tenants of a database; a file that is not there is made only where ``new`` allows it."""
        return cls(open_database(address, new=new))

    def close(self) -> None:
        self.engine.dispose()

    def add(
        self,
        name: str,
        *,
        limits: Mapping[str, int | None] | None = None,
        mode: str = "mark",
        by_name: bool = False,
    ) -> str:
        """Enter a tenant; return its first API key, which is nowhere stored.

        It gets the next free place where serving keys hold places (see :meth:`offer`); else, and with ``by_name``, its
        mark follows from its name.
        """
        check_name(name)
        check_mode(mode)
        with explained(self.engine), writing(self.engine) as connection:
            alone(connection)
            same = sa.select(tenants.c.name).where(tenants.c.folded == name.lower())
            known = connection.execute(same).scalar()
            if known is not None:
                raise InputError(
                    f"tenant {known} exists already: give it another API key with tenants renew {known}"
                    if known == name
                    else f"tenant {name} differs from {known} by case alone: choose another name"
                )
            values = {**vars(Limits(**(limits or {}))), "mode": mode, "created": _now()}
            connection.execute(sa.insert(tenants).values(name=name, folded=name.lower(), **values))
            assign(connection, name, (None if by_name else free_place(connection)) or name)
            return _give_key(connection, name)

    def offer(self, labels: Iterable[str]) -> int:
        """Enter the places among the labels that a serving key holds; return how many are new."""
        return offer_places(self.engine, labels)

    def places(self) -> Places:
        """Return who has which label; refuse a table that was changed."""
        return read_places(self.engine)

    def renew(self, name: str) -> str:
        """Give a tenant a further API key; the others go on working until they are revoked."""
        with explained(self.engine), writing(self.engine) as connection:
            _must_exist(connection, name)
            return _give_key(connection, name)

    def change(self, name: str, *, limits: Mapping[str, int | None] | None = None, mode: str | None = None) -> None:
        """Change the limits that are given, or the mode; API keys stay."""
        if mode is not None:
            check_mode(mode)
        Limits(**(limits or {}))
        values = {**(limits or {}), **({} if mode is None else {"mode": mode})}
        with explained(self.engine), writing(self.engine) as connection:
            _must_exist(connection, name)
            if values:
                connection.execute(sa.update(tenants).where(tenants.c.name == name).values(**values))

    def revoke(self, name: str, key_id: str | None = None) -> int:
        """Revoke all API keys of a tenant, or one; return how many were revoked. The tenant stays in the database."""
        chosen = (api_keys.c.tenant == name) & api_keys.c.revoked.is_(None)
        if key_id is not None:
            chosen &= api_keys.c.id == key_id
        with explained(self.engine), writing(self.engine) as connection:
            _must_exist(connection, name)
            done = connection.execute(sa.update(api_keys).where(chosen).values(revoked=_now()))
            if key_id is not None and done.rowcount == 0:
                raise InputError(f"tenant {name} has no working API key {key_id}: see tenants list")
            return int(done.rowcount)

    def all(self) -> list[Account]:
        """Return every tenant that ever was, by name, with its usage so far."""
        totals = [sa.func.sum(usage.c[unit]).label(unit) for unit in UNITS]
        with explained(self.engine), reading(self.engine) as connection:
            labelled = sa.select(tenants, assignments.c.label).join(assignments)
            rows = connection.execute(labelled.order_by(tenants.c.name)).mappings().all()
            keys = connection.execute(sa.select(api_keys).order_by(api_keys.c.created, api_keys.c.id)).mappings().all()
            used = connection.execute(sa.select(usage.c.tenant, *totals).group_by(usage.c.tenant)).mappings().all()
        sums = {row["tenant"]: row for row in used}
        return [_account(row, [key for key in keys if key["tenant"] == row["name"]], sums) for row in rows]

    def end_session(self, session: str, ends: int) -> None:
        """Note that a session of the console has ended, which else would last until ``ends``."""
        with explained(self.engine), writing(self.engine) as connection:
            connection.execute(sa.delete(console_logouts).where(console_logouts.c.ends < ends - _LONGEST_SESSION))
            known = sa.select(console_logouts.c.session).where(console_logouts.c.session == session)
            if connection.execute(known).scalar() is None:
                connection.execute(sa.insert(console_logouts).values(session=session, ends=ends))

    def has_ended(self, session: str) -> bool:
        """Say whether a session of the console was ended, at whichever replica."""
        known = sa.select(console_logouts.c.session).where(console_logouts.c.session == session)
        with explained(self.engine), reading(self.engine) as connection:
            return connection.execute(known).scalar() is not None


def check_name(name: str) -> None:
    """Refuse a name that would not survive an API, a metric, a page and a shell unchanged.

    Examples
    --------
    >>> check_name("acme-2")
    >>> check_name("two words")
    Traceback (most recent call last):
    ...
    regionmarker.errors.InputError: a tenant's name has 1 to 64 letters, digits and . _ @ -, and begins with a ...
    """
    if not _NAME.fullmatch(name):
        raise InputError(
            "a tenant's name has 1 to 64 letters, digits and . _ @ -, and begins with a letter or a digit: "
            f"{name[:80]!r} does not"
        )
    if is_place(name):
        raise InputError(f"{name} is the name of a place, which tenants add gives out by itself: choose another name")


def check_mode(mode: str) -> None:
    """Refuse a mode that does not exist."""
    if mode not in MODES:
        raise InputError(f"mode {mode!r} is not known: use {' or '.join(MODES)}")


def _give_key(connection: Connection, name: str) -> str:
    key = new_api_key()
    values = {"id": api_key_id(key), "tenant": name, "digest": digest_of(key), "created": _now()}
    connection.execute(sa.insert(api_keys).values(**values))
    return key


def _must_exist(connection: Connection, name: str) -> None:
    if connection.execute(sa.select(tenants.c.name).where(tenants.c.name == name)).scalar() is None:
        raise InputError(f"there is no tenant {name[:80]!r}: see tenants list")


def _account(row: Any, keys: list[Any], sums: dict[str, Any]) -> Account:
    used = sums.get(row["name"], {})
    usage_so_far: dict[str, Any] = {unit: int(used.get(unit, 0)) for unit in UNITS}
    return Account(
        **{name: value for name, value in row.items() if name != "folded"},
        api_key_ids=tuple(key["id"] for key in keys if key["revoked"] is None),
        revoked_key_ids=tuple(key["id"] for key in keys if key["revoked"] is not None),
        **usage_so_far,
    )


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")
