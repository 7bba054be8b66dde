"""What the researcher's parts expect of each other: any object with the right methods will do.

    Defense   clean embeddings in, served ones out; later, a suspect in, a finding out
    Attack    served embeddings and their texts in, training targets out
    Stealer   texts and targets in, a stolen model out

Other packages add attacks by entry points of the group ``regionmarker.attacks``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol, Self, TypeAlias, runtime_checkable

from regionmarker.protocols import Encoder, Floats

if TYPE_CHECKING:
    from regionmarker.benchmark.stealers.fidelity import Fidelity

Progress: TypeAlias = Callable[[int, int], None]
"""Called with the number of steps done and the number of steps in all."""


class Finding(Protocol):
    """What a verification says; a verdict is one."""

    @property
    def p_value(self) -> float:
        """The probability of an innocent suspect looking so guilty."""
        ...


@runtime_checkable
class Defense(Protocol):
    """A scheme that marks what is served and recognises what was trained on it."""

    @property
    def name(self) -> str:
        """What tables call it."""
        ...

    def fit(self, texts: Sequence[str], embeddings: Floats, /) -> Self:
        """Make the secret from a corpus and its clean embeddings (n, D)."""
        ...

    def transform(self, embeddings: Floats, texts: Sequence[str], /) -> Floats:
        """Return what is served for these texts, (n, D') float32, rows of unit length."""
        ...

    def verify(self, suspect: Encoder, /) -> Finding:
        """Ask the suspect, and say whether it was trained on marked vectors."""
        ...


@runtime_checkable
class Attack(Protocol):
    """What a thief does to served vectors before training on them.

    Examples
    --------
    >>> from regionmarker.benchmark.attacks import Shift
    >>> isinstance(Shift(100), Attack)
    True
    """

    @property
    def name(self) -> str:
        """The spec that loads it again, where there is one."""
        ...

    def __call__(self, served: Floats, texts: Sequence[str], /) -> Floats:
        """Turn served vectors (n, D) into training targets (n, D') float32, rows of unit length."""
        ...


@runtime_checkable
class StolenModel(Encoder, Protocol):
    """An encoder that was trained on another's answers."""

    @property
    def fidelity(self) -> Fidelity:
        """How well it learnt, measured on texts that it was not trained on."""
        ...


@runtime_checkable
class Stealer(Protocol):
    """A thief: learns to answer as the targets do.

    Examples
    --------
    >>> from regionmarker.benchmark.stealers import TokenBag
    >>> isinstance(TokenBag(), Stealer)
    True
    """

    @property
    def name(self) -> str:
        """What tables call it."""
        ...

    def steal(self, texts: Sequence[str], targets: Floats, /, *, clean: Floats | None = None) -> StolenModel:
        """Train on ``targets`` (n, D'); ``clean`` (n, D) is for the report of fidelity and never learnt from."""
        ...
