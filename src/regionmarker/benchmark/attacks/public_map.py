"""What a public encoder says of served vectors: a ridge map from its features, linear or with random hidden units."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from regionmarker.benchmark.protocols import StolenData
from regionmarker.errors import InputError
from regionmarker.vectors import AnyArray, Doubles, Floats, as_floats

PENALTIES = (0.1, 1.0, 10.0, 100.0)
"""Of the ridge; the one with the smallest leave-one-out error is taken."""


@dataclass(frozen=True, eq=False)
class PublicMap:
    """The ridge map from features X (n, F) to served vectors Y (n, D), and its errors."""

    fitted: Doubles  # (n, D) what the map says of each row
    residuals: Doubles  # (n, D) served less what the map says when it was fitted without that row
    penalty: float
    unseen: Doubles  # (n, D) what the map says of each row when it was fitted without that row

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
                best = error, cls(fitted + mean, residuals, penalty, Y + mean - residuals)
        if best is None:
            raise InputError("the public map needs at least one penalty")
        return best[1]

    @classmethod
    def of(cls, stolen: StolenData, hidden: int = 0) -> PublicMap:
        """Fit on stolen data, with the features of its public encoder and ``hidden`` random units of them."""
        return cls.fit(with_hidden(public_features(stolen), hidden), stolen.vectors)


def public_features(stolen: StolenData) -> Floats:
    """Return the public encoder's vectors of the stolen data's texts, (n, F)."""
    features = as_floats(stolen.public_encoder().encode(list(stolen.texts)), what="public features")
    if len(features) != len(stolen) or not np.isfinite(features).all():
        raise InputError("the public encoder must answer every text with a finite vector")
    return features


def with_hidden(features: AnyArray, count: int, seed: int = 0) -> AnyArray:
    """Return features (n, F) and ``count`` random rectified units of them, (n, F + count): a map of these is no line.

    Units are as large as the features on average, so that one penalty serves both.

    Examples
    --------
    >>> with_hidden(np.eye(3), 5).shape
    (3, 8)
    """
    if not count:
        return features
    rng = np.random.default_rng(seed)
    centred = features - features.mean(axis=0, dtype=np.float64)
    scale = max(float(np.sqrt(np.square(centred).sum(axis=1).mean())), 1e-12)
    drawn = rng.standard_normal((features.shape[1], count)) / scale
    units = np.maximum(centred @ drawn + rng.standard_normal(count), 0)  # (n, h)
    size = max(float(np.sqrt(np.square(units - units.mean(axis=0)).sum(axis=1).mean())), 1e-12)
    return np.hstack([features, units * (scale / size)])
