"""Simulated copies of a graded mark, many for the price of one.

A simulated stealer learns what it was served by ridge regression on what it sees. That is linear in what was served,
and what is served is, to first order, linear in the mark: with y the clean vectors and c the carriers, one regression
on [y, c] gives the answers for *every* draw of targets d and every strength lambda,

    S = (y^ + lambda sum_j w_j c^_j d_j) / |y^|.

The pulls of decoy-2, the cross-covariance and the Gram matrix of S then follow from those of y^ by products of thin
matrices. All is done in the K principal components in which the mark lies; what is beyond them counts for the length
of an answer only. What depends on the asked texts and not on the copy is made once. Where axes are unknown no rotation
is drawn: decoy-2 gives the same scores for every one.

So this is decoy-2 to first order in the mark, with one own view of the carriers for all draws of one copy. It decides
nothing about a suspect; it is compared with the statistic itself in its tests and in ``studies.power``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from regionmarker.crypto.secret import Sealed
from regionmarker.marks.graded import GradedMark
from regionmarker.vectors import AnyArray, Doubles, Floats, Integers
from regionmarker.verification import decoy2
from regionmarker.verification.clean_space import Ridge, solve
from regionmarker.verification.list_test import distribution
from regionmarker.verification.simulated_stealer import BlurredView

PENALTY = 0.1  # of the stealer's ridge, as a share of the mean variance of what it sees
SEEN = 192  # principal components that a stealer sees
_SKETCH = 32
_STEP = 1.0 / 32.0  # of the null distribution: coarser than a verdict's, which needs its far tails
_TINY = 1e-12


@dataclass(frozen=True, repr=False, eq=False)
class GradedCopy(Sealed):
    """What one simulated stealer answers to the asked texts, for any targets and any strength.

    Attributes
    ----------
    answers
        y^ / |y^| in principal components, (n, K).
    carriers
        w_j c^_j / |y^|, (n, J); times the strength.
    fidelity, plain_fidelity
        The mean cosine to the clean vectors, with both means taken out, and as they are.
    """

    answers: Floats
    carriers: Floats
    fidelity: float
    plain_fidelity: float


class GradedCopies(Sealed):
    """The texts and the mark of one key, laid out for any number of simulated copies.

    Parameters
    ----------
    mark
        The mark; no target of it is known here.
    asked, bought
        Clean vectors of the texts that suspects are asked, (n, D), and of those that stealers learn from, (q, D).
    pool
        Clean vectors of all candidates, (M, D).
    buys_asked
        Whether stealers learn from half of the asked texts, too, and answer the other half: where the rest is few.
    """

    def __init__(
        self, mark: GradedMark, asked: Floats, bought: Floats, pool: Floats, *, buys_asked: bool = False
    ) -> None:
        self._buys_asked = buys_asked
        self.mark, self.asked, self.bought, self._asked = mark, len(asked), len(bought), asked
        self.components = mark.components.astype(np.float32)  # P (K, D)
        rows = np.vstack([asked, bought]).astype(np.float32, copy=False)
        y = rows @ self.components.T  # (n + q, K)
        rest = (rows - y @ self.components) @ _random(rows.shape[1], _SKETCH)  # of the length that is beyond
        self.u = mark.signed_distances(rows.astype(np.float64))
        carriers = mark.carriers_of(self.u)
        self._learnt = np.hstack([y, rest, carriers * mark.weights]).astype(np.float32)
        self._clean = slice(0, y.shape[1] + _SKETCH)
        self._seen: Floats = y - (mark.mean @ mark.components.T).astype(np.float32)
        self._each = float(np.square(rows - mark.mean.astype(np.float32)).mean())
        self.true: Floats = _centred(carriers[: self.asked])
        self.x = _centred(y[: self.asked])  # (n, K)
        self.width = rows.shape[1]
        self.candidates: Floats = mark.band_coordinates(pool).astype(np.float32)  # (M, K)
        meaning = (pool - mark.mean) @ mark.components[: decoy2.MEANING].T
        self._meaning: Floats = np.linalg.qr(np.column_stack([np.ones(len(pool)), meaning]))[0].astype(np.float32)

    # ---- copies

    def view(self, hidden: int, rng: np.random.Generator, seen: int = SEEN) -> BlurredView:
        """Draw what a stealer sees of the asked and then the bought texts: its first ``seen`` components."""
        return BlurredView(np.ascontiguousarray(self._seen[:, :seen]), self._each, hidden, rng)

    def copy(self, features: Floats, chosen: Integers) -> GradedCopy:
        """Let a stealer that sees ``features`` (n + q, F) learn from ``chosen`` of the bought texts."""
        bought, said = self.asked + chosen, np.empty((self.asked, self._learnt.shape[1]), dtype=np.float32)
        if not self._buys_asked:
            said[:] = self._taught(features, bought)(features[: self.asked])
        for half in (0, 1) if self._buys_asked else ():
            others = np.arange(1 - half, self.asked, 2)
            learnt = self._taught(features, np.concatenate([others, bought]))
            said[half::2] = learnt(features[half : self.asked : 2])
        said /= np.maximum(_lengths(said[:, self._clean]), _TINY)[:, None]
        plain = _mean_cosine(said[:, self._clean], self._learnt[: self.asked, self._clean])
        said -= said.mean(axis=0, dtype=np.float64).astype(np.float32)
        return GradedCopy(
            answers=np.ascontiguousarray(said[:, : len(self.components)]),
            carriers=np.ascontiguousarray(said[:, self._clean.stop :]),
            fidelity=_mean_cosine(said[:, self._clean], self._centred_clean),
            plain_fidelity=plain,
        )

    @cached_property
    def _centred_clean(self) -> Floats:
        return _centred(self._learnt[: self.asked, self._clean])

    def _taught(self, features: Floats, rows: Integers) -> Callable[[Floats], Floats]:
        F, L = features[rows], self._learnt[rows]
        centre, mean = F.mean(axis=0), L.mean(axis=0)
        F -= centre
        ridge = Ridge(F)
        penalty = PENALTY * float(np.square(F).sum(dtype=np.float64)) / F.shape[1]
        W = solve(ridge.factor(max(penalty, _TINY)), F.T @ (L - mean))
        return lambda seen: np.asarray((seen - centre) @ W + mean)

    def matched_share(self, copy: GradedCopy) -> float:
        """Return the share of an unrotated copy's axes that decoy-2 would recognise: of poor copies, too few."""
        answers = copy.answers + np.float32(self.mark.strength) * (copy.carriers @ self._usual)
        return decoy2.matched_share(self._asked - self._asked.mean(axis=0), answers @ self.components)

    @cached_property
    def _usual(self) -> Floats:
        """Some targets, (J, K): which ones they are does not decide whether axes match."""
        return np.asarray(self.candidates[self.drawn_targets(np.random.default_rng(0))])

    # ---- what decoy-2 says of them

    def excesses(
        self, copy: GradedCopy, level: float, draws: int, rng: np.random.Generator, *,
        matched: bool, strength: float | None = None,
    ) -> Doubles:  # fmt: skip
        """Return |U| less what ``level`` asks for, for fresh draws of all targets, (draws,).

        Parameters
        ----------
        matched
            Whether the suspect's axes are known to match; otherwise the copy may have been rotated.
        strength
            Instead of the mark's own.
        """
        totals, least = self.totals(copy, [self.drawn_targets(rng) for _ in range(draws)], level, matched, strength)
        return np.asarray(np.abs(totals) - least)

    def drawn_targets(self, rng: np.random.Generator) -> Integers:
        """Draw a candidate for every carrier of the mark, each from its own list, (J,)."""
        settings, places = self.mark.settings, np.zeros(len(self.mark.weights), dtype=np.int64)
        size = settings.list_size(len(self.candidates))
        for group in settings.counts():
            mine = settings.places(group)
            places[mine] = size * np.arange(len(mine)) + rng.integers(size, size=len(mine))
        return places

    def totals(
        self, copy: GradedCopy, draws: list[Integers], level: float, matched: bool, strength: float | None = None
    ) -> tuple[Doubles, float]:
        """Return U for each draw of targets, and the least |U| that convicts at ``level``."""
        settings = self.mark.settings
        carried = copy.carriers * np.float32(self.mark.strength if strength is None else strength)
        scored = _Scored(self, copy.answers, carried, self.candidates[draws[0]])
        weights, mine = settings.test_weights("provider", matched=matched), settings.places("provider")
        size = settings.list_size(len(self.candidates))
        own = size * np.arange(len(mine))[:, None] + np.arange(size)  # (J, L)
        found, least = [], 0.0
        for drawn in draws:
            d = self.candidates[drawn]
            z = np.take_along_axis((scored.matched if matched else scored.rotated)(d)[mine], own, axis=1)
            weighted = weights[:, None] * z
            found.append(float(weighted[np.arange(len(mine)), drawn[mine] - own[:, 0]].sum()))
            least = least or least_total(weighted, level)
        return np.array(found), least

    @cached_property
    def _ridge(self) -> Ridge:
        return Ridge(self.x)

    def without_clean(self, rows: Floats) -> Floats:
        """Take out of rows (n, b) what the clean vectors explain."""
        return np.asarray(rows - self.x @ solve(self._ridge.factor(decoy2.CLEAN_PENALTY), self.x.T @ rows))

    @cached_property
    def true_left(self) -> Floats:
        return self.without_clean(self.true)

    @cached_property
    def whole_singles(self) -> Floats:
        """What turns answers (n, K) into the singles' pulls with all that is linear in them, (J_s, n)."""
        singles = self.true[:, : self.mark.settings.all_singles]
        return _operator(singles, singles, 1e-6)

    @cached_property
    def whitened(self) -> Floats:
        """Where axes match: what turns pulls into scores of all candidates, (K, M)."""
        lift = decoy2.CLEAN_WHITENING * self._each * len(self.x)
        return np.asarray(solve(self._ridge.factor(max(lift, _TINY)), self.candidates.T))

    def images(self, cross: Floats) -> Floats:
        """Return the images of the components by ridge regression, (K, K'), given x'S."""
        return np.asarray(solve(self._ridge.factor(decoy2.CLEAN_PENALTY), cross))

    def freed(self, raw: AnyArray) -> Floats:
        """Take out of scores (J, M) what the candidates' own meaning explains, and standardise."""
        left = raw - (raw @ self._meaning) @ self._meaning.T
        return np.asarray(left / np.maximum(left.std(axis=1, keepdims=True), _TINY))


_Pull = tuple[Floats, Floats]  # of the unmarked answers (J, K), and of the carriers in them (J, J)


class _Scored:
    """One copy's answers S0 + C d, scored for any targets d (J, K); its own view of the carriers is that of one d."""

    def __init__(self, copies: GradedCopies, answers: Floats, carried: Floats, d: Floats) -> None:
        self._copies, self._S0, self._C = copies, answers, carried
        mark, S = copies.mark, answers + carried @ d
        singles, pairs = slice(0, mark.settings.all_singles), slice(mark.settings.all_singles, None)
        own = decoy2.cross_fitted(np.ascontiguousarray(S[:, :SEEN]), copies.u[: copies.asked])
        seen = _centred(decoy2.seen_carriers(mark, own))
        left = copies.without_clean(np.hstack([seen, S @ _random(S.shape[1], _SKETCH)]))
        noise = np.square(left[:, len(mark.weights) :]).sum(axis=1)
        calm = (1.0 / np.sqrt(noise / max(float(noise.mean()), _TINY) + decoy2.CALM)).astype(np.float32)[:, None]
        views = left[:, : len(mark.weights)] * calm, copies.true_left[:, pairs] * calm
        read = copies.without_clean(np.hstack(views) * calm)
        groups = (views[0][:, singles], views[0][:, pairs], views[1])
        start, self._pulls = 0, []
        for view in groups:
            operator = _operator(view, read[:, start : start + view.shape[1]], decoy2.CARRIER_RIDGE)
            self._pulls.append(self._applied(operator))
            start += view.shape[1]

    def _applied(self, operator: Floats) -> _Pull:
        return operator @ self._S0, operator @ self._C

    def matched(self, d: Floats) -> Floats:
        """Return the scores of all candidates where axes match, (J, M)."""
        copies = self._copies

        def read(pull: _Pull) -> Floats:
            return copies.freed((pull[0] + pull[1] @ d) @ copies.whitened)

        singles, *pairs = map(read, self._pulls)
        return np.vstack([singles, _standardised(sum(pairs))])

    @cached_property
    def _whole_pull(self) -> _Pull:
        return self._applied(self._copies.whole_singles)

    @cached_property
    def _moments(self) -> tuple[_Pull, Floats, Floats, Floats]:
        S0, C = self._S0, self._C
        return self._applied(self._copies.x.T), S0.T @ S0, S0.T @ C, C.T @ C

    def rotated(self, d: Floats) -> Floats:
        """Return the scores of all candidates where axes are unknown, (J, M)."""
        copies, (across, own, mixed, carried) = self._copies, self._moments
        cross = across[0] + across[1] @ d
        images, frame, count = copies.images(cross), _polar(cross), len(cross)  # (K, K') each
        half = mixed @ d
        gram = own + half + half.T + d.T @ (carried @ d)
        lift = decoy2.ANSWER_WHITENING * float(np.trace(gram)) / copies.width
        whitened = solve(_factor(gram, lift), np.hstack([images.T, frame.T]))  # (K', 2 K)
        T = copies.candidates.T

        def read(pull: AnyArray, by: AnyArray) -> Floats:
            return copies.freed(pull @ by @ T)

        pairs = [read(pull[0] + pull[1] @ d, whitened[:, :count]) for pull in self._pulls[1:]]
        single = self._whole_pull[0] + self._whole_pull[1] @ d
        along = read(single, frame.T / copies.mark.deviations.astype(np.float32))
        return np.vstack([_standardised(along - read(single, whitened[:, count:])), _standardised(sum(pairs))])


def least_total(weighted: AnyArray, level: float) -> float:
    """Return the least |U| that convicts at ``level``, given the weighted scores of every carrier's list, (J, L).

    Examples
    --------
    >>> scores = np.random.default_rng(1).standard_normal((16, 64)) / 4
    >>> 3.0 < least_total(scores, 1e-3) < 3.6
    True
    """
    lowest, chances = distribution(np.rint(np.clip(weighted, -16, 16) / _STEP).astype(np.int64))
    sizes = np.abs(np.arange(len(chances)) + lowest)
    tail = np.bincount(sizes, weights=chances)[::-1].cumsum()[::-1]  # P(|U| >= size)
    enough = np.flatnonzero(tail <= level)
    return float((enough[0] if len(enough) else len(tail) + 1) * _STEP)


def _operator(carriers: Floats, read: Floats, ridge: float) -> Floats:
    """Return (c'c + ridge)^-1 read', (J, n): the joint regression on all carriers of a kind."""
    gram = (carriers.T @ carriers).astype(np.float64)
    gram[np.diag_indices_from(gram)] += max(ridge * np.trace(gram) / max(len(gram), 1), _TINY)
    return np.linalg.solve(gram, read.T).astype(np.float32)


def _factor(gram: Floats, lift: float) -> object:
    from scipy.linalg import cho_factor

    gram[np.diag_indices_from(gram)] += np.float32(max(lift, _TINY))
    return cho_factor(gram, overwrite_a=True, check_finite=False)


def _polar(matrix: Floats) -> Floats:
    """Return the nearest orthonormal frame, (K, K')."""
    squares, vectors = np.linalg.eigh(matrix @ matrix.T)
    roots = np.sqrt(np.maximum(squares, 1e-9 * max(float(squares[-1]), _TINY)))
    return np.asarray((vectors / roots) @ (vectors.T @ matrix))


def _random(rows: int, columns: int) -> Floats:
    """Return a fixed random map that keeps squared lengths on average, (rows, columns)."""
    drawn = np.random.default_rng(0).standard_normal((rows, columns), dtype=np.float32)
    return np.asarray(drawn / np.float32(np.sqrt(columns)))


def _lengths(rows: Floats) -> Floats:
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", rows, rows)))


def _mean_cosine(a: Floats, b: Floats) -> float:
    return float((np.einsum("ij,ij->i", a, b) / np.maximum(_lengths(a) * _lengths(b), _TINY)).mean())


def _centred(rows: AnyArray) -> Floats:
    return np.asarray(np.asarray(rows, dtype=np.float32) - rows.mean(axis=0, dtype=np.float64).astype(np.float32))


def _standardised(scores: AnyArray | int) -> Floats:
    rows = np.asarray(scores)
    return np.asarray(rows / np.maximum(rows.std(axis=1, keepdims=True), _TINY))
