"""The key: everything secret about one mark, as plain values and arrays."""

from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime

from regionmarker.corpus import TextSet
from regionmarker.crypto.derive import subkey
from regionmarker.crypto.secret import Sealed, Secret
from regionmarker.errors import InputError
from regionmarker.keys.serving import ServingKey
from regionmarker.marks.corpus_summary import Survey
from regionmarker.marks.number_format import Grid
from regionmarker.marks.reduction import LinearReduction, Reduction, load_reducer
from regionmarker.marks.regions import (
    draw_normals,
    draw_regions,
    provider_targets,
    region_count,
    region_numbers,
    region_shares,
    tenant_targets,
)
from regionmarker.vectors import AnyArray, Doubles


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


# From a survey of a corpus to a key: fit, draw, done.

MASTER_BYTES = 32


def new_master(seed: int | None) -> Secret:
    """Make a master secret: 32 random bytes, or for tests the digest of a seed."""
    if seed is None:
        return Secret(secrets.token_bytes(MASTER_BYTES))
    return Secret(hashlib.sha256(f"regionmarker TEST seed {seed}".encode()).digest())


def new_survey(master: Secret, pool: int, reservoir: int) -> Survey:
    """Start the pass over the corpus that a key is made from."""
    return Survey(subkey(master, "sample"), pool + reservoir)


def key_from_survey(
    survey: Survey, master: Secret, settings: Settings, *, pool: int, encoder: str, test: bool, grid: Grid | None = None
) -> Key:
    """Fit the reducer, cut the regions, draw the trigger regions."""
    sample = survey.sample()
    _check_sizes(survey, settings)
    reducer_seed = int.from_bytes(subkey(master, "reducer").reveal()[:4], "little")
    reduction = load_reducer(settings.reducer).fit(survey, settings.subspace, reducer_seed)
    return _draw(
        master,
        settings,
        reduction,
        pool=sample[:pool],
        reservoir=sample[pool:],
        encoder=encoder,
        grid=grid or survey.grid,
        test=test,
    )


def check_sample(survey: Survey, pool: int, reservoir: int) -> None:
    """Refuse a corpus with too few distinct texts for the pool and the reservoir."""
    distinct = len(survey.sample())
    if distinct < pool + reservoir:
        raise InputError(
            f"the corpus has {distinct} distinct texts, but the pool needs {pool} and the reservoir {reservoir}: "
            "add texts, or lower pool and reservoir"
        )


def key_from_key(old: Key, seed: int | None = None) -> Key:
    """Draw a new key on an old key's fit: new secret and hyperplanes; same reducer, pool and reservoir."""
    return _draw(
        new_master(seed),
        old.settings,
        old.reduction,
        pool=old.pool,
        reservoir=old.reservoir,
        encoder=old.encoder,
        grid=old.grid,
        test=seed is not None,
    )


def _draw(
    master: Secret,
    settings: Settings,
    reduction: Reduction,
    *,
    pool: TextSet,
    reservoir: TextSet,
    encoder: str,
    grid: Grid,
    test: bool,
) -> Key:
    dimension = settings.dimension
    normals = draw_normals(master, dimension, reduction.width)
    # Pool and reservoir are a uniform sample of the corpus, so their shares stand for the corpus's.
    signed = [reduction.reduce(part.embeddings) @ normals.T for part in (pool, reservoir)]
    counted = [region_shares(region_numbers(part), dimension) * len(part) for part in signed]
    shares = sum(counted[1:], counted[0]) / (len(pool) + len(reservoir))
    tenant_count = region_count(settings.tenant_ratio, dimension) if settings.tenant_ratio > 0 else 0
    regions, tenant_regions = draw_regions(master, shares, region_count(settings.ratio, dimension), tenant_count)
    return Key(
        master=master,
        salt=b"",
        settings=replace(settings, subspace=reduction.width),
        encoder=encoder,
        grid=grid,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        test=test,
        reduction=reduction,
        normals=normals,
        shares=shares,
        regions=regions,
        tenant_regions=tenant_regions,
        pool=pool,
        reservoir=reservoir,
    )


def _check_sizes(survey: Survey, settings: Settings) -> None:
    if settings.subspace > survey.width:
        raise InputError(
            f"subspace is {settings.subspace}, but the embeddings have only {survey.width} dimensions: lower subspace"
        )
    if settings.dimension > settings.subspace:
        raise InputError(
            f"dimension is {settings.dimension}, but subspace only {settings.subspace}: "
            "raise subspace or lower dimension"
        )
