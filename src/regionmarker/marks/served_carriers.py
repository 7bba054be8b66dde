"""What a serving key holds of the graded mark: all that marking needs for the accounts served, and no more."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from regionmarker.crypto.secret import Sealed
from regionmarker.errors import InputError
from regionmarker.marks.number_format import NumberFormat
from regionmarker.marks.plan import GradedPlan
from regionmarker.vectors import AnyArray, Doubles, Floats, Integers

WATCHED = 4  # hyperplanes whose signature is watched for drift of the traffic


@dataclass(frozen=True, repr=False, eq=False)
class ServedCarriers(Sealed):
    """Hyperplanes, carriers and the directions that they pull along; no texts, no places in the pool."""

    kind: ClassVar[str] = "graded"
    watched_bits: ClassVar[int] = WATCHED

    strength: float
    planes: Doubles  # (h, D)
    offsets: Doubles  # (h,)
    planes_of: Integers  # (J, 2)
    centres: Doubles  # (J,)
    amounts: Doubles  # (J,)
    provider: Integers  # (J_p,): which carriers are the provider's; the rest are the tenants'
    vectors: Floats  # (U, D): d_t of every target in use, once
    provider_rows: Integers  # (J_p,): rows of `vectors`
    names: tuple[str, ...]  # of the tenants served
    tenant_rows: Integers  # (T, J_t): rows of `vectors`
    shares: Doubles  # (2^WATCHED,)

    @property
    def width(self) -> int:
        return int(self.planes.shape[1])

    @property
    def tenants(self) -> tuple[str, ...]:
        return tuple(sorted(name for name in self.names if name))

    @cached_property
    def _row_of(self) -> dict[str, int]:
        return {name: row for row, name in enumerate(self.names)}

    def signed_distances(self, embeddings: AnyArray) -> Doubles:
        return np.asarray(embeddings @ self.planes.T - self.offsets)

    def plan(self, tenant: str, number_format: NumberFormat) -> GradedPlan:
        if tenant not in self._row_of:
            raise InputError(f"tenant {tenant!r} is not in this serving key: export it again with that tenant")
        like = self._plans_made.get(number_format)
        if like is None:  # tenants differ in directions alone: the rest is laid out once for all
            first, second = self.planes_of.T
            like = self._plans_made[number_format] = GradedPlan(
                planes=self.planes.astype(np.float32),
                offsets=self.offsets,
                first=first,
                second=second,
                centres=self.centres,
                amounts=self.amounts,
                directions=self._directions(tenant),
                number_format=number_format,
            )
        return replace(like, directions=self._directions(tenant), like=like)

    def _directions(self, tenant: str) -> Floats:
        rows = np.empty(len(self.planes_of), dtype=np.int64)
        rows[self.provider], rows[self._others] = self.provider_rows, self.tenant_rows[self._row_of[tenant]]
        return np.asarray(self.vectors[rows])

    @cached_property
    def _others(self) -> Integers:
        """Which carriers are the tenants'."""
        return np.setdiff1d(np.arange(len(self.planes_of)), self.provider)

    @cached_property
    def _plans_made(self) -> dict[NumberFormat, GradedPlan]:
        return {}

    def describe(self) -> dict[str, object]:
        return {"mark": self.kind, "strength": round(self.strength, 4), "tenants": len(self.tenants)}

    def document(self) -> dict[str, object]:
        return {"strength": self.strength, "names": list(self.names)}

    def arrays(self) -> dict[str, AnyArray]:
        return {name: getattr(self, name) for name in _SERVED_ARRAYS}

    @classmethod
    def from_parts(cls, document: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> ServedCarriers:
        return cls(
            strength=float(document["strength"]),
            names=tuple(document["names"]),
            **{name: arrays[name] for name in _SERVED_ARRAYS},
        )


_SERVED_ARRAYS = (
    "planes", "offsets", "planes_of", "centres", "amounts", "provider", "vectors", "provider_rows", "tenant_rows",
    "shares",
)  # fmt: skip
