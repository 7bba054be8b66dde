"""How well a copy learnt: one number against what it was taught, one against what the provider knows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from regionmarker.benchmark.utility import row_cosines, spearman
from regionmarker.embeddings import as_floats, normalised
from regionmarker.errors import InputError
from regionmarker.protocols import AnyArray, Doubles, Floats

PAIRS = 20_000
"""How many pairs of texts the correlation is taken over: its standard error is then below 0.01."""


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

    def __str__(self) -> str:
        whom = {"clean": "the clean provider", "targets": "its own targets"}[self.reference]
        return (
            f"fidelity {self.cosine:.3f} on {self.texts} held-out texts, "
            f"Spearman {self.correlation:.3f} of pairwise cosines with {whom}"
        )


def fidelity(
    answers: Floats, targets: Floats, *, clean: Floats | None = None, pairs: int = PAIRS, seed: int = 0
) -> Fidelity:
    """Compare a copy's answers on held-out texts with its training targets for them, both (n, D').

    Parameters
    ----------
    answers, targets
        The copy's, and what it would have been taught.
    clean
        The clean provider's vectors of the same texts, (n, D) of any width.
    pairs, seed
        How many pairs of texts to draw for the correlation; all of them where there are no more.

    Examples
    --------
    >>> rows = np.eye(4, dtype=np.float32)
    >>> fidelity(rows, rows).cosine
    1.0
    """
    answers = normalised(as_floats(answers, what="answers"))
    targets = normalised(as_floats(targets, what="targets"))
    if answers.shape != targets.shape:
        raise InputError(f"answers have shape {answers.shape}, but their targets {targets.shape}")
    if len(answers) == 0:
        raise InputError("fidelity needs at least one held-out text")
    reference = targets if clean is None else clean
    return Fidelity(
        cosine=float(row_cosines(answers, targets).mean()),
        correlation=pair_correlation(answers, reference, pairs=pairs, seed=seed),
        reference="targets" if clean is None else "clean",
        texts=len(answers),
    )


def pair_correlation(left: Floats, right: Floats, *, pairs: int = PAIRS, seed: int = 0) -> float:
    """Return the Spearman correlation of the pairwise cosines of two sets of vectors of the same texts.

    The widths may differ, and rotating either set changes nothing: only what the vectors say about each other counts.

    Examples
    --------
    >>> rows = np.random.default_rng(0).standard_normal((20, 5)).astype(np.float32)
    >>> round(pair_correlation(rows, rows[:, ::-1]), 6)
    1.0
    """
    left, right = normalised(as_floats(left)), normalised(as_floats(right))
    if len(left) != len(right):
        raise InputError(f"{len(left)} vectors cannot be paired with {len(right)}: give the same texts in both")
    if len(left) < 3:
        return float("nan")
    first, second = _pairs(len(left), pairs, seed)
    return spearman(_cosines(left, first, second), _cosines(right, first, second))


def _pairs(count: int, pairs: int, seed: int) -> tuple[AnyArray, AnyArray]:
    if count * (count - 1) // 2 <= pairs:
        first, second = np.triu_indices(count, k=1)
        return first, second
    rng = np.random.default_rng(seed)
    first = rng.integers(count, size=pairs)
    return first, (first + rng.integers(1, count, size=pairs)) % count  # never itself


def _cosines(rows: Floats, first: AnyArray, second: AnyArray) -> Doubles:
    return np.asarray(np.einsum("ij,ij->i", rows[first], rows[second], dtype=np.float64))
