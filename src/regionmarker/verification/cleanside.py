"""The clean half of the decoy test: what depends on the texts that were asked and not on who answered.

Judging many suspects by the same questions (shadow thieves, a study of innocents) then pays for it once.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from regionmarker.keys.secret import Sealed
from regionmarker.marking.regions import region_numbers
from regionmarker.protocols import AnyArray, Doubles, Floats, Integers
from regionmarker.verification.ridge import Ridge, solve

_TINY = 1e-9


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


class CleanSide(Sealed):
    """The clean embeddings of the probes and the pool, and where they lie.

    Parameters
    ----------
    clean, pool_clean
        The clean embeddings, (n, D) and (M, D).
    coordinates, pool_coordinates
        Their signed distances to the hyperplanes, (n, d) and (M, d).
    here, seen
        Which probes (n,) and which pool texts (M,) were answered; all of them where not given.
    """

    def __init__(
        self,
        clean: Floats,
        coordinates: Doubles,
        pool_clean: Floats,
        pool_coordinates: Doubles,
        here: NDArray[np.bool_] | None = None,
        seen: NDArray[np.bool_] | None = None,
    ) -> None:
        self.clean, self.coordinates = clean, coordinates
        self.pool_clean, self.pool_coordinates = pool_clean, pool_coordinates
        self.here = np.ones(len(clean), dtype=bool) if here is None else here
        self.seen = np.ones(len(pool_clean), dtype=bool) if seen is None else seen
        self._unmarked: dict[tuple[int, ...], Unmarked] = {}
        self._whiteners: dict[float, Any] = {}

    def answered(self, here: NDArray[np.bool_], seen: NDArray[np.bool_]) -> CleanSide:
        """Return this with the texts that were answered only."""
        if np.array_equal(here, self.here) and np.array_equal(seen, self.seen):
            return self
        return CleanSide(self.clean, self.coordinates, self.pool_clean, self.pool_coordinates, here, seen)

    @cached_property
    def e(self) -> Floats:
        """The clean embeddings of all answered texts, probes first, (T, D)."""
        # The pool's answers are probes too: a pool text lies in some region like any other.
        return np.vstack([self.clean[self.here], self.pool_clean[self.seen]]).astype(np.float32)

    @cached_property
    def v(self) -> Doubles:
        """Their coordinates, (T, d)."""
        return np.vstack([self.coordinates[self.here], self.pool_coordinates[self.seen]])

    @cached_property
    def centre(self) -> Floats:
        """The mean of e, (D,)."""
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
        """The covariance of the centred rows, (D, D)."""
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
            factor = _factor(self.covariance[np.ix_(dimensions, dimensions)], ridge)
        else:
            factor = self._whiteners.get(ridge)
            if factor is None:
                factor = self._whiteners[ridge] = _factor(self.covariance.copy(), ridge)
        return np.asarray(solve(factor, vectors.T.astype(np.float32)).T, dtype=np.float64)


def _factor(covariance: Floats, ridge: float) -> Any:
    from scipy.linalg import cho_factor

    covariance[np.diag_indices_from(covariance)] += ridge * max(float(np.trace(covariance)) / len(covariance), _TINY)
    return cho_factor(covariance, overwrite_a=True, check_finite=False)
