"""The decoy test's statistic: how strongly a suspect pulls each trigger region towards each pool text.

``region_scores`` is given no target and no tenant. That is the whole proof that the p-value is exact: whatever it
computes, the true tuple is one more ordered draw of R distinct columns. All else decides only how much power there is.

A copy answers S(x) = A(g(x) + lambda p_r(x) (w_r - g(x))): A is whatever was done to the dimensions (nothing, a shift,
a permutation, a cut, a rotation), g its guess at the clean embedding, p_r(x) how far the *copy* believes x to lie in
region r, and w_r the target's clean vector, which no student shrinks. So:

1. belief     where the copy sees x: the secret coordinates v regressed on S(x); their error gives a soft membership;
2. shift      what S(x) adds to a ridge map of clean e(x), regressed on all memberships at once; one vector per region;
3. alignment  that vector brought to the clean space, by matched dimensions where they match, else by a rotation;
4. score      its inner product with the clean pool vectors, whitened, less what v of the pool text explains, in units
              of its standard deviation over the pool.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from regionmarker.vectors import AnyArray, Doubles, Floats
from regionmarker.verification.clean_space import CleanSpace, Ridge, Unmarked, solve, to_clean_space

STATISTIC = "decoy-1"
_TINY = 1e-9


def region_scores(
    answers: Floats,
    pool_answers: Floats,
    clean: CleanSpace,
    trigger_regions: tuple[int, ...],
    other_regions: tuple[int, ...] = (),
) -> Doubles:
    """Return z (R, M): how well pool text t explains what the suspect does in trigger region r.

    Parameters
    ----------
    answers, pool_answers
        The suspect's answers to the probes (n, D') and to the pool (M, D'), unit rows; NaN rows are missing.
    clean
        The clean embeddings of the same texts, and where they lie.
    trigger_regions
        The regions to score, R of them.
    other_regions
        Further regions that may carry marks: they are kept out of what counts as unmarked.

    Returns
    -------
    z
        (R, M); NaN in the columns of pool texts without an answer.
    """
    pool_answered = np.asarray(np.isfinite(pool_answers).all(axis=1))  # (M,)
    probes_answered = np.asarray(np.isfinite(answers).all(axis=1))  # (n,)
    S = np.vstack([answers[probes_answered], pool_answers[pool_answered]]).astype(np.float32)  # (T, D')
    clean = clean.answered(probes_answered, pool_answered)
    marked = (*trigger_regions, *other_regions)
    member = _memberships(S, clean.v, marked)  # (T, R + others)
    shift = displacements(S, clean.unmarked(marked), member)[: len(trigger_regions)]  # (R, D')
    pull = to_clean_space(shift, clean, S - S.mean(axis=0))  # (R, D)
    z = standardised(pull @ (clean.pool_clean - clean.centre).T, clean.pool_coordinates, pool_answered)  # (R, M)
    z[:, ~pool_answered] = np.nan
    return z


def _memberships(S: Floats, v: Doubles, regions: tuple[int, ...]) -> Doubles:
    """Return how far the suspect believes each text to lie in each region, (T, R), each in 0 .. 1."""
    from scipy.special import ndtr

    believed, blur = beliefs(S, v)
    belief = believed / blur  # (T, d)
    bits = (np.asarray(regions)[:, None] >> np.arange(v.shape[1])) & 1  # (R, d)
    return np.asarray(ndtr((2 * bits - 1) * belief[:, None, :]).prod(axis=2))


def beliefs(S: Floats, v: Doubles) -> tuple[Doubles, Doubles]:
    """Return where the suspect believes each text to lie in secret coordinates (T, d), and how sure it is of each (d,).

    The belief follows the coordinates as the answers show them, where they do. A copy of cleaned vectors (CSE) hides
    them from its answers, and then the true coordinates are the better guess; the weight is the share explained.
    """
    x, y = S - S.mean(axis=0), v - v.mean(axis=0)
    factor, unexplained = Ridge(x).fit(y)
    view = x @ solve(factor, x.T @ y.astype(np.float32)) + v.mean(axis=0)  # (T, d)
    blur = np.maximum((v - view).std(axis=0), 1e-3 * v.std(axis=0) + _TINY)  # (d,)
    trust = float(np.clip(2.0 * (1.0 - unexplained) - 0.4, 0.0, 1.0))
    return np.asarray(trust * view + (1.0 - trust) * v), blur


def displacements(S: Floats, unmarked: Unmarked, member: Doubles) -> Doubles:
    """Return the displacement (R, D') that goes with membership (T, R), beyond what a ridge map of e predicts.

    With residuals E = S - X W this is (m'm)^-1 m'E. W (D, D') is never formed: m'X W = (A u)'B, where A and B are the
    rows outside and u = (A'A + penalty)^-1 X'm.
    """
    outside, x, A = unmarked.outside, unmarked.x, unmarked.ridge.a
    s = S - S[outside].mean(axis=0)
    m = member - member[outside].mean(axis=0)  # (T, R)
    B = s[outside]
    u = solve(unmarked.ridge.fit(B)[0], x.T @ m.astype(np.float32))  # (D, R)
    beyond = m.T @ s - (A @ u).T @ B  # (R, D')
    gram = m.T @ m
    gram[np.diag_indices_from(gram)] += 1e-6 * np.trace(gram) + _TINY
    return np.asarray(np.linalg.solve(gram, beyond))


def standardised(raw: AnyArray, covariates: Doubles, answered: NDArray[np.bool_]) -> Doubles:
    """Return scores (R, M) less their regression on the covariates (M, d), at unit deviation over the answered columns.

    A suspect that shows nothing at all (its answers are a linear map of the clean ones) scores 0 everywhere, so p = 1.
    """
    design = np.column_stack([np.ones(len(covariates)), covariates])  # (M, 1 + d)
    coefficients = np.linalg.lstsq(design[answered], raw[:, answered].T, rcond=None)[0]
    left = raw - (design @ coefficients).T
    deviation = left[:, answered].std(axis=1, keepdims=True)
    flat = deviation <= _TINY * np.abs(raw[:, answered]).max(initial=_TINY)
    return np.where(flat, 0.0, left / np.maximum(deviation, 1e-300))
