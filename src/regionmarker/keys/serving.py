"""The serving key: what a gateway or a bulk worker needs to mark, and nothing a thief of it could not do without.

It holds the served mark: hyperplanes and the target vectors of the tenants served. It holds no master secret, so it
cannot make another tenant's mark, open a commitment or verify; and no texts.
"""

from __future__ import annotations

from dataclasses import dataclass

from regionmarker.crypto.secret import Sealed
from regionmarker.marks import ServedMark
from regionmarker.marks.number_format import NumberFormat
from regionmarker.marks.plan import GradedPlan, MarkPlan
from regionmarker.marks.served_carriers import ServedCarriers


@dataclass(frozen=True, repr=False, eq=False)
class ServingKey(Sealed):
    """A served mark, and what an operator wants to see beside it. Made by :meth:`regionmarker.keys.key.Key.serving`."""

    id: str
    test: bool
    number_format: NumberFormat
    mark: ServedMark
    normalise: bool = False  # rows of any length are scaled to unit length, as the key says
    # Files of earlier versions do not have these.
    encoder: str = ""  # the name of the model that the key was fitted on
    commitment: str = ""  # to the key that this was made from; empty for a TEST key, or where it is not known
    salt: str = ""  # that key's public salt in hexadecimal; empty for none, or where it is not known

    @property
    def width(self) -> int:
        return self.mark.width

    @property
    def tenants(self) -> tuple[str, ...]:
        return self.mark.tenants

    @property
    def marks_tenants(self) -> bool:
        """Whether tenants can have marks of their own."""
        mark = self.mark
        if isinstance(mark, ServedCarriers):
            return len(mark.provider) < len(mark.planes_of)
        return bool(mark.tenant_regions)

    def plan(self, tenant: str = "") -> MarkPlan | GradedPlan:
        return self.mark.plan(tenant, self.number_format)

    def describe(self) -> dict[str, object]:
        return {
            "key_id": self.id,
            "kind": "serving key" + (" of a TEST key" if self.test else ""),
            "width": self.width,
            "grid": self.number_format.value,
            **self.mark.describe(),
            "commitment": self.commitment or None,
            "public_salt": self.salt or None,
        }
