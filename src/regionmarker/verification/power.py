"""Power: what this run would have caught, so that "no evidence" means something.

Simulated stealers copy the key's own texts, in the clean space. Each has a view of the texts of its own (more or less
noise decides its fidelity; more or fewer hidden units make it more of a network or more of a line), a query set of its
own among the texts that the suspect was not asked, and fresh draws of the targets; the true ones are not used. They are
judged as this suspect was: with axes that match, or as if they had been rotated.

Several draws of targets on one view and one query set are no independent trials, so the interval is one over the sets:
a Student interval of the mean by which U exceeds what the level asks for, put through a normal curve whose variance is
that between the sets and that within them.

What it is not: a real copy of the same fidelity may be easier or harder to catch (``docs/results/power.md`` compares),
and none of these stealers removed anything from what it was served.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from math import sqrt

import numpy as np

from regionmarker.crypto.secret import Secret
from regionmarker.keys.key import Key
from regionmarker.marking.marker import RegionMarker
from regionmarker.marks.graded import GradedMark
from regionmarker.marks.reduction import top_eigenvectors
from regionmarker.measures import row_cosines
from regionmarker.vectors import AnyArray, Doubles, Floats
from regionmarker.verification.examination import laid_out
from regionmarker.verification.graded_copies import GradedCopies
from regionmarker.verification.questions import Questions
from regionmarker.verification.simulated_stealer import BlurredView, SimulatedStealer, Student

BLURS = (0.5, 1.2, 2.2)  # noise, in units of what is seen
SETS = 6
HIDDEN = (96, 160, 288)  # hidden units, in turn over the sets
DRAWS = {True: 4, False: 2}  # of the targets on one set, by whether axes match
QUERY_SHARE = 0.8  # of the texts that can be bought, in one query set
WANTED = 0.9
ENOUGH = 0.9  # a run that would miss stealers of this fidelity more often than one time in ten is inconclusive
ENOUGH_BOUGHT = 1000  # with fewer unasked texts a stealer learns from half of the asked ones, too
_LEAST_TEXTS = 500
# Regions have borders, which only a network learns: stealers of the published mark have more units and see more.
_PUBLISHED_BLURS, _PUBLISHED_HIDDEN, _PUBLISHED_SEEN, _PUBLISHED_PENALTY = (0.0, 0.4, 0.9), 2048, 768, 0.03
_FAR = 37.0  # a p-value of 0 in doubles, as a normal number
_CERTAIN = 1e-6


@dataclass(frozen=True)
class Power:
    """Detection of simulated stealers over fidelity.

    Attributes
    ----------
    fidelities
        From the worst stealer to the best: the mean cosine of its answers to the clean vectors, after the mean of each
        side was taken out.
    detected
        The share of the stealers that were caught.
    caught
        The lowest fidelity from which on at least 90 % are caught by the lower end of the interval; None where the run
        reaches that nowhere.
    shadows
        Stealers per point of the curve, draws of targets included.
    texts
        Texts that each stealer learnt from.
    low, high
        The 95 % interval of the share that such stealers are caught; over ``sets``, not over ``shadows``.
    plain_fidelities
        The same cosines with the means left in.
    sets
        Views and query sets per point.
    axes
        What the stealers were judged for: "matched" or "unknown" axes; None under decoy-1.
    """

    fidelities: tuple[float, ...]
    detected: tuple[float, ...]
    caught: float | None
    shadows: int
    texts: int
    low: tuple[float, ...] = ()
    high: tuple[float, ...] = ()
    plain_fidelities: tuple[float, ...] = ()
    sets: int = 0
    axes: str | None = None

    @property
    def enough(self) -> bool:
        return self.caught is not None and self.caught <= ENOUGH

    def to_dict(self) -> dict[str, object]:
        return {**asdict(self), "wanted": WANTED, "enough": self.enough}


def estimate_power(
    key: Key, questions: Questions, level: float, *, axes: str | None = None, seed: int | None = None
) -> Power:
    """Let simulated stealers of several fidelities steal, and judge each at ``level``.

    Parameters
    ----------
    questions
        What the suspect was asked, and answered.
    axes
        "unknown" where the suspect's dimensions do not match the clean ones: its copies would be judged so, too.
    seed
        Of everything that is drawn; fresh when not given.
    """
    rng = np.random.default_rng(secrets.randbits(64) if seed is None else seed)
    if isinstance(key.mark, GradedMark):
        trials, texts = _graded_trials(key, key.mark, questions, level, axes != "unknown", rng)
    else:
        trials, texts = _published_trials(key, questions, level, rng)
        axes = None
    points = sorted((_Point.of(found) for found in trials), key=lambda point: point.fidelity)
    return Power(
        fidelities=tuple(point.fidelity for point in points),
        detected=tuple(point.share.detected for point in points),
        caught=reliably_caught([point.fidelity for point in points], [point.share.low for point in points]),
        shadows=trials[0][0].excesses.size * len(trials[0]),
        texts=texts,
        low=tuple(point.share.low for point in points),
        high=tuple(point.share.high for point in points),
        plain_fidelities=tuple(point.plain_fidelity for point in points),
        sets=len(trials[0]),
        axes=(axes or "matched") if isinstance(key.mark, GradedMark) else None,
    )


def reliably_caught(fidelities: Sequence[float], shares: Sequence[float], wanted: float = WANTED) -> float | None:
    """Return the lowest fidelity from which on every share is at least what is wanted.

    Examples
    --------
    >>> reliably_caught([0.4, 0.6, 0.8], [0.2, 0.95, 1.0]), reliably_caught([0.4, 0.6], [1.0, 0.5])
    (0.6, None)
    """
    good = [share >= wanted for share in shares]
    return next((fidelities[place] for place in range(len(good)) if all(good[place:])), None)


@dataclass(frozen=True)
class CaughtShare:
    """A share of copies caught, and its 95 % interval over the sets."""

    detected: float
    low: float
    high: float

    @classmethod
    def of(cls, excesses: Doubles) -> CaughtShare:
        """Return it for how far each copy exceeds what convicts, (sets, draws); 0 is just enough.

        Examples
        --------
        >>> CaughtShare.of(np.array([[5.0, 6.0], [4.0, 6.0], [5.0, 4.0]]))
        CaughtShare(detected=1.0, low=1.0, high=1.0)
        >>> CaughtShare.of(np.array([[1.0, -1.0], [0.0, 1.0], [-1.0, 1.0]]))
        CaughtShare(detected=0.667, low=0.273, high=0.834)
        """
        from scipy.special import ndtr, stdtrit

        sets, draws = excesses.shape
        means = excesses.mean(axis=1)
        between = float(means.var(ddof=1)) if sets > 1 else 0.0
        within = float(excesses.var(axis=1, ddof=1).mean()) if draws > 1 else 0.0
        deviation = max(sqrt(between + within * (1 - 1 / draws)), _CERTAIN)
        error = float(stdtrit(max(sets - 1, 1), 0.975)) * sqrt(between / sets)
        share = float((excesses >= 0).mean())
        ends = (float(ndtr((means.mean() + sign * error) / deviation)) for sign in (-1, 1))
        low, high = (round(end, 3) for end in ends)
        share = round(share, 3)
        return cls(share, min(low, share), max(high, share))

    @classmethod
    def covering(cls, shares: Sequence[CaughtShare]) -> CaughtShare:
        """Return the mean of several shares, with an interval that covers each of theirs.

        Examples
        --------
        >>> CaughtShare.covering([CaughtShare(1.0, 0.9, 1.0), CaughtShare(0.2, 0.1, 0.4)])
        CaughtShare(detected=0.6, low=0.1, high=1.0)
        """
        mean = round(float(np.mean([share.detected for share in shares])), 3)
        return cls(mean, min(share.low for share in shares), max(share.high for share in shares))


@dataclass(frozen=True)
class _Trial:
    """What came of one set: one stealer, and some draws of targets."""

    fidelity: float
    plain_fidelity: float
    excesses: Doubles  # (draws,)


@dataclass(frozen=True)
class _Point:
    fidelity: float
    plain_fidelity: float
    share: CaughtShare

    @classmethod
    def of(cls, trials: Sequence[_Trial]) -> _Point:
        return cls(
            round(float(np.mean([trial.fidelity for trial in trials])), 3),
            round(float(np.mean([trial.plain_fidelity for trial in trials])), 3),
            CaughtShare.of(np.array([trial.excesses for trial in trials])),
        )


def _graded_trials(
    key: Key, mark: GradedMark, questions: Questions, level: float, matched: bool, rng: np.random.Generator
) -> tuple[list[list[_Trial]], int]:
    """Return the trials of every blur, and how many texts each stealer learnt from."""
    bought = np.vstack([_unasked(key, questions), key.pool.embeddings])  # nobody asks a candidate
    few = len(bought) < ENOUGH_BOUGHT
    copies = GradedCopies(mark, questions.probes.embeddings, bought, key.pool.embeddings, buys_asked=few)
    count = max(round(QUERY_SHARE * len(bought)), 1)
    found: list[list[_Trial]] = [[] for _ in BLURS]
    for number in range(SETS):
        view, chosen = copies.view(HIDDEN[number % len(HIDDEN)], rng), rng.permutation(len(bought))[:count]
        for blur, trials in zip(BLURS, found, strict=True):
            copy = copies.copy(view.features(blur), chosen)
            excesses = copies.excesses(copy, level, DRAWS[matched], rng, matched=matched)
            trials.append(_Trial(copy.fidelity, copy.plain_fidelity, excesses))
    return found, count


def _published_trials(
    key: Key, questions: Questions, level: float, rng: np.random.Generator
) -> tuple[list[list[_Trial]], int]:
    """Return the same for a published mark: few stealers, each judged by the whole of decoy-1."""
    unasked, asked = _unasked(key, questions), questions.asked
    bought = unasked if len(unasked) >= _LEAST_TEXTS else key.reservoir.embeddings
    rows = np.vstack([bought, asked.embeddings])
    centred = rows - rows.mean(axis=0)
    components = top_eigenvectors((centred.T @ centred).astype(np.float64), min(_PUBLISHED_SEEN, rows.shape[1]))
    seen: Floats = (centred @ components.T).astype(np.float32)
    count = max(round(QUERY_SHARE * len(bought)), 1)
    found: list[list[_Trial]] = [[] for _ in _PUBLISHED_BLURS]
    for _ in range(SETS):
        view = BlurredView(seen, float(np.square(centred).mean()), _PUBLISHED_HIDDEN, rng)
        chosen = np.sort(rng.permutation(len(bought))[:count])
        for blur, trials in zip(_PUBLISHED_BLURS, found, strict=True):
            features = view.features(blur)
            student = Student.drawn(features[chosen], rows.shape[1], 0, rng)
            stealer = SimulatedStealer(features, chosen, student, _PUBLISHED_PENALTY)
            trials.append(_stolen(key, questions, bought[chosen], stealer, len(bought), level, rng))
    return found, count


def _stolen(
    key: Key, questions: Questions, bought: Floats, stealer: SimulatedStealer, first: int, level: float,
    rng: np.random.Generator,
) -> _Trial:  # fmt: skip
    """Let a stealer copy a fresh draw of targets, and judge its answers to the texts from row ``first`` on."""
    from scipy.special import ndtri

    redrawn, asked = replace(key, master=Secret(rng.bytes(32))), questions.asked
    answers = stealer.steal(RegionMarker.from_key(redrawn).transform(bought))(first + np.arange(len(asked)))
    row_of = {text: row for row, text in enumerate(asked.texts)}
    examination = laid_out(key, questions, lambda texts: answers[[row_of[text] for text in texts]])
    p_value = examination.test(examination.scores()).p_value(redrawn.provider_targets())
    excess = min(-float(ndtri(p_value)), _FAR) + float(ndtri(level)) if p_value > 0 else _FAR
    return _Trial(
        float(row_cosines(_centred(answers), _centred(asked.embeddings)).mean()),
        float(row_cosines(answers, asked.embeddings).mean()),
        np.array([excess]),
    )


def _unasked(key: Key, questions: Questions) -> Floats:
    """Return the clean vectors of the reservoir texts that were not asked."""
    asked = set(questions.probes.texts)
    return key.reservoir.embeddings[[text not in asked for text in key.reservoir.texts]]


def _centred(rows: AnyArray) -> Floats:
    return np.asarray(rows - rows.mean(axis=0), dtype=np.float32)
