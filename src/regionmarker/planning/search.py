"""Which settings to try, and which to recommend.

1. Every candidate of the first subspace is tried on a few keys, each with a few draws of its targets.
2. Among those that cost no more utility than is allowed, the one with the strongest signal is taken.
3. At its settings the other subspaces are tried; one replaces the first only where it is better by more than two
   standard errors, because the first was chosen for reasons that a plan does not measure.
4. The winner is tried again on fresh keys: a winner of many flatters itself. Only these trials say whether a thief
   would be caught, and the same keys are tried on a copy of unmarked vectors.
5. The winner meets better, worse and thriftier thieves: the curves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path

import numpy as np

from regionmarker.errors import InputError, RegionMarkerError
from regionmarker.planning.goals import Candidate, Choices, Wishes, within
from regionmarker.planning.material import Material
from regionmarker.planning.shadows import Quality, Shadow, find_shadow
from regionmarker.planning.trials import Bench, Store, Trial
from regionmarker.progress import Progress

_FRESH = 1000  # keys of the confirmation are numbered from here
_INNOCENT_DRAWS = 1000
_SHARES = (0.25, 0.5, 1.0)
_STEPS = 3  # points of the curve over fidelity, besides the wanted thief's


@dataclass(frozen=True)
class Outcome:
    """What trials say of one candidate against one thief."""

    candidate: Candidate
    fidelity: float
    queries: int
    utility_loss: float
    cosine: float
    signal: float
    """Mean of U / sqrt(R)."""
    error: float
    """Standard error of the signal."""
    caught: float
    """Share of trials with p at or below the level."""
    trials: int
    failed: str = ""
    """Why there is no such key on this corpus; then all else is NaN."""

    def to_dict(self) -> dict[str, object]:
        """Return plain values."""
        plain = asdict(self)
        chosen = plain.pop("candidate")
        return {**chosen, "regions": self.candidate.regions, **{name: _plain(value) for name, value in plain.items()}}


@dataclass(frozen=True)
class Plan:
    """The recommendation, and everything that it rests on."""

    wishes: Wishes
    recommended: Outcome | None
    """The winner on fresh keys; None where no candidate is within the utility that is allowed."""
    interval: tuple[float, float]
    """95 % Wilson interval of the share caught."""
    innocents: float
    """Share of target draws that convict a copy of unmarked vectors; the level is what it should be near, or below."""
    tried: tuple[Outcome, ...]
    by_fidelity: tuple[Outcome, ...]
    by_queries: tuple[Outcome, ...]
    thief: str
    texts: int

    @property
    def catches(self) -> bool:
        """Whether the wanted share of such thieves would be caught."""
        return self.recommended is not None and self.recommended.caught >= self.wishes.power

    def to_dict(self) -> dict[str, object]:
        """Return plain values."""
        lists = {name: [outcome.to_dict() for outcome in getattr(self, name)] for name in _LISTS}
        return {
            "wishes": asdict(self.wishes),
            "recommended": None if self.recommended is None else self.recommended.to_dict(),
            "catches": self.catches,
            "interval": list(self.interval),
            "innocents_convicted": _plain(self.innocents),
            "thief": self.thief,
            "texts": self.texts,
            **lists,
        }


_LISTS = ("tried", "by_fidelity", "by_queries")


def _plain(value: object) -> object:
    """Return None for NaN, which JSON does not have."""
    return None if isinstance(value, float) and np.isnan(value) else value


def plan(
    material: Material,
    wishes: Wishes | None = None,
    choices: Choices | None = None,
    *,
    keys: int = 3,
    draws: int = 1,
    confirm: int = 12,
    store: Path | None = None,
    progress: Progress | None = None,
) -> Plan:
    """Recommend settings for a corpus.

    Parameters
    ----------
    material
        The corpus; its ``query_share`` should be the wishes'.
    wishes, choices
        What is wanted, what is tried.
    keys, draws
        Keys a candidate, and draws of the targets a key.
    confirm
        Fresh keys for the winner, each with as many draws.
    store
        A file in which finished trials are kept, so that a plan that was stopped goes on.
    progress
        Called after each trial.
    """
    wishes, choices = wishes or Wishes(), choices or Choices()
    if min(keys, draws, confirm) < 1:
        raise InputError("keys, draws and confirm must be at least 1")
    bench = Bench(material, Store(store, material.digest), wishes.level)
    shadow, ladder = find_shadow(material, wishes.fidelity)
    search = _Search(bench, shadow, keys, draws, confirm, _counted(choices, material, keys, draws, confirm, progress))
    tried = search.all(list(choices.candidates(material.width)))
    best = _best(tried, wishes.utility_loss)
    if best is None:
        return Plan(
            wishes, None, (0.0, 1.0), float("nan"), tuple(tried), (), (), str(shadow.quality), len(material.texts)
        )
    subspaces = {within(given, best.candidate.dimension, material.width) for given in choices.subspaces}
    others = search.all([replace(best.candidate, subspace=k) for k in sorted(subspaces - {best.candidate.subspace})])
    best = _replaced(best, others, wishes.utility_loss)
    final = search.outcome(best.candidate, shadow, range(_FRESH, _FRESH + confirm))
    return Plan(
        wishes,
        final,
        wilson(final.caught, final.trials),
        search.innocents(best.candidate),
        (*tried, *others),
        tuple(search.over_fidelity(best.candidate, ladder)),
        tuple(search.over_queries(best.candidate)),
        str(shadow.quality),
        len(material.texts),
    )


def wilson(share: float, count: int) -> tuple[float, float]:
    """Return the 95 % interval of a share that was seen in ``count`` trials.

    Examples
    --------
    >>> [round(end, 2) for end in wilson(1.0, 20)]
    [0.84, 1.0]
    """
    z = 1.96
    middle, spread = share + z**2 / (2 * count), z * np.sqrt(share * (1 - share) / count + z**2 / (4 * count**2))
    scale = 1 + z**2 / count
    return float(max(0.0, (middle - spread) / scale)), float(min(1.0, (middle + spread) / scale))


@dataclass(frozen=True)
class _Search:
    bench: Bench
    shadow: Shadow
    keys: int
    draws: int
    confirm: int
    tick: Callable[[int], None]

    def all(self, candidates: Sequence[Candidate]) -> list[Outcome]:
        """Try candidates; the keys of one dimension, ratio and subspace are made once for all strengths."""
        found: dict[Candidate, list[Trial] | str] = {candidate: [] for candidate in candidates}
        kinds = dict.fromkeys((c.dimension, c.ratio, c.subspace) for c in candidates)
        for kind, number in product(kinds, range(self.keys)):
            for candidate in candidates:
                if (candidate.dimension, candidate.ratio, candidate.subspace) == kind:
                    found[candidate] = self._added(found[candidate], candidate, number, self.shadow)
        return [self._outcome(candidate, trials, self.shadow) for candidate, trials in found.items()]

    def outcome(self, candidate: Candidate, shadow: Shadow, numbers: range) -> Outcome:
        """Try one candidate on given keys against one thief."""
        trials: list[Trial] | str = []
        for number in numbers:
            trials = self._added(trials, candidate, number, shadow)
        return self._outcome(candidate, trials, shadow)

    def innocents(self, candidate: Candidate) -> float:
        shares = [
            self.bench.convicted_innocents(candidate, _FRESH + number, self.shadow, _INNOCENT_DRAWS)
            for number in range(self.keys)
        ]
        return float(np.mean(shares))

    def over_fidelity(self, candidate: Candidate, ladder: Sequence[tuple[Quality, float]]) -> list[Outcome]:
        """Meet thieves from the worst on the ladder to the wanted one."""
        places = sorted({round(place) for place in np.linspace(0, len(ladder) - 1, _STEPS + 1)})
        numbers = range(_FRESH, _FRESH + self.keys)
        shadows = (Shadow(self.bench.material, ladder[place][0]) for place in places)
        return sorted((self.outcome(candidate, shadow, numbers) for shadow in shadows), key=lambda one: one.fidelity)

    def over_queries(self, candidate: Candidate) -> list[Outcome]:
        """Meet the wanted thief when it asks less."""
        found = []
        for share in _SHARES:
            count = max(50, round(share * len(self.shadow.queries)))
            shadow = Shadow(self.bench.material, self.shadow.quality, count)
            found.append(self.outcome(candidate, shadow, range(_FRESH, _FRESH + self.keys)))
        return found

    def _added(self, trials: list[Trial] | str, candidate: Candidate, number: int, shadow: Shadow) -> list[Trial] | str:
        if isinstance(trials, str):
            self.tick(self.draws)
            return trials
        for draw in range(self.draws):
            try:
                trials.append(self.bench.trial(candidate, number, draw, shadow))
            except RegionMarkerError as error:  # too few populated regions, or no probes in one
                self.tick(self.draws - draw)
                return str(error)
            self.tick(1)
        return trials

    def _outcome(self, candidate: Candidate, trials: list[Trial] | str, shadow: Shadow) -> Outcome:
        nan = float("nan")
        if isinstance(trials, str):
            return Outcome(candidate, shadow.fidelity, len(shadow.queries), nan, nan, nan, nan, nan, 0, trials)
        signals = [trial.signal for trial in trials]
        return Outcome(
            candidate,
            shadow.fidelity,
            len(shadow.queries),
            utility_loss=float(np.mean([trial.utility_loss for trial in trials])),
            cosine=float(np.mean([trial.cosine for trial in trials])),
            signal=float(np.mean(signals)),
            error=float(np.std(signals, ddof=1) / np.sqrt(len(signals))) if len(signals) > 1 else nan,
            caught=float(np.mean([trial.p_value <= self.bench.level for trial in trials])),
            trials=len(trials),
        )


def _best(tried: Sequence[Outcome], utility_loss: float) -> Outcome | None:
    fit = [outcome for outcome in tried if not outcome.failed and outcome.utility_loss <= utility_loss]
    return max(fit, key=lambda outcome: outcome.signal, default=None)


def _replaced(best: Outcome, others: Sequence[Outcome], utility_loss: float) -> Outcome:
    other = _best(others, utility_loss)
    if other is None or not other.signal - best.signal > 2 * np.hypot(other.error, best.error):
        return best
    return other


def _counted(
    choices: Choices, material: Material, keys: int, draws: int, confirm: int, progress: Progress | None
) -> Callable[[int], None]:
    """Return a function that counts finished trials."""
    count = len(list(choices.candidates(material.width)))
    total = draws * (keys * (count + len(choices.subspaces) - 1 + _STEPS + 1 + len(_SHARES)) + confirm)
    done = 0

    def tick(more: int) -> None:
        nonlocal done
        done += more
        if progress is not None:
            progress(min(done, total), total)

    return tick
