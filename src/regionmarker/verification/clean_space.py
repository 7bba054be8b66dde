"""The clean half of a statistic: what depends on the texts that were asked and not on who answered.

Judging many suspects by the same questions (simulated copies, a study of innocents) then pays for it once. In here are
the ridge regressions on clean embeddings, the whitening, and the way from a suspect's space back to the clean one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regionmarker.crypto.secret import Sealed
from regionmarker.marks.regions import region_numbers
from regionmarker.vectors import AnyArray, Doubles, Floats, Integers

PENALTIES = (0.1, 1.0, 4.0, 16.0)
MATCHED = 0.7
"""Dimensions count as matched when this share of them choose each other (0.99 where they match, below 0.4 after a
rotation); otherwise a rotation is fitted."""
_RIDGE_MATCHED, _RIDGE_ROTATED = 0.1, 3.0  # a fitted rotation is noisier, so it is whitened less
_SKETCH = 32
_RANK = 256
_TINY = 1e-9


class Ridge:
    """Ridge regressions on one centred matrix a (T, p): its Gram matrix and the factors of it serve every b.

    The penalty is chosen by generalised cross-validation, and the coefficients are never formed.

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
        if penalty not in self._factors:
            self._factors[penalty] = _factor(self._gram, penalty)
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


def _factor(matrix: AnyArray, lift: float) -> Any:
    """Return the Cholesky factor of a float32 matrix with ``lift`` added to its diagonal."""
    from scipy.linalg import cho_factor

    lifted = matrix.copy()
    lifted[np.diag_indices_from(lifted)] += np.float32(lift)
    return cho_factor(lifted, overwrite_a=True, check_finite=False)


def solve(factor: Any, right: AnyArray) -> AnyArray:
    """Solve with a factor of :class:`Ridge`."""
    from scipy.linalg import cho_solve

    return np.asarray(cho_solve(factor, right, check_finite=False))


@dataclass(frozen=True, repr=False, eq=False)
class Unmarked(Sealed):
    """The rows outside some regions, from which is learnt what meaning alone predicts."""

    outside: NDArray[np.bool_]  # (T,)
    x: Floats  # (T, D), all rows, centred on those outside
    ridge: Ridge  # of the rows outside

    @classmethod
    def of(cls, e: Floats, outside: NDArray[np.bool_]) -> Unmarked:
        """Learn from the rows of e (T, D) that are ``outside`` (T,)."""
        x = e - e[outside].mean(axis=0)
        return cls(outside, x, Ridge(x[outside]))


class CleanSpace(Sealed):
    """The clean embeddings of the probes and the pool, and where they lie.

    Parameters
    ----------
    clean, pool_clean
        The clean embeddings, (n, D) and (M, D).
    coordinates, pool_coordinates
        Their signed distances to the hyperplanes, (n, d) and (M, d).
    probes_answered, pool_answered
        Which probes (n,) and which pool texts (M,) were answered; all of them where not given.
    """

    def __init__(
        self,
        clean: Floats,
        coordinates: Doubles,
        pool_clean: Floats,
        pool_coordinates: Doubles,
        probes_answered: NDArray[np.bool_] | None = None,
        pool_answered: NDArray[np.bool_] | None = None,
    ) -> None:
        self.clean, self.coordinates = clean, coordinates
        self.pool_clean, self.pool_coordinates = pool_clean, pool_coordinates
        self.probes_answered = np.ones(len(clean), dtype=bool) if probes_answered is None else probes_answered
        self.pool_answered = np.ones(len(pool_clean), dtype=bool) if pool_answered is None else pool_answered
        self._unmarked: dict[tuple[int, ...], Unmarked] = {}
        self._whiteners: dict[float, Any] = {}

    def answered(self, probes_answered: NDArray[np.bool_], pool_answered: NDArray[np.bool_]) -> CleanSpace:
        """Return this with the texts that were answered only."""
        if np.array_equal(probes_answered, self.probes_answered) and np.array_equal(pool_answered, self.pool_answered):
            return self
        return CleanSpace(
            self.clean, self.coordinates, self.pool_clean, self.pool_coordinates, probes_answered, pool_answered
        )

    @cached_property
    def e(self) -> Floats:
        """The clean embeddings of all answered texts, probes first, (T, D)."""
        # The pool's answers are probes too: a pool text lies in some region like any other.
        return np.vstack([self.clean[self.probes_answered], self.pool_clean[self.pool_answered]]).astype(np.float32)

    @cached_property
    def v(self) -> Doubles:
        """Their coordinates, (T, d)."""
        return np.vstack([self.coordinates[self.probes_answered], self.pool_coordinates[self.pool_answered]])

    @cached_property
    def centre(self) -> Floats:
        return np.asarray(self.e.mean(axis=0))

    @cached_property
    def centred(self) -> Floats:
        """The rows e less their mean, (T, D)."""
        return self.e - self.centre

    @cached_property
    def norms(self) -> Floats:
        """The length of each column of the centred rows, (D,)."""
        return np.asarray(np.linalg.norm(self.centred, axis=0))

    @cached_property
    def covariance(self) -> Floats:
        return (self.centred.T @ self.centred / len(self.centred)).astype(np.float32, copy=False)

    def unmarked(self, regions: tuple[int, ...]) -> Unmarked:
        """Return what lies outside ``regions``."""
        if regions not in self._unmarked:
            outside: NDArray[np.bool_] = ~np.isin(region_numbers(self.v), regions)
            self._unmarked[regions] = Unmarked.of(self.e, outside)
        return self._unmarked[regions]

    def whitened(self, vectors: AnyArray, ridge: float, dimensions: Integers | None = None) -> Doubles:
        """Multiply vectors (R, D) by the inverse covariance, so that common meanings weigh less.

        With ``dimensions``, by the inverse of the covariance of those alone; the vectors then have only these.
        """
        if dimensions is not None:
            factor = _whitener(self.covariance[np.ix_(dimensions, dimensions)], ridge)
        else:
            factor = self._whiteners.get(ridge)
            if factor is None:
                factor = self._whiteners[ridge] = _whitener(self.covariance, ridge)
        return np.asarray(solve(factor, vectors.T.astype(np.float32)).T, dtype=np.float64)


def _whitener(covariance: Floats, ridge: float) -> Any:
    return _factor(covariance, ridge * max(float(np.trace(covariance)) / len(covariance), _TINY))


def to_clean_space(vectors: AnyArray, clean: CleanSpace, answers: AnyArray) -> Doubles:
    """Return vectors (R, D') of the suspect's space in the clean space, whitened, (R, D).

    ``answers`` (T, D') are the centred answers to the texts of the clean space, whatever was done to their dimensions.
    """
    cross = clean.centred.T @ answers  # (D, D')
    scale = np.outer(clean.norms, np.linalg.norm(answers, axis=0)) + _TINY
    ours, theirs, sign, share = matched_dimensions(cross / scale)
    if share < MATCHED:
        return clean.whitened(vectors @ _nearest_rotation(cross).T, _RIDGE_ROTATED)
    brought = np.zeros((len(vectors), len(cross)))
    brought[:, ours] = clean.whitened(vectors[:, theirs] * sign, _RIDGE_MATCHED, ours)
    return brought


def matched_dimensions(correlation: AnyArray) -> tuple[Integers, Integers, AnyArray, float]:
    """Return the dimensions that choose each other (ours, theirs, sign), and their share.

    Examples
    --------
    >>> ours, theirs, sign, share = matched_dimensions(np.array([[0.0, -0.9], [0.8, 0.1]]))
    >>> ours.tolist(), theirs.tolist(), sign.tolist(), share
    ([1, 0], [0, 1], [1.0, -1.0], 1.0)
    """
    size = np.abs(correlation)  # (D, D')
    best, back = size.argmax(axis=0), size.argmax(axis=1)
    theirs = np.flatnonzero(back[best] == np.arange(size.shape[1]))
    ours = best[theirs]
    return ours, theirs, np.sign(correlation[ours, theirs]), len(theirs) / min(size.shape)


def _nearest_rotation(cross: AnyArray) -> AnyArray:
    """Return the orthogonal (Procrustes) factor (D, D') of a cross-covariance, on its leading singular directions."""
    if min(cross.shape) > _RANK + 32:
        sketch = np.random.default_rng(0).standard_normal((cross.shape[1], _RANK + 32)).astype(np.float32)
        basis = np.linalg.qr(cross @ (cross.T @ (cross @ sketch)))[0]
    else:
        basis = np.eye(len(cross), dtype=np.float32)
    u, s, vt = np.linalg.svd(basis.T @ cross, full_matrices=False)
    keep = s > 1e-6 * max(float(s[0]), _TINY)
    return np.asarray(basis @ (u[:, keep] @ vt[keep]))
