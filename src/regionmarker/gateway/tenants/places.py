"""Whose mark is whose, in the tenants' database; see :mod:`regionmarker.keys.places`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import sqlalchemy as sa

from regionmarker.errors import InputError
from regionmarker.gateway.tenants.database import (
    alone,
    assignments,
    explained,
    places,
    reading,
    shown,
    tenants,
    writing,
)
from regionmarker.keys.places import (
    FIRST,
    Assignment,
    chain_digest,
    is_place,
    next_assignment,
    place_number,
    read_chain,
)

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection, Engine

_AT_ONCE = 500  # rows of one INSERT


@dataclass(frozen=True)
class Places:
    """Who has which label, and what is left.

    Attributes
    ----------
    assignments
        In the order in which they were made; the chain was checked.
    digest
        Of all of them: publish it.
    free
        Places that nobody has, the next one first.
    offered
        How many places serving keys were seen to hold.
    """

    assignments: tuple[Assignment, ...]
    digest: str
    free: tuple[str, ...]
    offered: int

    @property
    def labels(self) -> dict[str, str]:
        """The label of every tenant that ever was."""
        return {one.tenant: one.label for one in self.assignments}


def read_places(engine: Engine) -> Places:
    """Read and check all assignments; what was changed afterwards is an error."""
    with explained(engine), reading(engine) as connection:
        rows = connection.execute(sa.select(assignments).order_by(assignments.c.number)).mappings().all()
        offered = sorted(_offered(connection), key=place_number)
        lost = _without_label(connection)
    try:
        chain = read_chain(dict(row) for row in rows)
        if lost is not None:
            raise InputError(f"tenant {lost} has no assignment: rows were taken out after they were written")
    except InputError as error:
        raise InputError(
            f"{error}. Restore the table assignments of {shown(engine.url)} from a copy whose digest was published"
        ) from None
    taken = {one.label for one in chain}
    return Places(chain, chain_digest(chain), tuple(label for label in offered if label not in taken), len(offered))


def offer_places(engine: Engine, labels: Iterable[str]) -> int:
    """Enter the places that a serving key holds; return how many are new. Other labels are left alone."""
    held = sorted({label for label in labels if is_place(label)}, key=place_number)
    if not held:
        return 0
    with explained(engine), reading(engine) as connection:  # mostly there is nothing to write
        known = set(connection.execute(sa.select(places.c.label)).scalars())
    if known.issuperset(held):
        return 0
    with explained(engine), writing(engine) as connection:
        alone(connection)
        known = set(connection.execute(sa.select(places.c.label)).scalars())
        fresh = [{"label": label, "offered": _now()} for label in held if label not in known]
        for start in range(0, len(fresh), _AT_ONCE):
            connection.execute(sa.insert(places), fresh[start : start + _AT_ONCE])
    return len(fresh)


def free_place(connection: Connection) -> str | None:
    """Return the next place that nobody has; None where no serving key was seen to hold any.

    Where there are places and all are taken, this is an error: a mark by name would need the master secret.
    """
    offered = _offered(connection)
    if not offered:
        return None
    left = offered - set(connection.execute(sa.select(assignments.c.label)).scalars())
    if not left:
        raise InputError(
            f"no place is left: all {len(offered)} are taken. Export the serving key again with more --places, then "
            "give it to tenants add with --key, or let the gateway load it; or say --by-name, which needs an export "
            "with the tenant's name"
        )
    return min(left, key=place_number)


def assign(connection: Connection, tenant: str, label: str) -> Assignment:
    """Add an assignment to the chain, inside a transaction that is alone."""
    taken = sa.select(assignments.c.tenant).where(assignments.c.label == label)
    owner = connection.execute(taken).scalar()
    if owner is not None:
        raise InputError(f"the label {label} belongs to tenant {owner}, for ever: choose another name")
    lost = _without_label(connection, but=tenant)
    if lost is not None:  # the next one could be given a place that was somebody's
        raise InputError(f"tenant {lost} has no assignment: see tenants places")
    rows = connection.execute(sa.select(assignments).order_by(assignments.c.number.desc()).limit(2)).mappings().all()
    last = None
    if rows:
        stored = {name: value for name, value in rows[0].items() if name != "digest"}
        last = Assignment(**stored, before=rows[1]["digest"] if len(rows) > 1 else FIRST)
        if last.digest != rows[0]["digest"]:
            raise InputError(f"assignment {last.number} is not what was written: see tenants places")
    made = next_assignment(tenant, label, _now(), last)
    connection.execute(sa.insert(assignments).values(**made.to_dict()))
    return made


def _offered(connection: Connection) -> set[str]:
    found: set[str] = set(connection.execute(sa.select(places.c.label)).scalars())
    for label in found:
        if not isinstance(label, str) or not is_place(label):
            raise InputError(
                f"the table places of the tenants database holds {label!r}, which is no place: take it out"
            )
    return found


def _without_label(connection: Connection, *, but: str = "") -> str | None:
    """Return a tenant that has no assignment; every tenant that ever was has one."""
    joined = sa.select(tenants.c.name).outerjoin(assignments, assignments.c.tenant == tenants.c.name)
    found = joined.where(assignments.c.tenant.is_(None), tenants.c.name != but).order_by(tenants.c.name).limit(1)
    name: str | None = connection.execute(found).scalar()
    return name


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="microseconds")
