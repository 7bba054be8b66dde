"""What the researcher's parts expect of each other: any object with the right methods will do.

    Defense       clean embeddings in, served ones out; later, a suspect in, a finding out
    DataAttack    what a thief holds in, what it trains on out
    Stealer       texts and targets in, a stolen model out
    ModelAttack   a stolen model in, a modified one out

Other packages add their own by entry points of the groups ``regionmarker.defenses``, ``regionmarker.attacks`` and
``regionmarker.stealers``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol, Self, runtime_checkable

import numpy as np

from regionmarker.errors import InputError
from regionmarker.vectors import AnyArray, Doubles, Encoder, Floats, Integers, as_floats
from regionmarker.verification.decoy_test import DecoyTest
from regionmarker.verification.list_test import ListTest
from regionmarker.verification.paper_statistics import PaperStatistics


class Service(Protocol):
    """The provider's API as a thief sees it."""

    def __call__(self, texts: Sequence[str], /, *, account: str = "") -> Floats:
        """Answer with served vectors (n, D); ``account`` is whose API key asks."""


@dataclass(frozen=True, eq=False)
class StolenData:
    """Texts, the vectors to train on, and what else the thief can reach.

    Attributes
    ----------
    texts
        One per row.
    vectors
        (n, D') float32, rows of unit length: what was served, or what attacks have made of it so far.
    service
        Asks the provider again, for attacks that need more answers; None where the thief no longer can.
    public
        A public encoder that the thief has; None where attacks must do without.
    clean
        The unmarked provider, which a customer from before the mark has vectors of; None where nobody has any.

    Examples
    --------
    >>> stolen = StolenData(("a", "b", "c"), np.eye(3, dtype=np.float32))
    >>> stolen.kept(np.array([True, False, True])).texts
    ('a', 'c')
    """

    texts: tuple[str, ...]
    vectors: Floats
    service: Service | None = None
    public: Encoder | None = None
    clean: Encoder | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "texts", tuple(self.texts))
        object.__setattr__(self, "vectors", as_floats(self.vectors, what="served"))
        if len(self.texts) != len(self.vectors):
            raise InputError(f"there are {len(self.texts)} texts but {len(self.vectors)} vectors: give one for each")

    def __len__(self) -> int:
        return len(self.texts)

    def with_vectors(self, vectors: Floats) -> Self:
        """Return the same stolen data with other vectors to train on, (n, D')."""
        return replace(self, vectors=vectors)

    def kept(self, rows: AnyArray) -> Self:
        """Return the stolen data with some rows only: a mask (n,) or places (k,)."""
        places = np.flatnonzero(rows) if rows.dtype == bool else rows
        return replace(self, texts=tuple(self.texts[place] for place in places), vectors=self.vectors[places])

    def ask(self, texts: Sequence[str], account: str = "") -> Floats:
        """Ask the provider again; an error where the thief cannot."""
        if self.service is None:
            raise InputError("this attack asks the provider again: give the stolen data a service")
        return self.service(list(texts), account=account)

    def public_encoder(self) -> Encoder:
        """Return the thief's own encoder; an error where there is none."""
        if self.public is None:
            raise InputError("this attack needs a public encoder: give the stolen data one")
        return self.public

    def clean_encoder(self) -> Encoder:
        """Return the unmarked provider; an error where the thief has nothing of it."""
        if self.clean is None:
            raise InputError("this attack needs clean vectors of the same texts: give the stolen data clean")
        return self.clean


@dataclass(frozen=True)
class Finding:
    """What a verification says; the scores and the choice print as nothing, for they are the secret.

    Attributes
    ----------
    p_value
        The decoy test's: the chance of an innocent suspect looking so guilty; NaN where it cannot be applied.
    published
        What the scheme's own paper would report. Its p-value is none: innocents do not make it uniform.
    scores
        The decoy test's z (R, M), computed without sight of the secret choice.
    chosen
        The secret choice: a column of ``scores`` for each of its rows.
    weights
        Of each row in the total, where every row has candidates of its own; None where all rows share one pool.
    """

    p_value: float
    published: PaperStatistics
    scores: Doubles = field(repr=False, compare=False)
    chosen: tuple[int, ...] = field(repr=False)
    weights: Doubles | None = field(default=None, repr=False, compare=False)

    def p_values(self, choices: Integers) -> Doubles:
        """Return the p-value that each choice of columns (T, R) would have, (T,)."""
        if self.weights is None:
            return DecoyTest(self.scores).p_values(choices)
        places = choices + self.scores.shape[1] * np.arange(len(self.scores))
        return ListTest(self.scores, self.weights).p_values(places)

    @classmethod
    def of(cls, scores: Doubles, chosen: tuple[int, ...], published: PaperStatistics) -> Finding:
        """Compare the secret choice with all that might have been drawn; scores that are NaN throughout give NaN."""
        applies = bool(np.isfinite(scores).any())
        return cls(DecoyTest(scores).p_value(chosen) if applies else np.nan, published, scores, chosen)


@runtime_checkable
class Defense(Protocol):
    """A scheme that marks what is served and recognises what was trained on it."""

    @property
    def name(self) -> str:
        """The spec that loads it again."""

    def fit(self, texts: Sequence[str], embeddings: Floats, /) -> Self:
        """Make the secret from a corpus and its clean embeddings (n, D)."""

    def transform(self, embeddings: Floats, texts: Sequence[str], /, *, account: str = "") -> Floats:
        """Return what is served for these texts, (n, D') float32, rows of unit length."""

    def probes(self) -> Sequence[str]:
        """Return every text that :meth:`verify` needs an answer to."""

    def verify(self, suspect: Encoder, /) -> Finding:
        """Ask the suspect, and say whether it was trained on marked vectors."""


@runtime_checkable
class DataAttack(Protocol):
    """What a thief does to the stolen data before training on it.

    Examples
    --------
    >>> from regionmarker.benchmark.attacks import Shift
    >>> isinstance(Shift(100), DataAttack)
    True
    """

    @property
    def name(self) -> str:
        """The spec that loads it again, where there is one."""

    def apply(self, stolen: StolenData, /) -> StolenData:
        """Return what is trained on: other vectors, fewer rows, more rows; the stolen data itself stays as it is."""


@dataclass(frozen=True)
class Fidelity:
    """The fidelity of a copy, measured on texts that it was not trained on.

    Examples
    --------
    >>> print(Fidelity(cosine=0.8412, correlation=0.7931, reference="clean", texts=500))
    fidelity 0.841 on 500 held-out texts, Spearman 0.793 of pairwise cosines with the clean provider
    """

    cosine: float
    """Mean cosine to the copy's own training targets: this is what "fidelity" means everywhere."""
    correlation: float
    """Spearman correlation of pairwise cosines with those of ``reference``; NaN for fewer than three texts."""
    reference: str
    """``"clean"`` for the clean provider, ``"targets"`` where its vectors were not at hand."""
    texts: int
    """How many texts were held out."""
    centred: float = float("nan")
    """The mean cosine after each side's mean was taken away: a constant answer, which copies a crowded provider well
    by the plain cosine, gets none of it."""
    to_clean: float = float("nan")
    """The same to the clean provider's vectors instead of the targets: what an attack on the targets has cost. NaN
    where there are none of this width. Of rotated targets it is near 0, though a rotation costs nothing."""

    def __str__(self) -> str:
        whom = {"clean": "the clean provider", "targets": "its own targets"}[self.reference]
        return (
            f"fidelity {self.cosine:.3f} on {self.texts} held-out texts, "
            f"Spearman {self.correlation:.3f} of pairwise cosines with {whom}"
        )


@runtime_checkable
class StolenModel(Encoder, Protocol):
    """An encoder that was trained on another's answers."""

    @property
    def fidelity(self) -> Fidelity:
        """How well it learnt, measured on texts that it was not trained on."""


@runtime_checkable
class Stealer(Protocol):
    """Learns to answer as the targets do.

    Examples
    --------
    >>> from regionmarker.benchmark.stealers import TokenBag
    >>> isinstance(TokenBag(), Stealer)
    True
    """

    @property
    def name(self) -> str:
        """What tables call it."""

    def steal(self, texts: Sequence[str], targets: Floats, /, *, clean: Floats | None = None) -> StolenModel:
        """Train on ``targets`` (n, D'); ``clean`` (n, D) is for the report of fidelity and never learnt from."""


@runtime_checkable
class ModelAttack(Protocol):
    """What a thief does to a model after it was stolen: disguises it, or trains it on.

    Examples
    --------
    >>> from regionmarker.benchmark.attacks import Shift
    >>> isinstance(Shift(100), ModelAttack)
    True
    """

    @property
    def name(self) -> str:
        """The spec that loads it again."""

    def modify(self, model: Encoder, /) -> Encoder:
        """Return the modified model; the model itself stays as it is."""


class Objective(Protocol):
    """A loss over a model's answers to a batch."""

    @property
    def views(self) -> int:
        """How many answers to each text it wants, each with its own dropout."""

    def step(self, answers: Sequence[Floats], rows: Integers, /) -> tuple[float, list[Floats]]:
        """Return the loss and its derivative by each view (b, D') of the texts ``rows`` (b,)."""


@runtime_checkable
class Trainable(Protocol):
    """A stolen model that can be trained on, objective in hand."""

    def train_on(
        self,
        texts: Sequence[str],
        objective: Objective,
        /,
        *,
        epochs: int,
        batch_size: int,
        seed: int,
        learning_rate: float | None = None,
    ) -> Encoder:
        """Return a copy that was trained on; None is the learning rate that fits such a model."""
