"""The published mark: a target's embedding in each of a few secret regions (paper, eqs. 1 to 3).

d random hyperplanes cut the reduced space into 2^d sign regions:

    LSH_i(v) = 1[n_i . v > 0],   region(v) = sum_i LSH_i(v) 2^i

The normals n_i are the rows of a Haar-random orthonormal matrix, so their span and their angles are the secret. A
region is *populated* when it holds at least one percent of the corpus; trigger regions are drawn from those, each
equally likely.

The exact verdict rests on one fact: the tuple of targets is a uniform draw of distinct pool texts, made independently
of everything else. So targets come from the master secret (and, when given, from public randomness issued after the key
was committed to) and from nothing about texts, regions or embeddings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, ClassVar

import numpy as np

from regionmarker.corpus import TextSet
from regionmarker.crypto.derive import draw_distinct, subkey
from regionmarker.crypto.secret import Sealed, Secret
from regionmarker.errors import InputError
from regionmarker.marks.corpus_summary import CorpusSummary
from regionmarker.marks.reduction import (
    LinearReduction,
    Reduction,
    array_stream,
    from_stored,
    haar,
    load_reducer,
    stored_arrays,
)
from regionmarker.marks.served_regions import ServedRegions
from regionmarker.specs import from_known
from regionmarker.vectors import AnyArray, Doubles, Floats, Integers

POPULATED_SHARE = 0.01


@dataclass(frozen=True)
class RegionSettings:
    """The open choices of the mark; none of them is secret.

    Examples
    --------
    >>> RegionSettings().strength
    0.2
    """

    dimension: int = 4
    ratio: float = 0.2
    tenant_ratio: float = 0.2
    strength: float = 0.2
    reducer: str = "pca"
    subspace: int = 4

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> RegionSettings:
        """Read settings from a key file's document, which may hold more than this version knows."""
        return from_known(cls, document)


@dataclass(frozen=True, repr=False, eq=False)
class RegionMark(Sealed):
    """Hyperplanes and trigger regions: all of a key that is special to regions, but for the targets."""

    kind: ClassVar[str] = "regions"

    settings: RegionSettings
    reduction: Reduction
    normals: Doubles  # (d, k)
    shares: Doubles  # (2^d,): how the corpus fills the regions
    regions: tuple[int, ...]  # the provider's trigger regions a_1 .. a_R
    tenant_regions: tuple[int, ...]

    @classmethod
    def fit(
        cls, summary: CorpusSummary, master: Secret, settings: RegionSettings, samples: Sequence[TextSet]
    ) -> RegionMark:
        """Fit the reducer on a summary of the corpus, cut the regions, draw the trigger regions."""
        _check_sizes(summary.width, settings)
        seed = int.from_bytes(subkey(master, "reducer").reveal()[:4], "little")
        reduction = load_reducer(settings.reducer).fit(summary, settings.subspace, seed)
        return cls._draw(master, replace(settings, subspace=reduction.width), reduction, samples)

    def redrawn(self, master: Secret, samples: Sequence[TextSet]) -> RegionMark:
        """Return a mark of the same settings on the same reduction, with the choices that ``master`` makes."""
        return self._draw(master, self.settings, self.reduction, samples)

    @classmethod
    def _draw(
        cls, master: Secret, settings: RegionSettings, reduction: Reduction, samples: Sequence[TextSet]
    ) -> RegionMark:
        dimension = settings.dimension
        normals = draw_normals(master, dimension, reduction.width)
        # The samples are uniform samples of the corpus, so their shares stand for the corpus's.
        signed = [reduction.reduce(part.embeddings) @ normals.T for part in samples]
        counted = [region_shares(region_numbers(part), dimension) * len(part) for part in signed]
        shares = sum(counted[1:], counted[0]) / sum(map(len, samples))
        tenant_count = region_count(settings.tenant_ratio, dimension) if settings.tenant_ratio > 0 else 0
        regions, tenant_regions = draw_regions(master, shares, region_count(settings.ratio, dimension), tenant_count)
        return cls(settings, reduction, normals, shares, regions, tenant_regions)

    @property
    def populated(self) -> tuple[int, ...]:
        """The regions that hold enough of the corpus to ask about."""
        return tuple(int(region) for region in np.flatnonzero(self.shares >= POPULATED_SHARE))

    def signed_distances(self, embeddings: AnyArray) -> Doubles:
        """Return n_i . v for every row and hyperplane, (n, d): the sign is the region bit, the size is the margin."""
        return self.reduction.reduce(embeddings) @ self.normals.T

    def region_of(self, embeddings: AnyArray) -> Integers:
        """Return region numbers (n,), computed in float64."""
        return region_numbers(self.signed_distances(embeddings))

    # ---- targets: places in the key's pool

    def provider_targets(self, master: Secret, salt: bytes, pool_size: int) -> tuple[int, ...]:
        """Draw the tuple that every tenant's vectors carry, one place per provider region."""
        return draw_distinct(subkey(master, "targets", "provider", salt=salt), pool_size, len(self.regions))

    def tenant_targets(self, master: Secret, salt: bytes, pool_size: int, tenant: str) -> tuple[int, ...]:
        """Draw the tuple that belongs to one tenant, one place per tenant region; none for tenant ""."""
        if not tenant:
            return ()
        if not self.tenant_regions:
            raise InputError("this key has no tenant regions: make one with tenant_ratio > 0 to mark by tenant")
        return draw_distinct(
            subkey(master, "targets", "tenant", tenant, salt=salt), pool_size, len(self.tenant_regions)
        )

    def served(self, pool: Floats, provider: tuple[int, ...], tenants: Mapping[str, tuple[int, ...]]) -> ServedRegions:
        """Return what marking needs and no more, given the targets' places in ``pool`` (M, D)."""
        places = sorted({*provider, *(place for drawn in tenants.values() for place in drawn)})
        row_of = {place: row for row, place in enumerate(places)}
        linear = self.reduction if isinstance(self.reduction, LinearReduction) else None
        projection, thresholds = linear.fold(self.normals) if linear else (None, None)
        return ServedRegions(
            dimension=self.settings.dimension,
            strength=self.settings.strength,
            projection=projection,
            thresholds=thresholds,
            reduction=None if linear else self.reduction,
            normals=None if linear else self.normals,
            regions=self.regions,
            tenant_regions=self.tenant_regions,
            vectors=pool[places],
            provider_rows=tuple(row_of[place] for place in provider),
            tenant_rows={name: tuple(row_of[place] for place in drawn) for name, drawn in tenants.items() if name},
            shares=self.shares,
        )

    # ---- what a key file stores, and what may be told

    def describe(self) -> dict[str, object]:
        return {"mark": "published", **asdict(self.settings)}

    def document(self) -> dict[str, object]:
        return {
            "settings": asdict(self.settings),
            "reduction": self.reduction.kind,
            "regions": self.regions,
            "tenant_regions": self.tenant_regions,
        }

    def arrays(self) -> dict[str, AnyArray]:
        return {"normals": self.normals, "shares": self.shares, **stored_arrays(self.reduction)}

    @classmethod
    def from_parts(cls, document: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> RegionMark:
        return cls(
            settings=RegionSettings.from_document(document["settings"]),
            reduction=from_stored(document["reduction"], arrays),
            normals=arrays["normals"],
            shares=arrays["shares"],
            regions=tuple(document["regions"]),
            tenant_regions=tuple(document["tenant_regions"]),
        )


def draw_normals(master: Secret, dimension: int, width: int) -> Doubles:
    """Draw d orthonormal normals (d, k), uniformly."""
    return haar(array_stream(master, "normals"), dimension, width)


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


def _check_sizes(width: int, settings: RegionSettings) -> None:
    if settings.subspace > width:
        raise InputError(
            f"subspace is {settings.subspace}, but the embeddings have only {width} dimensions: lower subspace"
        )
    if settings.dimension > settings.subspace:
        raise InputError(
            f"dimension is {settings.dimension}, but subspace only {settings.subspace}: "
            "raise subspace or lower dimension"
        )
