"""Targets: which pool text's embedding w_r is mixed into which trigger region.

The exact verdict rests on one fact: the tuple of targets is a uniform draw of distinct pool texts, made independently
of everything else. So targets come from the master secret (and, when given, from public randomness issued after the
key was committed to) and from nothing about texts, regions or embeddings.
"""

from __future__ import annotations

from regionmarker.errors import InputError
from regionmarker.keys.derive import draw_distinct, subkey
from regionmarker.keys.secret import Secret


def provider_targets(master: Secret, salt: bytes, pool_size: int, count: int) -> tuple[int, ...]:
    """Draw the tuple that every tenant's vectors carry in the provider's regions."""
    return draw_distinct(subkey(master, "targets", "provider", salt=salt), pool_size, count)


def tenant_targets(master: Secret, salt: bytes, pool_size: int, count: int, tenant: str) -> tuple[int, ...]:
    """Draw the tuple that belongs to one tenant, in the tenants' regions."""
    if not tenant:
        return ()
    if count == 0:
        raise InputError("this key has no tenant regions: make one with tenant_ratio > 0 to mark by tenant")
    return draw_distinct(subkey(master, "targets", "tenant", tenant, salt=salt), pool_size, count)
