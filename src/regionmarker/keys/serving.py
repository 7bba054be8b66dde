"""The serving key: what a gateway or a bulk worker needs to mark, and nothing a thief of it could not do without.

It holds the hyperplanes, the trigger regions and the target vectors of the tenants served. It holds no master secret,
so it cannot make another tenant's mark, open a commitment or verify; and no texts.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from regionmarker.crypto.secret import Sealed
from regionmarker.errors import InputError
from regionmarker.marks.number_format import Grid
from regionmarker.marks.plan import MarkPlan
from regionmarker.marks.reduction import Reduction
from regionmarker.vectors import AnyArray, Doubles, Floats


@dataclass(frozen=True, repr=False, eq=False)
class ServingKey(Sealed):
    """Hyperplanes, trigger regions and target vectors. Made by :meth:`regionmarker.keys.key.Key.serving`."""

    id: str
    test: bool
    strength: float
    grid: Grid
    dimension: int
    projection: Doubles | None  # H (d, D); None when the reducer is not linear
    thresholds: Doubles | None  # (d,)
    reduction: Reduction | None  # only when the reducer is not linear
    normals: Doubles | None
    regions: tuple[int, ...]
    tenant_regions: tuple[int, ...]
    vectors: Floats  # (U, D): every target vector in use, once
    provider_rows: tuple[int, ...]  # rows of `vectors`, one a provider region
    tenant_rows: Mapping[str, tuple[int, ...]]  # tenant -> rows of `vectors`, one a tenant region
    # What an operator wants to see beside the marks; files of earlier versions do not have it.
    encoder: str = ""  # the name of the model that the key was fitted on
    commitment: str = ""  # to the key that this was made from; empty for a TEST key, or where it is not known
    salt: str = ""  # that key's public salt in hexadecimal; empty for none, or where it is not known
    shares: Doubles | None = None  # (2^d,): how the corpus filled the regions, to tell when traffic leaves them

    @property
    def width(self) -> int:
        """The embeddings' width D."""
        return int(self.vectors.shape[1])

    @property
    def tenants(self) -> tuple[str, ...]:
        """The tenants whose targets are here."""
        return tuple(sorted(self.tenant_rows))

    def signed_distances(self, embeddings: AnyArray) -> Doubles:
        """Return n_i . v for every row and hyperplane, (n, d)."""
        if self.projection is not None and self.thresholds is not None:
            return np.asarray(embeddings @ self.projection.T - self.thresholds)
        if self.reduction is None or self.normals is None:
            raise InputError("this serving key has no hyperplanes")
        return np.asarray(self.reduction.reduce(embeddings) @ self.normals.T)

    def plan(self, tenant: str = "") -> MarkPlan:
        """Lay out one tenant's marks for the kernel."""
        if tenant and tenant not in self.tenant_rows:
            raise InputError(f"tenant {tenant!r} is not in this serving key: export it again with that tenant")
        rows = (*self.provider_rows, *self.tenant_rows.get(tenant, ()))
        regions = (*self.regions, *(self.tenant_regions if tenant else ()))
        slot_of_region = np.zeros(2**self.dimension, dtype=np.int64)
        slot_of_region[list(regions)] = np.arange(1, len(regions) + 1)
        # Slot 0 stands for "no mark": a real vector with weight 0, so that every row takes the same arithmetic path.
        targets = self.vectors[[rows[0], *rows]]
        weights = np.concatenate([[0.0], np.full(len(rows), self.strength)])
        return MarkPlan(
            projection=None if self.projection is None else self.projection.astype(np.float32),
            thresholds=np.zeros(self.dimension) if self.thresholds is None else self.thresholds,
            slot_of_region=slot_of_region,
            targets=np.ascontiguousarray(targets),
            weights=weights,
            grid=self.grid,
        )
