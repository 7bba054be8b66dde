"""What the provider wants, and what may be chosen to get it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from regionmarker.errors import InputError
from regionmarker.marking.parameters import DEFAULT_SUBSPACE
from regionmarker.specs import check_range


@dataclass(frozen=True)
class Goals:
    """What is wanted of a key.

    Attributes
    ----------
    utility_loss
        The share of a text's ten nearest neighbours that marking may change, on average.
    fidelity
        The stealer to be caught: the mean cosine of its answers to what it was served.
    query_share
        The share of the corpus that this stealer asks.
    level
        The false-positive rate of a verdict.
    power
        The share of such stealers that shall be caught.

    Examples
    --------
    >>> Goals(fidelity=1.5)
    Traceback (most recent call last):
    ...
    regionmarker.errors.InputError: fidelity is 1.5, but must lie in (0.0, 1.0)
    """

    utility_loss: float = 0.1
    fidelity: float = 0.8
    query_share: float = 0.5
    level: float = 1e-3
    power: float = 0.9

    def __post_init__(self) -> None:
        for name in ("utility_loss", "fidelity", "level", "power"):
            check_range(name, getattr(self, name), 0.0, 1.0, open_left=True, open_right=True)
        check_range("query_share", self.query_share, 0.0, 0.8, open_left=True)


@dataclass(frozen=True, order=True)
class Candidate:
    """One choice of settings.

    Examples
    --------
    >>> str(Candidate(4, 0.2, 0.2, 32)), Candidate(4, 0.2, 0.2, 32).regions
    ('dimension 4, ratio 0.2, strength 0.2, subspace 32', 3)
    """

    dimension: int
    ratio: float
    strength: float
    subspace: int

    @property
    def regions(self) -> int:
        return int(max(1, round(self.ratio * 2**self.dimension)))

    def __str__(self) -> str:
        return f"dimension {self.dimension}, ratio {self.ratio:g}, strength {self.strength:g}, subspace {self.subspace}"


@dataclass(frozen=True)
class Choices:
    """What is tried; the first subspace first, and the others at the settings that do best there."""

    dimensions: tuple[int, ...] = (3, 4, 5)
    ratios: tuple[float, ...] = (0.2, 0.4)
    strengths: tuple[float, ...] = (0.1, 0.15, 0.2, 0.3)
    subspaces: tuple[int, ...] = (DEFAULT_SUBSPACE, 16, 64)

    def __post_init__(self) -> None:
        for name in ("dimensions", "ratios", "strengths", "subspaces"):
            if not getattr(self, name) or len(set(getattr(self, name))) != len(getattr(self, name)):
                raise InputError(f"the {name} to try must be at least one, and each of them once")
        for dimension in self.dimensions:
            check_range("dimension", dimension, 1, 8)
        for ratio in self.ratios:
            check_range("ratio", ratio, 0.0, 1.0, open_left=True)
        for strength in self.strengths:
            check_range("strength", strength, 0.0, 1.0, open_left=True, open_right=True)

    def candidates(self, width: int) -> Iterator[Candidate]:
        """Yield the candidates of the first subspace, for vectors of a width, such that one key follows another."""
        for dimension, ratio, strength in product(self.dimensions, self.ratios, self.strengths):
            yield Candidate(dimension, ratio, strength, within(self.subspaces[0], dimension, width))


def within(subspace: int, dimension: int, width: int) -> int:
    """Return the subspace, no less than the dimension and no more than the width.

    Examples
    --------
    >>> within(64, 4, 48), within(2, 4, 48)
    (48, 4)
    """
    return min(max(subspace, dimension), width)
