"""Ridge regression with a penalty chosen by generalised cross-validation, without forming the coefficients."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from regionmarker.protocols import AnyArray

PENALTIES = (0.1, 1.0, 4.0, 16.0)
_SKETCH = 32
_TINY = 1e-9


class Ridge:
    """Ridge regressions on one centred matrix a (T, p): its Gram matrix and the factors of it serve every b.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> a = rng.standard_normal((200, 5))
    >>> factor, unexplained = Ridge(a).fit(a @ rng.standard_normal((5, 3)))
    >>> unexplained < 1e-4
    True
    """

    def __init__(self, a: AnyArray) -> None:
        self.a = a.astype(np.float32, copy=False)
        self._factors: dict[float, Any] = {}

    @cached_property
    def _gram(self) -> AnyArray:
        return self.a.T @ self.a  # (p, p)

    def factor(self, penalty: float) -> Any:
        """Return the Cholesky factor of A'A + penalty."""
        from scipy.linalg import cho_factor

        if penalty not in self._factors:
            lifted = self._gram.copy()
            lifted[np.diag_indices_from(lifted)] += np.float32(penalty)
            self._factors[penalty] = cho_factor(lifted, overwrite_a=True, check_finite=False)
        return self._factors[penalty]

    def fit(self, b: AnyArray) -> tuple[Any, float]:
        """Return the factor for centred b (T, q), and the share of b unexplained.

        The penalty minimises generalised cross-validation, and the share is its value, so it is corrected for the
        fit's freedom. Residuals are taken on 32 random combinations of b's columns, the trace of the hat matrix by
        Hutchinson's estimate; both draws are fixed, so that the statistic is a function of its input.
        """
        a, p = self.a, self.a.shape[1]
        rng = np.random.default_rng(0)
        wide = b.shape[1] > _SKETCH
        y = (b @ rng.standard_normal((b.shape[1], _SKETCH)) if wide else b).astype(np.float32)  # (T, 32)
        sign = rng.choice(np.array([-1.0, 1.0], dtype=np.float32), (p, _SKETCH))
        right = np.hstack([a.T @ y, sign])
        best: tuple[float, Any] | None = None
        for penalty in PENALTIES:
            factor = self.factor(penalty)
            solved = solve(factor, right)
            fitted, traced = solved[:, : y.shape[1]], solved[:, y.shape[1] :]
            freedom = p - penalty * float((sign * traced).sum()) / _SKETCH
            rss = float(((y - a @ fitted) ** 2).sum())
            score = rss / max(1.0 - (freedom + 1.0) / len(a), 1e-3) ** 2
            if best is None or score < best[0]:
                best = score, factor
        score, factor = best  # type: ignore[misc]
        return factor, score / max(float((y**2).sum()), _TINY)


def solve(factor: Any, right: AnyArray) -> AnyArray:
    """Solve with a factor of :class:`Ridge`."""
    from scipy.linalg import cho_solve

    return np.asarray(cho_solve(factor, right, check_finite=False))
