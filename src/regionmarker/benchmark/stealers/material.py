"""What a thief trains on, checked in one place, and which of it is held out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from regionmarker.embeddings import as_floats, normalised
from regionmarker.encoders.checked import check_texts
from regionmarker.errors import InputError
from regionmarker.protocols import Floats, Integers

SMALLEST = 20
"""Fewer distinct texts than these teach nothing, and leave nothing to measure with."""


@dataclass(frozen=True)
class Split:
    """Row numbers of the parts: trained on, used to choose settings or to stop, and used only to measure."""

    train: Integers
    steer: Integers
    measure: Integers


def check_material(texts: Sequence[str], targets: object) -> tuple[list[str], Floats]:
    """Return texts and their targets as unit rows, or say what is wrong with them.

    Examples
    --------
    >>> check_material(["a text"], [[3.0, 4.0], [1.0, 0.0]])
    Traceback (most recent call last):
    ...
    regionmarker.errors.InputError: there are 1 texts but 2 targets: give one for each
    """
    checked, rows = check_texts(texts), check_targets(targets)
    if len(checked) != len(rows):
        raise InputError(f"there are {len(checked)} texts but {len(rows)} targets: give one for each")
    return checked, rows


def check_targets(targets: object) -> Floats:
    """Return targets as float32 rows of unit length; zero and non-finite ones are refused by their number."""
    return normalised(as_floats(targets, what="targets"))


def check_clean(clean: object, count: int) -> Floats | None:
    """Return the clean vectors that the report is measured against, if there are any."""
    if clean is None:
        return None
    rows = as_floats(clean, what="clean")
    if len(rows) != count:
        raise InputError(f"there are {count} targets but {len(rows)} clean vectors: give one for each, or none")
    return rows


def split(count: int, *, held_out: float, seed: int, texts: Sequence[str] | None = None) -> Split:
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
        raise InputError(f"a thief needs at least {SMALLEST} distinct texts to train on, but there are {distinct}")
    order = np.random.default_rng(seed).permutation(distinct)
    half = max(1, round(distinct * held_out / 2))
    part = np.zeros(distinct, dtype=np.int64)
    part[order[:half]], part[order[half : 2 * half]] = 1, 2
    train, steer, measure = (np.flatnonzero(part[groups] == number) for number in range(3))
    if len(train) == 0:
        raise InputError(f"held_out={held_out} leaves no text of {distinct} to train on: make it smaller")
    return Split(train, steer, measure)


def _numbered(texts: Sequence[str]) -> Integers:
    """Give equal texts equal numbers, in order of appearance; (n,)."""
    numbers: dict[str, int] = {}
    return np.array([numbers.setdefault(text, len(numbers)) for text in texts], dtype=np.int64)
