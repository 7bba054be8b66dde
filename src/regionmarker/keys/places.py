"""Places: marks that are derived ahead, and the chain that says whose mark is whose.

A tenant's targets follow from a *label*: its name, or a place such as ``place-0001`` that a serving key holds ahead, so
that signing up a tenant needs no master secret. A label belongs to one tenant for ever, also after the tenant was
revoked: a copy that turns up years later is traced by it.

Assignments are added and never changed. Each has a digest of itself and of the one before,

    digest_n = SHA-256([digest_(n-1), n, tenant, label, assigned, nonce])

so the last digest stands for all of them: whoever publishes it cannot say later that a place was another tenant's. The
nonce is random: without it a published digest could be searched for names.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from regionmarker.errors import InputError

FIRST = hashlib.sha256(b"regionmarker places 1").hexdigest()
"""The digest before the first assignment."""
_PLACE = re.compile(r"place-[0-9]{4,6}")


def place_labels(count: int) -> list[str]:
    """Return the labels of the first places: targets that are derived ahead, for tenants who are not there yet.

    Examples
    --------
    >>> place_labels(2)
    ['place-0001', 'place-0002']
    """
    return [f"place-{number:04d}" for number in range(1, count + 1)]


def is_place(label: str) -> bool:
    """Say whether a label is a place's.

    Examples
    --------
    >>> is_place("place-0001"), is_place("acme")
    (True, False)
    """
    return _PLACE.fullmatch(label) is not None


def place_number(label: str) -> int:
    """Return the number of a place, by which places are given out.

    Examples
    --------
    >>> sorted(["place-10000", "place-9999"], key=place_number)
    ['place-9999', 'place-10000']
    """
    return int(label.rpartition("-")[2])


@dataclass(frozen=True)
class Assignment:
    """One tenant's label, when it was given, and the digest of the chain up to here.

    Examples
    --------
    >>> first = Assignment(1, "acme", "place-0001", "2026-01-02T03:04:05+00:00", 32 * "0")
    >>> second = Assignment(2, "zenith", "place-0002", "2026-01-02T03:04:06+00:00", 32 * "0", first.digest)
    >>> chain = read_chain([first.to_dict(), second.to_dict()])
    >>> chain_digest(chain) == second.digest
    True
    """

    number: int
    tenant: str
    label: str
    assigned: str
    nonce: str
    before: str = field(default=FIRST, repr=False)

    @property
    def digest(self) -> str:
        parts = [self.before, self.number, self.tenant, self.label, self.assigned, self.nonce]
        return hashlib.sha256(json.dumps(parts, ensure_ascii=True, separators=(",", ":")).encode()).hexdigest()

    def to_dict(self) -> dict[str, object]:
        """Return plain values with the digest, from which the chain is made again."""
        names = ("number", "tenant", "label", "assigned", "nonce", "digest")
        return {name: getattr(self, name) for name in names}


def next_assignment(tenant: str, label: str, assigned: str, last: Assignment | None) -> Assignment:
    """Return the assignment that comes after ``last``."""
    number, before = (1, FIRST) if last is None else (last.number + 1, last.digest)
    return Assignment(number, tenant, label, assigned, secrets.token_hex(16), before)


def read_chain(rows: Iterable[Mapping[str, Any]]) -> tuple[Assignment, ...]:
    """Make the chain again from plain values, in order; refuse one that was changed or that gives a label twice."""
    chain: list[Assignment] = []
    labels, names = set[str](), set[str]()
    for number, row in enumerate(rows, start=1):
        before = chain[-1].digest if chain else FIRST
        one = Assignment(number, row["tenant"], row["label"], row["assigned"], row["nonce"], before)
        text = all(isinstance(value, str) for value in (one.tenant, one.label, one.assigned, one.nonce))
        if row["number"] != number or not text or row["digest"] != one.digest:
            raise InputError(
                f"assignment {number} of the tenants' places does not follow from the one before: rows were changed "
                "or taken out after they were written"
            )
        if one.label in labels or one.tenant in names:
            raise InputError(f"assignment {number} of the tenants' places gives {one.label} or {one.tenant} twice")
        labels.add(one.label)
        names.add(one.tenant)
        chain.append(one)
    return tuple(chain)


def assigned_since(chain: Sequence[Assignment], published: str) -> int:
    """Return how many assignments came after the digest that was published; refuse one that the chain never had.

    Examples
    --------
    >>> first = next_assignment("acme", "place-0001", "2026-01-02T03:04:05+00:00", None)
    >>> second = next_assignment("zenith", "place-0002", "2026-01-02T03:04:06+00:00", first)
    >>> assigned_since((first, second), first.digest), assigned_since((first, second), second.digest)
    (1, 0)
    """
    digests = [FIRST, *(one.digest for one in chain)]
    if published not in digests:
        raise InputError(
            f"the digest {published[:80]} is none that these assignments ever had: it is another database's, or rows "
            "were changed or taken out after it was published"
        )
    return len(chain) - digests.index(published)


def chain_digest(chain: Sequence[Assignment]) -> str:
    """Return the digest that stands for all assignments."""
    return chain[-1].digest if chain else FIRST
