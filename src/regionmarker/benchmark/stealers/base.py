"""What all stealers share: the training data, checked and divided, and how well a copy learnt.

Two numbers say how well: one against what the copy was taught, one against what the provider knows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from regionmarker.benchmark.protocols import Fidelity
from regionmarker.encoders.base import check_texts
from regionmarker.errors import InputError
from regionmarker.measures import row_cosines, spearman
from regionmarker.vectors import AnyArray, Doubles, Floats, Integers, as_floats, normalised

SMALLEST = 20
"""Fewer distinct texts than these teach nothing, and leave nothing to measure with."""

PAIRS = 20_000
"""How many pairs of texts the correlation is taken over: its standard error is then below 0.01."""


@dataclass(frozen=True)
class TrainingSplit:
    """Row numbers of the parts: trained on, used to choose settings or to stop, and used only to measure."""

    train: Integers
    steer: Integers
    measure: Integers


def check_training_data(texts: Sequence[str], targets: object) -> tuple[list[str], Floats]:
    """Return texts and their targets as unit rows, or say what is wrong with them.

    Examples
    --------
    >>> check_training_data(["a text"], [[3.0, 4.0], [1.0, 0.0]])
    Traceback (most recent call last):
    ...
    regionmarker.errors.InputError: there are 1 texts but 2 targets: give one for each
    """
    checked, rows = check_texts(texts), normalised(as_floats(targets, what="targets"))
    if len(checked) != len(rows):
        raise InputError(f"there are {len(checked)} texts but {len(rows)} targets: give one for each")
    return checked, rows


def check_clean(clean: object, count: int, held: AnyArray | None = None) -> Floats | None:
    """Return the clean vectors that the report is measured against, if there are any: all, or the rows held out."""
    if clean is None:
        return None
    rows = as_floats(clean, what="clean")
    if len(rows) != count:
        raise InputError(f"there are {count} targets but {len(rows)} clean vectors: give one for each, or none")
    return rows if held is None else rows[held]


def split(count: int, *, held_out: float, seed: int, texts: Sequence[str] | None = None) -> TrainingSplit:
    """Divide rows at random; a text that comes more than once is on one side only.

    Parameters
    ----------
    count
        How many rows there are.
    held_out
        The share of distinct texts that are not trained on. Half of them steer, half measure: a number that was
        used to choose the model would flatter it.
    seed
        The same seed and texts give the same parts.
    texts
        The texts of the rows, where they are known.

    Examples
    --------
    >>> parts = split(100, held_out=0.1, seed=0)
    >>> len(parts.train), len(parts.steer), len(parts.measure)
    (90, 5, 5)
    """
    if not 0 < held_out < 1:
        raise InputError(f"held_out must lie between 0 and 1, but is {held_out}")
    groups = np.arange(count) if texts is None else _numbered(texts)  # (n,)
    distinct = int(groups.max(initial=-1)) + 1
    if distinct < SMALLEST:
        raise InputError(f"a stealer needs at least {SMALLEST} distinct texts to train on, but there are {distinct}")
    order = np.random.default_rng(seed).permutation(distinct)
    half = max(1, round(distinct * held_out / 2))
    part = np.zeros(distinct, dtype=np.int64)
    part[order[:half]], part[order[half : 2 * half]] = 1, 2
    train, steer, measure = (np.flatnonzero(part[groups] == number) for number in range(3))
    if len(train) == 0:
        raise InputError(f"held_out={held_out} leaves no text of {distinct} to train on: make it smaller")
    return TrainingSplit(train, steer, measure)


def _numbered(texts: Sequence[str]) -> Integers:
    """Give equal texts equal numbers, in order of appearance; (n,)."""
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(text, len(numbers)) for text in texts], dtype=np.int64)


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
        centred=centred_cosine(answers, targets),
        to_clean=centred_cosine(answers, clean) if clean is not None and clean.shape == answers.shape else np.nan,
    )


def centred_cosine(left: Floats, right: Floats) -> float:
    """Return the mean cosine of rows (n, D) after each side's mean was taken away; NaN for fewer than three rows.

    Examples
    --------
    >>> rows = np.random.default_rng(0).standard_normal((50, 8)).astype(np.float32) + 9
    >>> round(centred_cosine(rows, rows), 6), abs(centred_cosine(rows, rows[::-1])) < 0.1
    (1.0, True)
    """
    if len(left) < 3:
        return float("nan")
    (left, right) = (rows - rows.mean(axis=0, dtype=np.float64) for rows in (left, right))
    lengths = np.sqrt(np.einsum("ij,ij->i", left, left) * np.einsum("ij,ij->i", right, right))
    products = np.einsum("ij,ij->i", left, right)
    return float(np.divide(products, lengths, out=np.zeros_like(products), where=lengths > 1e-9).mean())


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
