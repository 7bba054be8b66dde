"""Two accounts at one provider: whatever differs between their answers is a mark, for the texts are the same.

Both attacks ask the provider again, as two accounts, so they come first in a list.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from regionmarker.benchmark.attacks.base import WholeDataAttack, check_rows_of, with_directions
from regionmarker.benchmark.protocols import StolenData
from regionmarker.errors import InputError
from regionmarker.measures import row_cosines
from regionmarker.vectors import Floats


@dataclass(frozen=True)
class TwoAccounts(WholeDataAttack):
    """Base: an attack that asks every text as two accounts.

    Attributes
    ----------
    first, second
        The accounts.
    """

    first: str = "first"
    second: str = "second"

    def __post_init__(self) -> None:
        self._check(self.first != self.second, f"the two accounts must differ, but both are {self.first!r}")

    def answers(self, stolen: StolenData) -> tuple[Floats, Floats]:
        check_rows_of(stolen, 1, attack=self.name)
        return stolen.ask(stolen.texts, self.first), stolen.ask(stolen.texts, self.second)


@dataclass(frozen=True)
class Compare(TwoAccounts):
    """Drop the rows that two accounts are served differently, and train on the first account's answers to the rest.

    Attributes
    ----------
    tolerance
        Rows differ when 1 less their cosine is above this: float16 rounding stays below, a mark lies far above.

    Examples
    --------
    >>> def service(texts, *, account=""):
    ...     return np.array([[1.0, 0.5 * (text == "b" and account == "second")] for text in texts], dtype=np.float32)
    >>> Compare().apply(StolenData(("a", "b", "c"), service("abc"), service)).texts
    ('a', 'c')
    """

    spec: ClassVar[str] = "compare"

    tolerance: float = 1e-5

    def __post_init__(self) -> None:
        super().__post_init__()
        self._check(0 < self.tolerance < 1, f"the tolerance must lie between 0 and 1, but is {self.tolerance}")

    def apply(self, stolen: StolenData, /) -> StolenData:
        first, second = self.answers(stolen)
        same = row_cosines(first, second) >= 1 - self.tolerance
        if not same.any():
            raise InputError(f"{self.name} leaves no row: the two accounts are served differently throughout")
        return stolen.with_vectors(first).kept(same)


@dataclass(frozen=True)
class Average(TwoAccounts):
    """Train on the mean of what two accounts are served: marks that differ are weakened by half.

    Examples
    --------
    >>> def service(texts, *, account=""):
    ...     return np.array([[1.0, 1.0 * (account == "second")] for text in texts], dtype=np.float32)
    >>> Average().apply(StolenData(("a",), service("a"), service)).vectors.round(3)
    array([[0.894, 0.447]], dtype=float32)
    """

    spec: ClassVar[str] = "average"

    def apply(self, stolen: StolenData, /) -> StolenData:
        first, second = self.answers(stolen)
        mean = (first.astype(np.float64) + second) / 2
        return with_directions(stolen.with_vectors(first), mean, attack=self.name)
