"""Do cosines rank pairs of sentences as people do? STS-B's measure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from regionmarker.benchmark.utility.columns import read_columns
from regionmarker.benchmark.utility.cosines import row_cosines
from regionmarker.embeddings import as_floats
from regionmarker.errors import InputError
from regionmarker.protocols import AnyArray, Doubles


@dataclass(frozen=True)
class SentencePairs:
    """Pairs of sentences with a number each: how alike people find them, or whether they are paraphrases."""

    first: tuple[str, ...]
    second: tuple[str, ...]
    scores: tuple[float, ...]

    @classmethod
    def read(cls, path: str | Path, *, split: str | None = None, score: str = "score") -> SentencePairs:
        """Read a Parquet file with columns sentence1, sentence2 and ``score``; ``split`` keeps one split of it."""
        names = ["sentence1", "sentence2", score, *(["split"] if split else [])]
        columns = read_columns(Path(path), names)
        rows = [row for row in zip(*columns, strict=True) if split is None or row[3] == split]
        if not rows:
            raise InputError(f"{path} holds no rows of the split {split!r}")
        return cls(tuple(row[0] for row in rows), tuple(row[1] for row in rows), tuple(float(row[2]) for row in rows))


def similarity(first: object, second: object, scores: Sequence[float] | AnyArray) -> float:
    """Return the Spearman correlation of cosines with scores; vectors (n, D) and (n, D), scores (n,).

    Examples
    --------
    >>> left = np.eye(3, dtype=np.float32)
    >>> right = np.array([[1, 0, 0], [1, 1, 0], [1, 0, 0]], dtype=np.float32)
    >>> similarity(left, right, [5.0, 3.0, 0.5])
    1.0
    """
    left, right = as_floats(first, what="vectors"), as_floats(second, what="vectors")
    judged = np.asarray(scores, dtype=np.float64)
    if left.shape != right.shape or judged.shape != (len(left),):
        raise InputError(f"pairs of shapes {left.shape} and {right.shape} cannot be scored by {judged.shape} numbers")
    if len(left) < 3:
        raise InputError(f"a correlation needs at least 3 pairs, but there are {len(left)}")
    return spearman(row_cosines(left, right), judged)


def spearman(left: Doubles, right: Doubles) -> float:
    """Return the rank correlation of two lists of numbers, (n,) and (n,); NaN where either has no order.

    Examples
    --------
    >>> spearman(np.array([1.0, 2.0, 3.0]), np.array([1.0, 4.0, 9.0]))
    1.0
    """
    from scipy.stats import rankdata  # takes half a second to import

    ranks = np.stack([rankdata(left), rankdata(right)])
    if (ranks.std(axis=1) == 0).any():
        return float("nan")
    return float(np.corrcoef(ranks)[0, 1])
