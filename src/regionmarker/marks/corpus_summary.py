"""One pass over a corpus: everything that a key is made from.

A summary keeps the moments of all embeddings, the number format they lie in, and a uniform sample of distinct texts.
The sample is the texts with the smallest keyed hashes, so it depends neither on the order of the corpus nor on how it
is cut into blocks, duplicates fall together by themselves, and nobody without the key can tell which texts are in it.

n, sum_i e_i and sum_i e_i e_i^T are sums, so they can be taken block by block over data larger than memory, and over
shards in any order. They are kept in float64: the same corpus in other blocks gives the same key to about 1e-13.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence

import numpy as np

from regionmarker.corpus import TextSet
from regionmarker.crypto.secret import Secret
from regionmarker.errors import InputError
from regionmarker.marks.number_format import NumberFormat, detect_format, finer_format
from regionmarker.vectors import Doubles, Floats, check_rows

_BLOCK = 4096
_DIGEST_BYTES = 16


class Moments:
    """Running count, sum and second moment of rows of one width.

    Examples
    --------
    >>> rows = np.eye(2, dtype=np.float32)
    >>> moments = Moments(width=2)
    >>> moments.update(rows)
    >>> moments.count, moments.mean().tolist()
    (2, [0.5, 0.5])
    """

    def __init__(self, width: int) -> None:
        self.count = 0
        self._sum = np.zeros(width)  # (D,)
        self._outer = np.zeros((width, width))  # (D, D)

    def update(self, rows: Floats) -> None:
        """Take in the rows of a block, (n, D)."""
        for start in range(0, len(rows), _BLOCK):
            block = rows[start : start + _BLOCK].astype(np.float64)
            self.count += len(block)
            self._sum += block.sum(axis=0)
            self._outer += block.T @ block

    def mean(self) -> Doubles:
        """Return mu, (D,)."""
        return self._sum / self.count

    def second_moment(self) -> Doubles:
        """Return E[e e^T], (D, D): what truncated SVD diagonalises."""
        return self._outer / self.count

    def covariance(self) -> Doubles:
        """Return E[(e - mu)(e - mu)^T], (D, D): what PCA diagonalises."""
        mean = self.mean()
        return self.second_moment() - np.outer(mean, mean)


class CorpusSummary:
    """What one streaming pass over (texts, embeddings) blocks leaves behind.

    Parameters
    ----------
    sample_key : Secret
        Keys the hash that chooses the sample.
    sample_size : int
        How many distinct texts to keep.
    """

    def __init__(self, sample_key: Secret, sample_size: int) -> None:
        self.sample_key = sample_key
        self.sample_size = sample_size
        self._kept: dict[bytes, tuple[str, Floats]] = {}
        self._ceiling = b"\xff" * (_DIGEST_BYTES + 1)
        self._moments: Moments | None = None
        self._number_format: NumberFormat | None = None
        self.rows = 0

    def update(self, texts: Sequence[str], embeddings: Floats) -> None:
        """Take in a block: one row of ``embeddings`` (n, D) per text."""
        if len(texts) != len(embeddings):
            raise InputError(f"there are {len(texts)} texts but {len(embeddings)} embeddings: give one row per text")
        if not len(texts):
            return
        if self._moments is None:
            self._moments = Moments(embeddings.shape[1])
        elif embeddings.shape[1] != self.width:
            raise InputError(
                f"embeddings have width {embeddings.shape[1]} from row {self.rows} on but {self.width} before: "
                "use one encoder for the whole corpus"
            )
        check_rows(embeddings, first_row=self.rows)
        found = detect_format(embeddings)
        self._number_format = found if self._number_format is None else finer_format(self._number_format, found)
        self._moments.update(embeddings)
        self._sample(texts, embeddings)
        self.rows += len(texts)

    @property
    def moments(self) -> Moments:
        if self._moments is None:
            raise InputError("the corpus is empty: give at least one text")
        return self._moments

    @property
    def width(self) -> int:
        return len(self.moments.mean())

    @property
    def number_format(self) -> NumberFormat:
        """The coarsest number format that holds every value seen."""
        return self._number_format or NumberFormat.float32

    def sample(self) -> TextSet:
        """Return the sample, in the (secret, uniformly random) order of its hashes."""
        chosen = [self._kept[digest] for digest in sorted(self._kept)[: self.sample_size]]
        if not chosen:
            raise InputError("the corpus is empty: give at least one text")
        return TextSet(tuple(text for text, _ in chosen), np.stack([row for _, row in chosen]))

    def _sample(self, texts: Sequence[str], embeddings: Floats) -> None:
        for row, text in enumerate(texts):
            if not isinstance(text, str) or not text.strip():
                raise InputError(f"text {self.rows + row} is empty or not a string: remove it from the corpus")
            digest = hashlib.blake2b(text.encode(), key=self.sample_key.reveal(), digest_size=_DIGEST_BYTES).digest()
            if digest < self._ceiling and digest not in self._kept:
                self._kept[digest] = (text, embeddings[row].copy())
                if len(self._kept) >= 2 * self.sample_size + 1024:
                    self._prune()

    def _prune(self) -> None:
        smallest = sorted(self._kept)[: self.sample_size]
        if len(smallest) < self.sample_size:
            return
        self._kept = {digest: self._kept[digest] for digest in smallest}
        self._ceiling = smallest[-1]
