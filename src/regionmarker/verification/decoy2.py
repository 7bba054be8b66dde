"""The statistic decoy-2 for the graded mark: a score of every candidate for every carrier, no target known.

Answers S (n, D') and clean vectors e (n, D) of the asked texts; everything is centred first. For each carrier, what it
*pulls* in the answers is found by regression, after what the clean vectors explain has been taken out of both; the
pull is brought into the space of the principal components and compared with every candidate's direction d_t.

A carrier can be looked at in two ways: as the provider sees it, c(u), or as the suspect sees it, c(u^), with u^
predicted from the answers. Pairs use both views, singles one of them.

Where the suspect's axes match the clean ones (decided without targets), the pull is whitened and read off directly.
Where they do not, each principal component has an *image* in the suspect's space, found by ridge regression and made
orthonormal; the pull is read off along these images.

Scores are left over after a regression on the candidates' own top coordinates, so that what a candidate means does not
count, and standardised over all lists together.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from regionmarker.marks.graded import GradedMark
from regionmarker.vectors import AnyArray, Doubles
from regionmarker.verification.clean_space import MATCHED, matched_dimensions

STATISTIC = "decoy-2"

_CARRIER_RIDGE = 1e-2  # of the mean diagonal, for the joint regression on all carriers of a kind
_CLEAN_PENALTY = 1.0
_IMAGE_PENALTY = 3.0
_IMAGES = 200  # images of principal components that are read off
_SKIPPED = 8  # the first of them carry meaning and no mark
_MEANING = 32  # top coordinates of candidates that scores are freed from
_AROUND_PLANES = 64
_OWN_VIEW_PENALTIES = (0.1, 1.0, 4.0, 16.0, 64.0)
_TINY = 1e-12

Removal: TypeAlias = Callable[[Doubles], Doubles]


@dataclass(frozen=True)
class GradedScores:
    """What decoy-2 found.

    Attributes
    ----------
    scores
        Of every candidate for every carrier, (J, M), each row standardised.
    matched
        Whether the suspect's axes were taken for the clean ones.
    """

    scores: Doubles
    matched: bool


def graded_scores(mark: GradedMark, clean: AnyArray, answers: AnyArray, pool: AnyArray) -> GradedScores:
    """Score every candidate for every carrier.

    Parameters
    ----------
    mark
        Hyperplanes and components; it holds no target.
    clean, answers
        Clean embeddings (n, D) of the asked texts, and what was answered, (n, D').
    pool
        Clean embeddings of all candidates, (M, D).
    """
    rows = clean.astype(np.float64)
    S, x = _centred(answers.astype(np.float64)), _centred(rows)
    u = mark.signed_distances(rows)
    T = mark.band_coordinates(pool)  # (M, K): candidates in coordinates of the components
    meaning = (pool - mark.mean) @ mark.components[:_MEANING].T
    matched = axes_match(x, S)
    read = _read_matched(mark, T) if matched else None
    removed = _without(x, _CLEAN_PENALTY)
    singles, count = slice(0, mark.settings.singles), mark.settings.singles
    own = _cross_fitted(S, u)  # u^ (n, h)
    seen = mark.carriers_of(np.hstack([own[:, singles], own[:, count:] / _spread(own[:, count:])]))
    true = mark.carriers_of(u)
    if read is not None:
        pair_views = [read(_pull(view[:, count:], S, removed, _CARRIER_RIDGE)) for view in (seen, true)]
        single_view = read(_pull(seen[:, singles], S, removed, _CARRIER_RIDGE))
    else:
        images = _Images(mark, x, S)
        pair_views = [images.read(_pull(view[:, count:], S, removed, _CARRIER_RIDGE), T) for view in (seen, true)]
        single_view = _rotated_singles(mark, x, S, true[:, singles], T)
    pairs = _standardised(sum(_freed(view, meaning) for view in pair_views))  # type: ignore[arg-type]
    return GradedScores(np.vstack([_freed(single_view, meaning), pairs]), matched)


def axes_match(x: Doubles, S: Doubles) -> bool:
    """Say whether the suspect's dimensions are the clean ones, in whatever order: most of them choose each other."""
    scale = np.outer(np.linalg.norm(x, axis=0), np.linalg.norm(S, axis=0)) + _TINY
    return matched_dimensions(x.T @ S / scale)[3] >= MATCHED


# ---- axes known


def _read_matched(mark: GradedMark, T: Doubles) -> Callable[[Doubles], Doubles]:
    variances = mark.deviations**2
    whiten = 1.0 / (variances + 0.1 * variances.mean())
    return lambda pull: (pull @ mark.components.T * whiten) @ T.T


# ---- axes unknown


class _Images:
    """The images of the top components in the suspect's space, as an orthonormal frame, (K', D')."""

    def __init__(self, mark: GradedMark, x: Doubles, S: Doubles) -> None:
        count = min(_IMAGES, len(mark.components), S.shape[1])
        gram = x.T @ x
        gram[np.diag_indices_from(gram)] += _IMAGE_PENALTY
        B = np.linalg.solve(gram, x.T @ S)  # (D, D')
        left = ((S - x @ B) ** 2).sum() / (len(S) - min(len(S) / 2, x.shape[1]))
        images = mark.components[:count] @ B
        variances = ((x @ mark.components[:count].T) ** 2).mean(axis=0)
        norms = np.linalg.norm(images, axis=1)
        reliability = np.clip(1.0 - left / (len(S) * variances) / norms**2, 0.0, 1.0)
        self.frame = _polar(images / norms[:, None] * np.sqrt(reliability)[:, None])
        self.meaning = np.linalg.qr(images[:_SKIPPED].T)[0]
        self.weights = np.concatenate([np.zeros(_SKIPPED), 1.0 / mark.deviations[_SKIPPED:count]])

    def read(self, pull: Doubles, T: Doubles) -> Doubles:
        """Return the score of every candidate, (J, M)."""
        left = pull - (pull @ self.meaning) @ self.meaning.T
        return np.asarray((left @ self.frame.T * self.weights) @ T[:, : len(self.weights)].T)


def _rotated_singles(mark: GradedMark, x: Doubles, S: Doubles, carriers: Doubles, T: Doubles) -> Doubles:
    """Keep a plane's own direction: only the rest of the top coordinates is taken out of answers and carriers."""
    U = x @ mark.components[:_AROUND_PLANES].T
    U /= _spread(U)
    singles = _centred(carriers)
    own = np.linalg.qr(U.T @ singles / len(U))[0]
    rest = _without(U - (U @ own) @ own.T, 1e-2 * len(U))
    rotation = _polar(x.T @ S)  # (D, D')
    images = (T / mark.deviations) @ mark.components @ rotation  # (M, D')
    return _pull(carriers, S, rest, 1e-6) @ images.T


# ---- regression


def _cross_fitted(A: Doubles, B: Doubles) -> Doubles:
    """Return the two-fold ridge prediction of B (n, b) from A (n, a), the penalty chosen by its error."""
    fold = np.arange(len(A)) % 2
    parts = []
    for held in (0, 1):
        train = fold != held
        mean_a, mean_b = A[train].mean(axis=0), B[train].mean(axis=0)
        rows = A[train] - mean_a
        values, vectors = np.linalg.eigh(rows.T @ rows)
        inner = vectors.T @ (rows.T @ (B[train] - mean_b))
        parts.append((fold == held, mean_b, np.maximum(values, 0.0), inner, (A[fold == held] - mean_a) @ vectors))
    best, least = B, np.inf
    for penalty in _OWN_VIEW_PENALTIES:
        found = np.empty_like(B)
        for rows_held, mean_b, values, inner, turned in parts:
            found[rows_held] = (turned / (values + penalty)) @ inner + mean_b
        error = float(((B - found) ** 2).sum())
        if error < least:
            best, least = found, error
    return best


def _without(X: Doubles, penalty: float) -> Removal:
    """Return a function that takes out of rows what X (n, a) explains of them."""
    gram = X.T @ X
    gram[np.diag_indices_from(gram)] += penalty
    return lambda Y: np.asarray(Y - X @ np.linalg.solve(gram, X.T @ Y))


def _pull(carriers: Doubles, S: Doubles, removed: Removal, ridge: float) -> Doubles:
    """Return what each carrier (n, J) adds to the answers, all of them regressed jointly, (J, D')."""
    c = removed(_centred(carriers))
    gram = c.T @ c
    gram[np.diag_indices_from(gram)] += ridge * np.trace(gram) / len(gram)
    return np.asarray(np.linalg.solve(gram, c.T @ removed(S)))


def _freed(raw: Doubles, meaning: Doubles) -> Doubles:
    """Take out of scores (J, M) what the candidates' own meaning (M, m) explains, and standardise."""
    X = np.column_stack([np.ones(len(meaning)), meaning])
    return _standardised(raw - (X @ np.linalg.lstsq(X, raw.T, rcond=None)[0]).T)


def _standardised(scores: Doubles) -> Doubles:
    return np.asarray(scores / np.maximum(scores.std(axis=1, keepdims=True), _TINY))


def _polar(matrix: Doubles) -> Doubles:
    """Return the nearest matrix with orthonormal rows or columns."""
    u, _, vt = np.linalg.svd(matrix, full_matrices=False)
    return np.asarray(u @ vt)


def _centred(rows: Doubles) -> Doubles:
    return np.asarray(rows - rows.mean(axis=0))


def _spread(rows: Doubles) -> Doubles:
    return np.asarray(np.maximum(rows.std(axis=0), _TINY))
