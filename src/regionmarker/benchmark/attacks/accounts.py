"""Several accounts at one provider: whatever differs between their answers is a mark, for the texts are the same.

Those who ask again, as several accounts, come first in a list. Where a defense serves all accounts alike, nothing
differs and nothing is gained; a grid's column ``attack_cosine`` then says 1. ``clean`` is the upper bound: who has
vectors from before the mark has all of the mark in the differences.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from regionmarker.benchmark.attacks.base import WholeDataAttack, check_rows_of, with_directions
from regionmarker.benchmark.attacks.cse import leading_directions, without
from regionmarker.benchmark.protocols import StolenData
from regionmarker.errors import InputError
from regionmarker.measures import row_cosines
from regionmarker.vectors import AnyArray, Doubles, Floats, as_floats

WAYS = ("directions", "carriers")
_ENERGY = 1e-3  # of the largest difference: below it, a direction is rounding


@dataclass(frozen=True)
class SeveralAccounts(WholeDataAttack):
    """Base: an attack that asks every text as two accounts, or as three.

    Attributes
    ----------
    first, second, third
        The accounts; without a third there are two.
    """

    comes_first: ClassVar[bool] = True

    first: str = "first"
    second: str = "second"
    third: str = ""

    def __post_init__(self) -> None:
        for name in {name for name in self._names() if self._names().count(name) > 1}:
            self._check(False, f"the two accounts must differ, but both are {name!r}")

    def _names(self) -> list[str]:
        return [self.first, self.second, *([self.third] if self.third else [])]

    def answers(self, stolen: StolenData) -> list[Floats]:
        check_rows_of(stolen, 1, attack=self.name)
        return [as_floats(stolen.ask(stolen.texts, name), what="served") for name in self._names()]


@dataclass(frozen=True)
class Compare(SeveralAccounts):
    """Drop the rows that the accounts are served differently, and train on the first account's answers to the rest.

    Attributes
    ----------
    tolerance
        Rows differ when 1 less their cosine is above this: float16 rounding stays below, a mark lies far above.
    share
        Where a mark is in every row, keep this share of the rows instead, those that differ least; 0: by tolerance.

    Examples
    --------
    >>> def service(texts, *, account=""):
    ...     return np.array([[1.0, 0.5 * (text == "b" and account == "second")] for text in texts], dtype=np.float32)
    >>> Compare().apply(StolenData(("a", "b", "c"), service("abc"), service)).texts
    ('a', 'c')
    """

    spec: ClassVar[str] = "compare"

    tolerance: float = 1e-5
    share: float = 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check(0 < self.tolerance < 1, f"the tolerance must lie between 0 and 1, but is {self.tolerance}")
        self._check(0 <= self.share < 1, f"the share must be at least 0 and below 1, but is {self.share}")

    def apply(self, stolen: StolenData, /) -> StolenData:
        first, *others = self.answers(stolen)
        alike = np.min([row_cosines(first, other) for other in others], axis=0)  # (n,)
        same = alike >= 1 - self.tolerance
        if self.share:
            same[np.argsort(-alike, kind="stable")[: max(1, round(self.share * len(alike)))]] = True
        if not same.any():
            raise InputError(
                f"{self.name} leaves no row: the accounts are served differently throughout; "
                "share=0.5 keeps the half that differs least"
            )
        return stolen.with_vectors(first).kept(same)


@dataclass(frozen=True)
class Average(SeveralAccounts):
    """Train on the mean of what the accounts are served: marks that differ are weakened to a half, or a third.

    Examples
    --------
    >>> def service(texts, *, account=""):
    ...     return np.array([[1.0, 1.0 * (account == "second")] for text in texts], dtype=np.float32)
    >>> Average().apply(StolenData(("a",), service("a"), service)).vectors.round(3)
    array([[0.894, 0.447]], dtype=float32)
    """

    spec: ClassVar[str] = "average"

    def apply(self, stolen: StolenData, /) -> StolenData:
        answers = self.answers(stolen)
        mean = np.mean([rows.astype(np.float64) for rows in answers], axis=0)
        return with_directions(stolen.with_vectors(answers[0]), mean, attack=self.name)


@dataclass(frozen=True)
class Differences(SeveralAccounts):
    """Take out of the first account's vectors whatever its differences to the other accounts show.

    Attributes
    ----------
    by
        ``directions``: the span of the differences is projected out. ``carriers``: the leading left singular vectors,
        one number per text, are regressed out; where tenants share carriers, these are the carriers themselves.
    components
        How many directions or carriers, at the most.

    Examples
    --------
    >>> def service(texts, *, account=""):
    ...     return np.array([[1.0, 2.0, 0.3 * (account == "second")] for text in texts], dtype=np.float32)
    >>> Differences().apply(StolenData(("a",), service("a", account="second"), service)).vectors.round(2)
    array([[0.45, 0.89, 0.  ]], dtype=float32)
    """

    spec: ClassVar[str] = "differences"

    by: str = "directions"
    components: int = 12

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check(self.by in WAYS, f"by must be {' or '.join(WAYS)}, but is {self.by!r}")
        self._check(self.components >= 1, f"components must be at least 1, but is {self.components}")

    def apply(self, stolen: StolenData, /) -> StolenData:
        first, *others = self.answers(stolen)
        gaps = [other.astype(np.float64) - first for other in others]  # (n, D) each
        rows = _without_gaps(first, gaps, self.by, self.components)
        return with_directions(stolen.with_vectors(first), rows, attack=self.name)


@dataclass(frozen=True)
class CleanPairs(WholeDataAttack):
    """Take out whatever differences to clean vectors of the same texts show: the upper bound of what a thief can hold.

    Attributes
    ----------
    share
        Of the texts whose clean vectors the thief has, from before the mark; only these show differences.
    components
        How many directions are projected out, at the most.
    seed
        Which texts.

    Examples
    --------
    >>> from regionmarker.encoders.base import LookupEncoder
    >>> clean = np.array([[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], dtype=np.float32)
    >>> served = clean + np.array([0.0, 0.0, 0.2], dtype=np.float32)
    >>> stolen = StolenData(("a", "b"), served, clean=LookupEncoder("before", ("a", "b"), clean))
    >>> CleanPairs(1.0).apply(stolen).vectors.round(2)[0].tolist()
    [1.0, 0.0, 0.0]
    """

    spec: ClassVar[str] = "pairs"

    share: float = 0.2
    components: int = 32
    seed: int = 0

    def __post_init__(self) -> None:
        self._check(0 < self.share <= 1, f"the share must be above 0 and at most 1, but is {self.share}")
        self._check(self.components >= 1, f"components must be at least 1, but is {self.components}")
        self._check(self.seed >= 0, f"the seed must not be negative, but is {self.seed}")

    def apply(self, stolen: StolenData, /) -> StolenData:
        check_rows_of(stolen, 1, attack=self.name)
        count = max(1, round(self.share * len(stolen)))
        places = np.sort(np.random.default_rng(self.seed).permutation(len(stolen))[:count])
        clean = as_floats(stolen.clean_encoder().encode([stolen.texts[place] for place in places]), what="clean")
        if clean.shape[1] != stolen.vectors.shape[1]:
            raise InputError(f"{self.name} needs clean and marked vectors of one width: it comes first in a list")
        gap = stolen.vectors[places].astype(np.float64) - clean
        return with_directions(stolen, _without_span(stolen.vectors, gap, self.components), attack=self.name)


def _without_gaps(rows: Floats, gaps: list[Doubles], by: str, count: int) -> Doubles:
    if by == "directions":
        return _without_span(rows, np.vstack(gaps), count)
    left, sizes, _ = np.linalg.svd(np.hstack(gaps), full_matrices=False)  # (n, r): what the carriers say of each text
    carriers = left[:, : min(count, _rank(sizes))]
    carriers = np.linalg.qr(carriers - carriers.mean(axis=0))[0]  # what all rows share is no carrier's doing
    return np.asarray(rows - carriers @ (carriers.T @ rows))


def _without_span(rows: Floats, gap: Doubles, count: int) -> Doubles:
    """Project out the leading directions of differences (m, D); where nothing differs, nothing."""
    sizes = np.linalg.svd(gap, compute_uv=False)
    return without(rows, leading_directions(gap, min(count, _rank(sizes))))


def _rank(sizes: AnyArray) -> int:
    largest = float(sizes.max(initial=0))
    return int((sizes > max(_ENERGY * largest, 1e-3)).sum())
