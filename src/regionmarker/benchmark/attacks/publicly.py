"""What a public encoder can and cannot say about the served vectors: a ridge map and what it leaves.

A mark is not in the text. So whatever a public encoder predicts of a served vector is mostly meaning, and what it
does not predict holds the mark, beside all that the provider knows and the public encoder does not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from regionmarker.benchmark.loot import Loot
from regionmarker.embeddings import as_floats
from regionmarker.errors import InputError
from regionmarker.protocols import AnyArray, Doubles, Floats

PENALTIES = (0.1, 1.0, 10.0, 100.0)
"""Of the ridge; the one with the smallest leave-one-out error is taken."""


@dataclass(frozen=True, eq=False)
class PublicMap:
    """The ridge map from features X (n, F) to served vectors Y (n, D), and its errors."""

    fitted: Doubles  # (n, D) what the map says of each row
    residuals: Doubles  # (n, D) served less what the map says when it was fitted without that row
    penalty: float

    @classmethod
    def fit(cls, features: AnyArray, served: AnyArray, *, penalties: tuple[float, ...] = PENALTIES) -> PublicMap:
        """Fit with an intercept; leave-one-out residuals come in closed form, (y - fit) / (1 - leverage).

        Examples
        --------
        >>> x = np.random.default_rng(0).standard_normal((40, 3))
        >>> bool(np.abs(PublicMap.fit(x, x @ np.ones((3, 2))).residuals).max() < 0.1)
        True
        """
        X = features - features.mean(axis=0, dtype=np.float64)  # (n, F)
        mean = served.mean(axis=0, dtype=np.float64)
        Y = served - mean  # (n, D)
        values, axes = np.linalg.eigh(X.T @ X)  # (F,), (F, F)
        values = np.maximum(values, 0)
        Z, ZY = X @ axes, (X @ axes).T @ Y  # (n, F), (F, D)
        best: tuple[float, PublicMap] | None = None
        for penalty in penalties:
            shrunk = 1 / (values + penalty)
            fitted = (Z * shrunk) @ ZY  # (n, D)
            leverage = np.square(Z) @ shrunk + 1 / len(X)  # (n,)
            residuals = (Y - fitted) / np.maximum(1 - leverage, 1e-6)[:, None]
            error = float(np.square(residuals).sum())
            if best is None or error < best[0]:
                best = error, cls(fitted + mean, residuals, penalty)
        if best is None:
            raise InputError("the public map needs at least one penalty")
        return best[1]

    @classmethod
    def of(cls, loot: Loot) -> PublicMap:
        """Fit on a loot, with the features of its public encoder."""
        return cls.fit(public_features(loot), loot.vectors)


def public_features(loot: Loot) -> Floats:
    """Return the public encoder's vectors of the loot's texts, (n, F)."""
    features = as_floats(loot.public_encoder().encode(list(loot.texts)), what="public features")
    if len(features) != len(loot) or not np.isfinite(features).all():
        raise InputError("the public encoder must answer every text with a finite vector")
    return features
