"""What the provider wants, and what may be chosen to get it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from regionmarker.errors import InputError
from regionmarker.marks.graded_settings import LEAST_PROBES
from regionmarker.specs import check_range
from regionmarker.verification.questions import DEFAULT_BUDGET

KEPT = (0.97, 0.95, 0.93, 0.90)


@dataclass(frozen=True)
class Goals:
    """What is wanted of a key.

    Attributes
    ----------
    fidelity
        The stealer to be caught: the mean cosine of its answers to the clean vectors, the mean of each side taken out.
    budget
        Texts that a verdict asks.
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

    fidelity: float = 0.7
    budget: int = DEFAULT_BUDGET
    level: float = 1e-3
    power: float = 0.9

    def __post_init__(self) -> None:
        for name in ("fidelity", "level", "power"):
            check_range(name, getattr(self, name), 0.0, 1.0, open_left=True, open_right=True)
        if self.budget < LEAST_PROBES:
            raise InputError(f"budget is {self.budget}, but a verdict asks at least {LEAST_PROBES} texts")


@dataclass(frozen=True, order=True)
class Choice:
    """One way to make the key.

    Examples
    --------
    >>> str(Choice(0.95, tenants=False)), Choice(0.95, tenants=False).options
    ('kept 0.95, without tenants', '--kept 0.95 --no-tenants')
    """

    kept: float
    tenants: bool

    def __str__(self) -> str:
        return f"kept {self.kept:g}, {'with' if self.tenants else 'without'} tenants"

    @property
    def options(self) -> str:
        """What ``keygen`` is told."""
        return f"--kept {self.kept:g}" + ("" if self.tenants else " --no-tenants")


@dataclass(frozen=True)
class Choices:
    """What is tried: every share of neighbours to keep, with marks for tenants and without."""

    kept: tuple[float, ...] = KEPT
    tenants: tuple[bool, ...] = (True, False)

    def __post_init__(self) -> None:
        for name in ("kept", "tenants"):
            if not getattr(self, name) or len(set(getattr(self, name))) != len(getattr(self, name)):
                raise InputError(f"the values of {name} to try must be at least one, and each of them once")
        for kept in self.kept:
            check_range("kept", kept, 0.5, 0.999)

    def __iter__(self) -> Iterator[Choice]:
        """Yield the choices, the one that costs least first."""
        for kept in sorted(self.kept, reverse=True):
            yield from (Choice(kept, tenants) for tenants in sorted(self.tenants, reverse=True))
