"""From a survey of a corpus to a key: fit, draw, done."""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import replace
from datetime import UTC, datetime

from regionmarker.errors import InputError
from regionmarker.keys.derive import subkey
from regionmarker.keys.key import Key, Settings, TextSet
from regionmarker.keys.secret import Secret
from regionmarker.marking.grid import Grid
from regionmarker.marking.reducers import load_reducer
from regionmarker.marking.reductions import Reduction
from regionmarker.marking.regions import draw_normals, draw_regions, region_count, region_numbers, region_shares
from regionmarker.marking.survey import Survey

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
