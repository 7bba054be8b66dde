"""Regions: d random hyperplanes cut the reduced space into 2^d sign cells (paper, eqs. 1 and 2).

    LSH_i(v) = 1[n_i . v > 0],   region(v) = sum_i LSH_i(v) 2^i

The normals n_i are the rows of a Haar-random orthonormal matrix, so their span and their angles are the secret. A
region is *populated* when it holds at least one percent of the corpus; trigger regions are drawn from those, each
equally likely.
"""

from __future__ import annotations

import numpy as np

from regionmarker.crypto.derive import draw_distinct, subkey
from regionmarker.crypto.secret import Secret
from regionmarker.errors import InputError
from regionmarker.vectors import Doubles, Integers

POPULATED_SHARE = 0.01


def draw_normals(master: Secret, dimension: int, width: int) -> Doubles:
    """Draw d orthonormal normals (d, k), uniformly (Haar): the Q of a Gaussian matrix, R's diagonal positive."""
    seed = int.from_bytes(subkey(master, "normals").reveal(), "little")
    gaussian = np.random.Generator(np.random.Philox(np.random.SeedSequence(seed))).standard_normal((width, dimension))
    q, r = np.linalg.qr(gaussian)
    return np.ascontiguousarray((q * np.sign(np.diag(r))).T)


def region_numbers(signed: Doubles) -> Integers:
    """Turn signed distances n_i . v (n, d) into region numbers (n,).

    Examples
    --------
    >>> region_numbers(np.array([[0.5, -0.1], [0.2, 0.3]])).tolist()
    [1, 3]
    """
    bits = np.int64(1) << np.arange(signed.shape[1])
    return np.asarray((signed > 0.0) @ bits, dtype=np.int64)


def region_shares(regions: Integers, dimension: int) -> Doubles:
    """Return the share of texts that each of the 2^d regions holds.

    Examples
    --------
    >>> region_shares(np.array([0, 3, 3, 1]), dimension=2).tolist()
    [0.25, 0.25, 0.0, 0.5]
    """
    return np.bincount(regions, minlength=2**dimension) / max(len(regions), 1)


def region_count(ratio: float, dimension: int) -> int:
    """Return R = max(1, round(alpha 2^d)).

    Examples
    --------
    >>> region_count(0.2, 4)
    3
    """
    return max(1, round(ratio * (1 << dimension)))


def draw_regions(
    master: Secret, shares: Doubles, provider_count: int, tenant_count: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Draw the provider's and then the tenants' trigger regions from the populated ones, without replacement."""
    populated = np.flatnonzero(shares >= POPULATED_SHARE)
    wanted = provider_count + tenant_count
    if wanted > len(populated):
        raise InputError(
            f"{wanted} trigger regions are wanted ({provider_count} for the provider, {tenant_count} for tenants), "
            f"but only {len(populated)} of {len(shares)} regions hold at least {POPULATED_SHARE:.0%} of the corpus: "
            "lower ratio or tenant_ratio, or choose another reducer or subspace"
        )
    drawn = [int(populated[place]) for place in draw_distinct(subkey(master, "regions"), len(populated), wanted)]
    return tuple(drawn[:provider_count]), tuple(drawn[provider_count:])


# Targets: which pool text's embedding w_r is mixed into which trigger region.  The exact verdict rests on one fact:
# the tuple of targets is a uniform draw of distinct pool texts, made independently of everything else. So targets
# come from the master secret (and, when given, from public randomness issued after the key was committed to) and from
# nothing about texts, regions or embeddings.


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
