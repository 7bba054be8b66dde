"""The open choices of the graded mark: how many carriers, on which components, how much of the neighbours they cost.

None of them is secret. What depends on the corpus (how many candidates a list has, how many probes there are) is
decided here, too, so that a small corpus makes a weaker key and not an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from regionmarker.errors import InputError
from regionmarker.specs import from_known
from regionmarker.vectors import Doubles, Integers

POOL = 1536  # candidates of all lists together, in a key that lacks nothing
LEAST_LIST = 8
RESERVOIR = 4096
LEAST_PROBES = 256
TEST_WEIGHTS = {True: (0.5**0.5, 0.5**0.5), False: (0.6, 0.8)}
"""What singles and pairs weigh in the test, by whether axes match; the squares add up to 1."""
_CANDIDATES = 0.27  # of a small corpus: the share of its texts that are candidates, as in a large one
_NARROWEST = 32


@dataclass(frozen=True)
class GradedSettings:
    """How the carriers are drawn.

    Attributes
    ----------
    singles, pairs
        J_s and J_p, the number of the provider's carriers of each kind.
    tenant_singles, tenant_pairs
        The same of the tenants'; none where the key marks no tenants.
    tenant_share
        The tenants' share of the mark's energy.
    pair_planes
        The hyperplanes of one group that its pairs are drawn from.
    single_start, single_end
        The principal components that normals of singles lie among, counted from 0, the end left out.
    pair_span
        Normals of pairs lie among this many top components, whitened.
    band_start, band_end
        The principal components that targets are kept to, counted from 0, the end left out.
    kept
        The share of the ten nearest neighbours that marking shall leave as they are.
    reducer
        What the components come from: "pca" or "svd".
    """

    singles: int = 4
    pairs: int = 8
    tenant_singles: int = 4
    tenant_pairs: int = 8
    tenant_share: float = 0.5
    pair_planes: int = 16
    single_start: int = 64
    single_end: int = 128
    pair_span: int = 16
    band_start: int = 64
    band_end: int = 320
    kept: float = 0.93
    reducer: str = "pca"

    @property
    def all_singles(self) -> int:
        return self.singles + self.tenant_singles

    @property
    def all_pairs(self) -> int:
        return self.pairs + self.tenant_pairs

    def counts(self) -> dict[str, tuple[int, int]]:
        """Return the number of singles and of pairs of each group that there is."""
        tenants = {"tenants": (self.tenant_singles, self.tenant_pairs)} if self.tenant_pairs else {}
        return {"provider": (self.singles, self.pairs), **tenants}

    @property
    def lists(self) -> int:
        """How many lists of candidates there are: one per carrier, which both groups share."""
        return max(self.singles + self.pairs, self.tenant_singles + self.tenant_pairs)

    def places(self, group: str) -> Integers:
        """Return which of all carriers are the "provider"'s or the "tenants'", singles first."""
        singles, pairs = np.arange(self.all_singles), self.all_singles + np.arange(self.all_pairs)
        mine = slice(self.singles), slice(self.pairs)
        others = slice(self.singles, None), slice(self.pairs, None)
        of_singles, of_pairs = mine if group == "provider" else others
        return np.concatenate([singles[of_singles], pairs[of_pairs]])

    def weights(self) -> Doubles:
        """Return the weight of each carrier in the mark, (J,); without tenants J_s^-1/2 or J_p^-1/2."""
        shares = (1.0, 0.0) if not len(self.places("tenants")) else (1.0 - self.tenant_share, self.tenant_share)
        counts = (self.singles, self.tenant_singles, self.pairs, self.tenant_pairs)
        each = [np.full(count, np.sqrt(shares[kind % 2] / max(count, 1))) for kind, count in enumerate(counts)]
        return np.concatenate(each)

    def test_weights(self, group: str, *, matched: bool) -> Doubles:
        """Return the weight of each carrier of a group in the total U, whose variance is then 1, (J_g,).

        Singles and pairs count alike where a suspect's axes match the clean ones, and pairs more where they do not.
        """
        single = self.places(group) < self.all_singles
        for_singles, for_pairs = TEST_WEIGHTS[matched]
        each = for_singles / np.sqrt(single.sum()), for_pairs / np.sqrt((~single).sum())
        return np.asarray(np.where(single, *each), dtype=np.float64)

    @classmethod
    def within(cls, width: int, *, tenants: bool = True, **chosen: Any) -> GradedSettings:
        """Return settings whose spans fit embeddings of a width.

        Examples
        --------
        >>> narrow = GradedSettings.within(64)
        >>> GradedSettings.within(768).band_end, narrow.band_start, narrow.band_end
        (320, 8, 64)
        >>> GradedSettings.within(768, tenants=False).pairs
        16
        """
        if width < _NARROWEST:
            raise InputError(f"embeddings of width {width} are too narrow: the graded mark needs {_NARROWEST}")
        start, pair_span = min(64, width // 8), min(16, width // 4)
        # The provider alone has the carriers of both groups.
        singles, pairs = (4, 8) if tenants else (8, 16)
        fitting = {
            "singles": singles,
            "pairs": pairs,
            "tenant_singles": singles if tenants else 0,
            "tenant_pairs": pairs if tenants else 0,
            "pair_planes": pair_span,
            "single_start": start,
            "single_end": max(min(128, width // 4), start + singles),
            "pair_span": pair_span,
            "band_start": start,
            "band_end": min(320, width),
        }
        return cls(**{**fitting, **chosen})

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> GradedSettings:
        """Read settings from a key file's document, which may hold more than this version knows."""
        return from_known(cls, document)

    def describe(self) -> dict[str, object]:
        return {"marks_tenants": self.tenant_singles + self.tenant_pairs > 0, **asdict(self)}

    # ---- what the corpus has

    def pool_size(self) -> int:
        """Return how many candidates a key has that lacks nothing."""
        return POOL - POOL % self.lists

    def list_size(self, pool_size: int) -> int:
        """Return how many candidates each carrier's list has."""
        size = pool_size // self.lists
        if size < 2:
            raise InputError(f"a pool of {pool_size} texts has no two candidates for each of {self.lists} lists")
        return size

    def divided(self, texts: int, reservoir: int) -> tuple[int, int]:
        """Return how many of the corpus's distinct texts are candidates and how many are probes.

        Examples
        --------
        >>> GradedSettings().divided(10_000, RESERVOIR), GradedSettings().divided(2_000, RESERVOIR)
        ((1536, 4096), (540, 1460))
        """
        least = self.lists * LEAST_LIST + LEAST_PROBES
        if texts < least:
            raise InputError(
                f"the corpus has {texts} distinct texts, but a key needs at least {least}: "
                f"{LEAST_LIST} candidates for each of {self.lists} carriers, and {LEAST_PROBES} probes; add texts"
            )
        whole = self.pool_size()
        if texts >= whole + reservoir:
            return whole, reservoir
        size = min(max(int(_CANDIDATES * texts / self.lists), LEAST_LIST), whole // self.lists)
        pool = size * self.lists
        return pool, min(reservoir, texts - pool)
