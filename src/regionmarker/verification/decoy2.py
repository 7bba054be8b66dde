"""The statistic decoy-2 for the graded mark: a score of every candidate for every carrier, no target known.

Answers S (n, D') at unit length and clean vectors e (n, D) of the asked texts; everything is centred first. For each
carrier, what it *pulls* in the answers is found by regression, after what the clean vectors explain has been taken out
of both; the pull is compared with what every candidate's direction d_t would look like in the suspect's space.

A carrier can be looked at in two ways: as the provider sees it, c(u), or as the suspect sees it, c(u^), with u^
predicted from the answers. Pairs use both views, singles one of them.

*Axes match* (decided without targets): dimensions are paired, whatever their order and sign, and a pull is whitened by
the clean covariance of the dimensions that are there.

*Axes do not match*: each principal component i has an *image* b_i in the suspect's space, by ridge regression of the
answers on the clean vectors. A pull p is read as p (S'S + ridge)^-1 b_i: whitened by the answers' own covariance, so
that a rotation, a projection and a compression are all the same. A single's pull is linear, and most of it looks like
a part of the unknown rotation; what is left shows twice, along the nearest orthonormal frame and, with the opposite
sign, in the inverse covariance of the answers. Pairs weigh more there than singles.

Scores are left over after a regression on the candidates' own top coordinates, so that what a candidate means does not
count, and standardised over all lists together.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from regionmarker.marks.graded import GradedMark
from regionmarker.vectors import AnyArray, Doubles, Floats, Integers
from regionmarker.verification.clean_space import MATCHED, Ridge, matched_dimensions, solve

STATISTIC = "decoy-2"

CARRIER_RIDGE = 1e-2  # of the mean diagonal, for the joint regression on all carriers of a kind
CLEAN_PENALTY = 1.0
CLEAN_WHITENING = 0.1  # of the mean variance of a dimension
ANSWER_WHITENING = 2.0
CALM = 0.3  # rows that the clean vectors explain badly weigh less: 1 / sqrt(their share + this)
MEANING = 32  # top coordinates of candidates that scores are freed from
_OWN_VIEW_PENALTIES = (0.1, 1.0, 4.0, 16.0, 64.0)
_TINY = 1e-12


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
    x, S = _centred(clean), _centred(_unit(answers))
    u = mark.signed_distances(clean.astype(np.float64))
    carriers = _Carriers(mark, u, cross_fitted(S, u), x, S)
    meaning = (pool - mark.mean) @ mark.components[:MEANING].T
    ours, theirs, sign, share = _paired_dimensions(x, S)
    matched = share >= MATCHED
    if matched:
        singles, pairs = _read_matched(mark, carriers, (ours, theirs, sign), pool, meaning)
    else:
        singles, pairs = _read_rotated(mark, carriers, pool, meaning)
    return GradedScores(np.vstack([singles, pairs]), matched)


def own_list_scores(mark: GradedMark, scores: Doubles, pool_size: int, group: str) -> Doubles:
    """Return the scores (J, M) of a group's carriers, each for the candidates of its own list alone, (J_g, L)."""
    places, size = mark.settings.places(group), mark.settings.list_size(pool_size)
    z = scores[places][:, : len(places) * size]  # (J_g, J_g L)
    return np.ascontiguousarray(z.reshape(len(places), -1, size)[np.arange(len(places)), np.arange(len(places))])


def scores_of_given(mark: GradedMark, given: AnyArray, pool: AnyArray) -> Doubles:
    """Score every candidate for every carrier by what the carriers pull in the clean vectors themselves, (J, M).

    In clean vectors nothing knows the targets, so theirs are scores like any other; in marked ones they stand out.

    Parameters
    ----------
    given
        Vectors (n, D) that are said to be clean.
    pool
        Clean embeddings of all candidates, (M, D).
    """
    band = slice(mark.settings.band_start, mark.settings.band_end)
    rows = given.astype(np.float64)
    coordinates = _centred((rows - mark.mean) @ mark.components[band].T)  # (n, K)
    pulls = _regressed(_centred(mark.carriers(rows)), coordinates, CARRIER_RIDGE)
    whitened = pulls / np.maximum(coordinates.var(axis=0, dtype=np.float64), _TINY)
    meaning = (pool - mark.mean) @ mark.components[:MEANING].T
    return _freed(whitened @ mark.band_coordinates(pool)[:, band].T, meaning)


def axes_match(x: AnyArray, S: AnyArray) -> bool:
    """Say whether the suspect's dimensions are the clean ones, in whatever order: most of them choose each other."""
    return matched_share(x, S) >= MATCHED


def matched_share(x: AnyArray, S: AnyArray) -> float:
    """Return the share of dimensions that choose each other, given centred rows (n, D) and (n, D')."""
    return _paired_dimensions(x, S)[3]


def _paired_dimensions(x: AnyArray, S: AnyArray) -> tuple[Integers, Integers, AnyArray, float]:
    scale = np.outer(np.linalg.norm(x, axis=0), np.linalg.norm(S, axis=0)) + _TINY
    return matched_dimensions(x.T @ S / scale)


# ---- what a carrier pulls


def seen_carriers(mark: GradedMark, own: Doubles) -> Floats:
    """Return the carriers as the suspect sees them, (n, J), given what its answers predict of u, (n, h)."""
    # A prediction varies less than u: a product needs sides of full size, a single's scale does not matter.
    scaled, count = mark.carriers_of(own / _spread(own)), mark.settings.all_singles
    return np.hstack([mark.carriers_of(own)[:, :count], scaled[:, count:]]).astype(np.float32)


class _Carriers:
    """The carriers of the asked texts in both views, and what each of them pulls in the answers."""

    def __init__(self, mark: GradedMark, u: Doubles, own: Doubles, x: Floats, S: Floats) -> None:
        self.x, self.S = x, S
        count = mark.settings.all_singles
        self._true = mark.carriers_of(u).astype(np.float32)
        self._seen = seen_carriers(mark, own)
        self._singles, self._pairs = slice(0, count), slice(count, None)
        self._clean = Ridge(x)
        self._left = self._without_clean(S)
        rows = np.einsum("ij,ij->i", self._left, self._left, dtype=np.float64)
        share = rows / max(float(rows.mean()), _TINY)
        self._calm = (1.0 / np.sqrt(share + CALM)).astype(np.float32)[:, None]

    def images(self, directions: AnyArray) -> Floats:
        """Return what directions (k, D) become in the suspect's space by ridge regression, (k, D')."""
        B = solve(self._clean.factor(CLEAN_PENALTY), self.x.T @ self.S)
        return np.asarray(directions.astype(np.float32) @ B)

    def pair_pulls(self) -> list[Doubles]:
        """Return the pairs' pulls in both views, (J_p, D') each; what the clean vectors explain is taken out."""
        return [self._pull(view[:, self._pairs]) for view in (self._seen, self._true)]

    def single_pull(self) -> Doubles:
        """Return the singles' pulls in the suspect's view, (J_s, D'); what the clean vectors explain is taken out."""
        return self._pull(self._seen[:, self._singles])

    def whole_single_pull(self) -> Doubles:
        """Return the singles' pulls in the provider's view, (J_s, D'), with all that is linear in them."""
        return _regressed(_centred(self._true[:, self._singles]), self.S, 1e-6)

    def _pull(self, view: Floats) -> Doubles:
        return _regressed(self._without_clean(_centred(view)) * self._calm, self._left * self._calm, CARRIER_RIDGE)

    def _without_clean(self, rows: Floats) -> Floats:
        return np.asarray(rows - self.x @ solve(self._clean.factor(CLEAN_PENALTY), self.x.T @ rows))


def _regressed(carriers: Floats, S: Floats, ridge: float) -> Doubles:
    """Regress S (n, D') on all carriers (n, J) jointly, (J, D')."""
    gram = (carriers.T @ carriers).astype(np.float64)
    gram[np.diag_indices_from(gram)] += max(ridge * np.trace(gram) / max(len(gram), 1), _TINY)
    return np.asarray(np.linalg.solve(gram, (carriers.T @ S).astype(np.float64)))


# ---- what candidates look like


def _read_matched(
    mark: GradedMark,
    carriers: _Carriers,
    paired: tuple[Integers, Integers, AnyArray],
    pool: AnyArray,
    meaning: Doubles,
) -> tuple[Doubles, Doubles]:
    ours, theirs, sign = paired
    space = Ridge(carriers.x[:, ours])
    candidates = mark.directions(pool)[:, ours]  # (M, d)

    def read(pull: Doubles) -> Doubles:
        known = (pull[:, theirs] * sign).T.astype(np.float32)
        return _freed(solve(_whitener(space, CLEAN_WHITENING), known).T @ candidates.T, meaning)

    return read(carriers.single_pull()), _standardised(sum(map(read, carriers.pair_pulls())))


def _read_rotated(mark: GradedMark, carriers: _Carriers, pool: AnyArray, meaning: Doubles) -> tuple[Doubles, Doubles]:
    T = mark.band_coordinates(pool)  # (M, K)
    frame = _polar(mark.components.astype(np.float32) @ (carriers.x.T @ carriers.S))  # (K, D')
    images = np.hstack([carriers.images(mark.components).T, frame.T])
    space = Ridge(carriers.S)
    whitened = solve(_whitener(space, ANSWER_WHITENING), images)  # (D', 2 K)
    by_image, by_frame = whitened[:, : len(frame)], whitened[:, len(frame) :]
    pairs = [_freed(pull @ by_image @ T.T, meaning) for pull in carriers.pair_pulls()]
    single = carriers.whole_single_pull()
    singles = _freed((single @ frame.T / mark.deviations) @ T.T, meaning) - _freed(single @ by_frame @ T.T, meaning)
    return _standardised(singles), _standardised(sum(pairs))


def _whitener(space: Ridge, share: float) -> object:
    mean = float(np.einsum("ij,ij->", space.a, space.a, dtype=np.float64)) / space.a.shape[1]
    return space.factor(share * max(mean, _TINY))


def cross_fitted(A: Floats, B: Doubles) -> Doubles:
    """Return the two-fold ridge prediction of B (n, b) from A (n, a), the penalty chosen by its error."""
    fold = np.arange(len(A)) % 2
    found = {penalty: np.empty_like(B) for penalty in _OWN_VIEW_PENALTIES}
    for held in (0, 1):
        train = fold != held
        mean_a, mean_b = A[train].mean(axis=0), B[train].mean(axis=0)
        ridge = Ridge(A[train] - mean_a)
        inner = ridge.a.T @ (B[train] - mean_b).astype(np.float32)
        for penalty, rows in found.items():
            rows[fold == held] = (A[fold == held] - mean_a) @ solve(ridge.factor(penalty), inner) + mean_b
    return min(found.values(), key=lambda rows: float(np.square(B - rows).sum()))


def _freed(raw: Doubles, meaning: Doubles) -> Doubles:
    """Take out of scores (J, M) what the candidates' own meaning (M, m) explains, and standardise."""
    X = np.column_stack([np.ones(len(meaning)), meaning])
    return _standardised(raw - (X @ np.linalg.lstsq(X, raw.T, rcond=None)[0]).T)


def _standardised(scores: AnyArray | int) -> Doubles:
    rows = np.asarray(scores, dtype=np.float64)
    return np.asarray(rows / np.maximum(rows.std(axis=1, keepdims=True), _TINY))


def _polar(matrix: Floats) -> Floats:
    """Return the nearest matrix with orthonormal rows or columns."""
    u, _, vt = np.linalg.svd(matrix, full_matrices=False)
    return np.asarray(u @ vt)


def _unit(rows: AnyArray) -> Doubles:
    return np.asarray(rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), _TINY), dtype=np.float64)


def _centred(rows: AnyArray) -> Floats:
    return np.asarray(rows - rows.mean(axis=0, dtype=np.float64), dtype=np.float32)


def _spread(rows: Doubles) -> Doubles:
    return np.asarray(np.maximum(rows.std(axis=0), _TINY))
