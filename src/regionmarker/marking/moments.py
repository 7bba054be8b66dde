"""First and second moments of a stream of embeddings: all that a linear reducer needs to know.

n, sum_i e_i and sum_i e_i e_i^T are sums, so they can be taken block by block over data larger than memory, and over
shards in any order. They are kept in float64: the same corpus in other blocks gives the same key to about 1e-13.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from regionmarker.protocols import AnyArray, Doubles, Floats

_BLOCK = 4096


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

    def merge(self, other: Moments) -> None:
        """Take in what another pass saw."""
        self.count += other.count
        self._sum += other._sum
        self._outer += other._outer

    def arrays(self) -> dict[str, AnyArray]:
        """Return what :meth:`from_arrays` needs."""
        return {"count": np.array(self.count), "sum": self._sum, "outer": self._outer}

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, AnyArray]) -> Moments:
        """Rebuild moments that were taken elsewhere."""
        moments = cls(0)
        moments.count, moments._sum, moments._outer = int(arrays["count"]), arrays["sum"], arrays["outer"]
        return moments

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
