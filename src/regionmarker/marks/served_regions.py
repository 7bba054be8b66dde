"""What a serving key holds of the published mark: all that marking needs for the tenants served, and no more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from regionmarker.crypto.secret import Sealed
from regionmarker.errors import InputError
from regionmarker.marks.number_format import NumberFormat
from regionmarker.marks.plan import MarkPlan
from regionmarker.marks.reduction import Reduction, from_stored, stored_arrays
from regionmarker.vectors import AnyArray, Doubles, Floats


@dataclass(frozen=True, repr=False, eq=False)
class ServedRegions(Sealed):
    """Hyperplanes, trigger regions and the target vectors of the tenants served; no texts, no places in the pool."""

    kind: ClassVar[str] = "regions"

    dimension: int
    strength: float
    projection: Doubles | None  # H (d, D); None when the reducer is not linear
    thresholds: Doubles | None  # (d,)
    reduction: Reduction | None  # only when the reducer is not linear
    normals: Doubles | None
    regions: tuple[int, ...]
    tenant_regions: tuple[int, ...]
    vectors: Floats  # (U, D): every target vector in use, once
    provider_rows: tuple[int, ...]  # rows of `vectors`, one per provider region
    tenant_rows: Mapping[str, tuple[int, ...]]  # tenant -> rows of `vectors`, one per tenant region
    shares: Doubles | None = None  # (2^d,): how the corpus filled the regions; files of earlier versions lack it

    @property
    def width(self) -> int:
        return int(self.vectors.shape[1])

    @property
    def tenants(self) -> tuple[str, ...]:
        return tuple(sorted(self.tenant_rows))

    @property
    def watched_bits(self) -> int:
        """How many hyperplanes' signature is watched for drift of the traffic."""
        return self.dimension

    def signed_distances(self, embeddings: AnyArray) -> Doubles:
        if self.projection is not None and self.thresholds is not None:
            return np.asarray(embeddings @ self.projection.T - self.thresholds)
        if self.reduction is None or self.normals is None:
            raise InputError("this serving key has no hyperplanes")
        return np.asarray(self.reduction.reduce(embeddings) @ self.normals.T)

    def plan(self, tenant: str, number_format: NumberFormat) -> MarkPlan:
        if tenant and tenant not in self.tenant_rows:
            raise InputError(f"tenant {tenant!r} is not in this serving key: export it again with that tenant")
        rows = (*self.provider_rows, *self.tenant_rows.get(tenant, ()))
        regions = (*self.regions, *(self.tenant_regions if tenant else ()))
        target_of_region = np.zeros(2**self.dimension, dtype=np.int64)
        target_of_region[list(regions)] = np.arange(1, len(regions) + 1)
        # Target 0 stands for "no mark": a real vector with weight 0, so that every row takes the same arithmetic path.
        targets = self.vectors[[rows[0], *rows]]
        weights = np.concatenate([[0.0], np.full(len(rows), self.strength)])
        return MarkPlan(
            projection=None if self.projection is None else self.projection.astype(np.float32),
            thresholds=np.zeros(self.dimension) if self.thresholds is None else self.thresholds,
            target_of_region=target_of_region,
            targets=np.ascontiguousarray(targets),
            weights=weights,
            number_format=number_format,
        )

    def describe(self) -> dict[str, object]:
        return {
            "mark": "published",
            "dimension": self.dimension,
            "strength": self.strength,
            "tenants": len(self.tenant_rows),
        }

    def document(self) -> dict[str, object]:
        names = ("strength", "dimension", "regions", "tenant_regions", "provider_rows")
        return {
            **{name: getattr(self, name) for name in names},
            "tenant_rows": dict(self.tenant_rows),
            "reduction": None if self.reduction is None else self.reduction.kind,
        }

    def arrays(self) -> dict[str, AnyArray]:
        found = {name: getattr(self, name) for name in ("vectors", "projection", "thresholds", "normals", "shares")}
        found |= {} if self.reduction is None else stored_arrays(self.reduction)
        return {name: array for name, array in found.items() if array is not None}

    @classmethod
    def from_parts(cls, document: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> ServedRegions:
        kind = document["reduction"]
        return cls(
            dimension=document["dimension"],
            strength=document["strength"],
            projection=arrays.get("projection"),
            thresholds=arrays.get("thresholds"),
            reduction=None if kind is None else from_stored(kind, arrays),
            normals=arrays.get("normals"),
            regions=tuple(document["regions"]),
            tenant_regions=tuple(document["tenant_regions"]),
            vectors=arrays["vectors"],
            provider_rows=tuple(document["provider_rows"]),
            tenant_rows={name: tuple(rows) for name, rows in document["tenant_rows"].items()},
            shares=arrays.get("shares"),
        )
