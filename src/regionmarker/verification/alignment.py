"""From the suspect's space back to the clean space, whatever was done to the dimensions."""

from __future__ import annotations

import numpy as np

from regionmarker.protocols import AnyArray, Doubles, Integers

MATCHED = 0.7
"""Dimensions count as matched when this share of them choose each other (0.99 where they match, below 0.4 after a
rotation); otherwise a rotation is fitted."""
_RIDGE_MATCHED, _RIDGE_ROTATED = 0.1, 3.0  # a fitted rotation is noisier, so it is whitened less
_RANK = 256
_TINY = 1e-9


def to_clean_space(vectors: AnyArray, clean: AnyArray, answers: AnyArray) -> Doubles:
    """Return vectors (R, D') of the suspect's space in the clean space, whitened, (R, D).

    ``clean`` (T, D) and ``answers`` (T, D') are centred rows of the same texts.
    """
    cross = (clean.T @ answers).astype(np.float32)  # (D, D')
    scale = np.outer(np.linalg.norm(clean, axis=0), np.linalg.norm(answers, axis=0)) + _TINY
    ours, theirs, sign, share = matched_dimensions(cross / scale)
    if share < MATCHED:
        return _whitened(vectors @ _nearest_rotation(cross).T, clean, _RIDGE_ROTATED)
    brought = np.zeros((len(vectors), clean.shape[1]))
    brought[:, ours] = _whitened(vectors[:, theirs] * sign, clean[:, ours], _RIDGE_MATCHED)
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


def _whitened(vectors: AnyArray, clean: AnyArray, ridge: float) -> Doubles:
    """Multiply vectors (R, D) by the inverse covariance of the clean rows, so that common meanings weigh less."""
    from scipy.linalg import cho_factor, cho_solve

    covariance = clean.T @ clean / len(clean)
    covariance[np.diag_indices_from(covariance)] += ridge * max(float(np.trace(covariance)) / len(covariance), _TINY)
    factor = cho_factor(covariance, overwrite_a=True)
    return np.asarray(cho_solve(factor, vectors.T.astype(np.float32)).T, dtype=np.float64)


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
