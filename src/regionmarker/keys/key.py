"""The key: everything secret about one mark, as plain values and arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

from regionmarker.errors import InputError
from regionmarker.keys.derive import subkey
from regionmarker.keys.secret import Sealed, Secret
from regionmarker.keys.serving import ServingKey
from regionmarker.marking.grid import Grid
from regionmarker.marking.reductions import LinearReduction, Reduction
from regionmarker.marking.regions import region_numbers
from regionmarker.marking.targets import provider_targets, tenant_targets
from regionmarker.protocols import AnyArray, Doubles, Floats


@dataclass(frozen=True)
class TextSet:
    """Texts with their clean embeddings, (n, D)."""

    texts: tuple[str, ...]
    embeddings: Floats

    def __len__(self) -> int:
        return len(self.texts)

    def __getitem__(self, part: slice) -> TextSet:
        return TextSet(self.texts[part], self.embeddings[part])

    def __repr__(self) -> str:
        return f"<TextSet: {len(self)} texts>"


@dataclass(frozen=True)
class Settings:
    """The open choices of a key; none of them is secret.

    Examples
    --------
    >>> Settings().strength
    0.2
    """

    dimension: int = 4
    ratio: float = 0.2
    tenant_ratio: float = 0.2
    strength: float = 0.2
    reducer: str = "pca"
    subspace: int = 4
    statistic: str = "decoy-1"
    level: float = 1e-3
    normalise: bool = False


@dataclass(frozen=True, repr=False, eq=False)
class Key(Sealed):
    """One fitted secret. Immutable; made by :meth:`regionmarker.RegionMarker.fit` or read from a key file."""

    master: Secret
    salt: bytes  # public randomness mixed into the targets; empty until given
    settings: Settings
    encoder: str
    grid: Grid
    created: str  # UTC, ISO 8601
    test: bool  # made from a fixed seed: not for production
    reduction: Reduction
    normals: Doubles  # (d, k)
    shares: Doubles  # (2^d,): how the corpus fills the regions
    regions: tuple[int, ...]  # the provider's trigger regions a_1 .. a_R
    tenant_regions: tuple[int, ...]
    pool: TextSet
    reservoir: TextSet

    @property
    def id(self) -> str:
        """A public name for this key that says nothing about it."""
        return subkey(self.master, "id").reveal()[:8].hex()

    @property
    def width(self) -> int:
        """The embeddings' width D."""
        return int(self.pool.embeddings.shape[1])

    def signed_distances(self, embeddings: AnyArray) -> Doubles:
        """Return n_i . v for every row and hyperplane, (n, d): the sign is the region bit, the size is the margin."""
        return self.reduction.reduce(embeddings) @ self.normals.T

    def region_of(self, embeddings: AnyArray) -> AnyArray:
        """Return region numbers (n,), computed in float64."""
        return region_numbers(self.signed_distances(embeddings))

    def provider_targets(self) -> tuple[int, ...]:
        """Return the pool places of the provider's targets, one a provider region."""
        return provider_targets(self.master, self.salt, len(self.pool), len(self.regions))

    def tenant_targets(self, tenant: str) -> tuple[int, ...]:
        """Return the pool places of a tenant's targets, one a tenant region; none for tenant ""."""
        return tenant_targets(self.master, self.salt, len(self.pool), len(self.tenant_regions), tenant)

    def with_salt(self, salt: bytes) -> Key:
        """Mix public randomness into the targets; once, and before anything is served."""
        if self.salt:
            raise InputError("this key already has a public salt: a second one would change every target")
        if len(salt) < 16:
            raise InputError("the public salt must have at least 16 bytes")
        return replace(self, salt=salt)

    def serving(self, tenants: Sequence[str] = ("",)) -> ServingKey:
        """Return what marking needs and no more: no master secret, no texts, only the targets of these tenants."""
        names = tuple(dict.fromkeys(("", *tenants)))
        tuples = {name: self.tenant_targets(name) for name in names}
        places = sorted({*self.provider_targets(), *(place for drawn in tuples.values() for place in drawn)})
        row_of = {place: row for row, place in enumerate(places)}
        projection, thresholds = (
            self.reduction.fold(self.normals) if isinstance(self.reduction, LinearReduction) else (None, None)
        )
        return ServingKey(
            id=self.id,
            test=self.test,
            strength=self.settings.strength,
            grid=self.grid,
            dimension=self.settings.dimension,
            projection=projection,
            thresholds=thresholds,
            reduction=None if projection is not None else self.reduction,
            normals=None if projection is not None else self.normals,
            regions=self.regions,
            tenant_regions=self.tenant_regions,
            vectors=self.pool.embeddings[places],
            provider_rows=tuple(row_of[place] for place in self.provider_targets()),
            tenant_rows={name: tuple(row_of[place] for place in drawn) for name, drawn in tuples.items() if name},
            encoder=self.encoder,
            salt=self.salt.hex(),
            shares=self.shares,
        )


def settings_from(document: dict[str, object]) -> Settings:
    """Read settings from a key file's document, which may hold more than this version knows."""
    known = {field.name for field in fields(Settings)}
    return Settings(**{name: value for name, value in document.items() if name in known})  # type: ignore[arg-type]
