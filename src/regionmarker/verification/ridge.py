"""Ridge regression with a penalty chosen by generalised cross-validation, without forming the coefficients."""

from __future__ import annotations

from typing import Any

import numpy as np

from regionmarker.protocols import AnyArray

PENALTIES = (0.1, 1.0, 4.0, 16.0)
_SKETCH = 32
_TINY = 1e-9


def ridge_factor(a: AnyArray, b: AnyArray) -> tuple[Any, float]:
    """Return the Cholesky factor of A'A + penalty for centred a (T, p) and b (T, q), and the share of b unexplained.

    The penalty minimises generalised cross-validation, and the share is its value, so it is corrected for the fit's
    freedom. Residuals are taken on 32 random combinations of b's columns, the trace of the hat matrix by Hutchinson's
    estimate; both draws are fixed, so that the statistic is a function of its input.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> a = rng.standard_normal((200, 5))
    >>> factor, unexplained = ridge_factor(a, a @ rng.standard_normal((5, 3)))
    >>> unexplained < 1e-4
    True
    """
    from scipy.linalg import cho_factor

    rng = np.random.default_rng(0)
    a, p = a.astype(np.float32), a.shape[1]
    wide = b.shape[1] > _SKETCH
    y = (b @ rng.standard_normal((b.shape[1], _SKETCH)) if wide else b).astype(np.float32)  # (T, 32)
    sign = rng.choice(np.array([-1.0, 1.0], dtype=np.float32), (p, _SKETCH))
    gram, right = a.T @ a, np.hstack([a.T @ y, sign])
    best: tuple[float, Any] | None = None
    for penalty in PENALTIES:
        lifted = gram.copy()
        lifted[np.diag_indices(p)] += np.float32(penalty)
        factor = cho_factor(lifted, overwrite_a=True, check_finite=False)
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
    """Solve with a factor of :func:`ridge_factor`."""
    from scipy.linalg import cho_solve

    return np.asarray(cho_solve(factor, right, check_finite=False))
