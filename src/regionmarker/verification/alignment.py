"""From the suspect's space back to the clean space, whatever was done to the dimensions."""

from __future__ import annotations

import numpy as np

from regionmarker.protocols import AnyArray, Doubles, Integers
from regionmarker.verification.cleanside import CleanSide

MATCHED = 0.7
"""Dimensions count as matched when this share of them choose each other (0.99 where they match, below 0.4 after a
rotation); otherwise a rotation is fitted."""
_RIDGE_MATCHED, _RIDGE_ROTATED = 0.1, 3.0  # a fitted rotation is noisier, so it is whitened less
_RANK = 256
_TINY = 1e-9


def to_clean_space(vectors: AnyArray, clean: CleanSide, answers: AnyArray) -> Doubles:
    """Return vectors (R, D') of the suspect's space in the clean space, whitened, (R, D).

    ``answers`` (T, D') are the centred answers to the texts of the clean side.
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
