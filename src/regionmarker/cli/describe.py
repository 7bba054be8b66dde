"""What may be said of a key: nothing that helps to find or remove the mark."""

from __future__ import annotations

from regionmarker.keys.key import Key
from regionmarker.keys.serving import ServingKey


def describe_key(key: Key) -> dict[str, object]:
    """Return the facts of a key that are not secret."""
    settings = key.settings
    return {
        "key_id": key.id,
        "kind": "TEST key (fixed seed): not for production" if key.test else "key",
        "created": key.created,
        "encoder": key.encoder,
        "width": key.width,
        "grid": key.grid.value,
        "dimension": settings.dimension,
        "ratio": settings.ratio,
        "tenant_ratio": settings.tenant_ratio,
        "strength": settings.strength,
        "reducer": settings.reducer,
        "subspace": settings.subspace,
        "pool": len(key.pool),
        "reservoir": len(key.reservoir),
        "statistic": settings.statistic,
        "level": settings.level,
        "public_salt": key.salt.hex() or None,
    }


def describe_serving(key: ServingKey) -> dict[str, object]:
    """Return the facts of a serving key that are not secret."""
    return {
        "key_id": key.id,
        "kind": "serving key" + (" of a TEST key" if key.test else ""),
        "width": key.width,
        "grid": key.grid.value,
        "dimension": key.dimension,
        "strength": key.strength,
        "tenants": len(key.tenant_rows),
        "commitment": key.commitment or None,
        "public_salt": key.salt or None,
    }
