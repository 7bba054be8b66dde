"""What the parameters of :class:`~regionmarker.RegionMarker` mean: which mark they choose, and with which settings.

The graded mark is what a marker makes of itself. Giving any parameter of the published mark, or a reducer that is not
linear, chooses the published one, with the rest as 0.1.0 had it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, TypeAlias

from regionmarker.errors import InputError
from regionmarker.keys.key import Key, Settings
from regionmarker.keys.serving import ServingKey
from regionmarker.marks import MarkSettings
from regionmarker.marks.graded_settings import POOL as CANDIDATES
from regionmarker.marks.graded_settings import RESERVOIR, GradedSettings
from regionmarker.marks.number_format import NumberFormat
from regionmarker.marks.reduction import LINEAR, load_reducer
from regionmarker.marks.regions import RegionSettings
from regionmarker.marks.served_regions import ServedRegions
from regionmarker.specs import check_range

PUBLISHED: dict[str, Any] = {"dimension": 4, "ratio": 0.2, "tenant_ratio": 0.2, "strength": 0.2}
"""What the published mark has where nothing else is said."""
DEFAULT_SUBSPACE = 32
_POOL = 1024
_OF_PUBLISHED = ("dimension", "ratio", "subspace", "strength", "tenant_ratio", "pool")
_OF_GRADED = ("kept",)

Parameters: TypeAlias = Mapping[str, Any]


def is_graded(given: Parameters) -> bool:
    """Say whether these parameters make the graded mark, and not the published one.

    Examples
    --------
    >>> is_graded({"reducer": "svd", "kept": 0.9}), is_graded({"reducer": "pca", "strength": 0.2})
    (True, False)
    """
    return given["reducer"] in LINEAR and all(given.get(name) is None for name in _OF_PUBLISHED)


def check_parameters(given: Parameters) -> None:
    """Refuse parameters that are out of range or do not go together."""
    load_reducer(given["reducer"])
    if not is_graded(given):
        _refuse_mixture(given)
    ranges: dict[str, tuple[float, float, bool, bool]] = {
        "dimension": (1, 12, False, False),
        "ratio": (0.0, 1.0, True, False),
        "tenant_ratio": (0.0, 1.0, False, False),
        "strength": (0.0, 1.0, True, True),
        "level": (0.0, 1.0, True, True),
        "kept": (0.5, 1.0, False, True),
        "pool": (16, 1_000_000, False, False),
        "reservoir": (64, 1_000_000, False, False),
    }
    for name, (low, high, open_left, open_right) in ranges.items():
        if given[name] is not None:
            check_range(name, given[name], low, high, open_left=open_left, open_right=open_right)
    if given["grid"] is not None and given["grid"] not in {grid.value for grid in NumberFormat}:
        known = ", ".join(grid.value for grid in NumberFormat)
        raise InputError(f"grid {given['grid']!r} is not known: use {known} or None")


def _refuse_mixture(given: Parameters) -> None:
    other = next((name for name in _OF_PUBLISHED if given[name] is not None), f"reducer={given['reducer']}")
    for name in _OF_GRADED:
        if given[name] is not None:
            raise InputError(
                f"{name} and {other} do not go together: {name} is of the graded mark, {other} of the published"
            )
    if not given["tenants"]:
        raise InputError(f"tenants=False and {other} do not go together: the published mark has tenant_ratio=0")


def sample_sizes(given: Parameters) -> tuple[int, int]:
    """Return how many texts to keep as candidates and as probes; for the graded mark, at the most."""
    pool = CANDIDATES if is_graded(given) else given["pool"] or _POOL
    return pool, given["reservoir"] or RESERVOIR


def key_settings(given: Parameters) -> Settings:
    """Return the settings of a key besides those of its mark."""
    statistic = "decoy-2" if is_graded(given) else "decoy-1"
    return Settings(statistic=statistic, level=given["level"], normalise=given["normalise"])


def mark_settings(given: Parameters, width: int) -> MarkSettings:
    """Return the settings of the mark, for embeddings of a width."""
    reducer = given["reducer"]
    if is_graded(given):
        kept = {} if given["kept"] is None else {"kept": given["kept"]}
        return GradedSettings.within(width, tenants=given["tenants"], reducer=reducer, **kept)
    chosen = {name: usual if given[name] is None else given[name] for name, usual in PUBLISHED.items()}
    dimension, subspace = chosen["dimension"], given["subspace"]
    if reducer in LINEAR:
        subspace = min(max(DEFAULT_SUBSPACE, dimension), width) if subspace is None else subspace
    elif subspace is None:
        subspace = width if reducer == "none" else dimension
    else:
        raise InputError(f"subspace goes with reducer pca or svd, not with {reducer}")
    return RegionSettings(**chosen, reducer=reducer, subspace=subspace)


def mark_parameters(key: Key) -> dict[str, Any]:
    """Return the parameters that made a key's mark."""
    settings = key.mark.settings
    if isinstance(settings, GradedSettings):
        return {"kept": settings.kept, "tenants": bool(settings.tenant_pairs), "reducer": settings.reducer}
    found = {**asdict(settings), "pool": len(key.pool)}
    return found if settings.reducer in LINEAR else {**found, "subspace": None}


def key_parameters(key: Key) -> dict[str, Any]:
    """Return all parameters of a marker that holds a key."""
    return {
        **mark_parameters(key),
        "reservoir": len(key.reservoir),
        "level": key.settings.level,
        "grid": key.number_format.value,
        "normalise": key.settings.normalise,
    }


def serving_parameters(serving: ServingKey) -> dict[str, Any]:
    """Return the parameters that a serving key tells of."""
    mark = serving.mark
    given = {"dimension": mark.dimension, "strength": mark.strength} if isinstance(mark, ServedRegions) else {}
    return {**given, "grid": serving.number_format.value, "normalise": serving.normalise}
