"""Which settings to try, and which to recommend.

1. Every candidate of the first subspace is tried on a few keys, each with a few draws of its targets.
2. Among those that cost no more utility than is allowed, the one with the strongest signal is taken.
3. At its settings the other subspaces are tried; one replaces the first only where it is better by more than two
   standard errors, because the first was chosen for reasons that a plan does not measure.
4. The winner is tried again on fresh keys: a winner of many flatters itself. Only these trials say whether a stealer
   would be caught, and the same keys are tried on a copy of unmarked vectors.
5. The winner meets better, worse and thriftier stealers: the curves.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from regionmarker.errors import InputError, RegionMarkerError
from regionmarker.planning.goals import Candidate, Choices, Goals, within
from regionmarker.planning.trials import PlannedStealer, PlanningCorpus, Trial, TrialLog, TrialRunner, find_stealer
from regionmarker.progress import Progress
from regionmarker.verification.simulated_stealer import StudentView

_FRESH = 1000  # keys of the confirmation are numbered from here
_INNOCENT_DRAWS = 1000
_SHARES = (0.25, 0.5, 1.0)
_STEPS = 3  # points of the curve over fidelity, besides the wanted stealer's


@dataclass(frozen=True)
class Outcome:
    """What trials say of one candidate against one stealer."""

    candidate: Candidate
    fidelity: float
    queries: int
    utility_loss: float
    cosine: float
    signal: float  # mean of U / sqrt(R)
    error: float  # standard error of the signal
    caught: float  # share of trials with p at or below the level
    trials: int
    failed: str = ""  # why there is no such key on this corpus; then all else is NaN

    def to_dict(self) -> dict[str, object]:
        plain = asdict(self)
        chosen = plain.pop("candidate")
        return {**chosen, "regions": self.candidate.regions, **{name: _plain(value) for name, value in plain.items()}}


@dataclass(frozen=True)
class Plan:
    """The recommendation, and everything that it rests on."""

    goals: Goals
    recommended: Outcome | None  # the winner on fresh keys; None where no candidate is within the utility allowed
    interval: tuple[float, float]  # 95 % Wilson interval of the share caught
    innocents: float  # share of target draws that convict a copy of unmarked vectors: near the level, or below
    tried: tuple[Outcome, ...]
    by_fidelity: tuple[Outcome, ...]
    by_queries: tuple[Outcome, ...]
    thief: str
    texts: int

    @property
    def catches(self) -> bool:
        return self.recommended is not None and self.recommended.caught >= self.goals.power

    def to_dict(self) -> dict[str, object]:
        names = ("tried", "by_fidelity", "by_queries")
        return {
            "wishes": asdict(self.goals),
            "recommended": None if self.recommended is None else self.recommended.to_dict(),
            "catches": self.catches,
            "interval": list(self.interval),
            "innocents_convicted": _plain(self.innocents),
            "thief": self.thief,
            "texts": self.texts,
            **{name: [outcome.to_dict() for outcome in getattr(self, name)] for name in names},
        }


def _plain(value: object) -> object:
    """Return None for NaN, which JSON does not have."""
    return None if isinstance(value, float) and np.isnan(value) else value


def plan(
    corpus: PlanningCorpus,
    goals: Goals | None = None,
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
    corpus
        The corpus; its ``query_share`` should be the goals'.
    goals, choices
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
    goals, choices = goals or Goals(), choices or Choices()
    if min(keys, draws, confirm) < 1:
        raise InputError("keys, draws and confirm must be at least 1")
    runner = TrialRunner(corpus, TrialLog(store, corpus.digest), goals.level)
    stealer, ladder = find_stealer(corpus, goals.fidelity)
    search = _Search(runner, stealer, keys, draws, confirm, _counted(choices, corpus, keys, draws, confirm, progress))
    tried = search.all(list(choices.candidates(corpus.width)))
    best = _best(tried, goals.utility_loss)
    if best is None:
        return Plan(goals, None, (0.0, 1.0), float("nan"), tuple(tried), (), (), str(stealer.view), len(corpus.texts))
    subspaces = {within(given, best.candidate.dimension, corpus.width) for given in choices.subspaces}
    others = search.all([replace(best.candidate, subspace=k) for k in sorted(subspaces - {best.candidate.subspace})])
    best = _replaced(best, others, goals.utility_loss)
    final = search.outcome(best.candidate, stealer, range(_FRESH, _FRESH + confirm))
    return Plan(
        goals,
        final,
        wilson(final.caught, final.trials),
        search.innocents(best.candidate),
        (*tried, *others),
        tuple(search.over_fidelity(best.candidate, ladder)),
        tuple(search.over_queries(best.candidate)),
        str(stealer.view),
        len(corpus.texts),
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
    runner: TrialRunner
    stealer: PlannedStealer
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
                    found[candidate] = self._added(found[candidate], candidate, number, self.stealer)
        return [self._outcome(candidate, trials, self.stealer) for candidate, trials in found.items()]

    def outcome(self, candidate: Candidate, stealer: PlannedStealer, numbers: range) -> Outcome:
        trials: list[Trial] | str = []
        for number in numbers:
            trials = self._added(trials, candidate, number, stealer)
        return self._outcome(candidate, trials, stealer)

    def innocents(self, candidate: Candidate) -> float:
        shares = [
            self.runner.convicted_innocents(candidate, _FRESH + number, self.stealer, _INNOCENT_DRAWS)
            for number in range(self.keys)
        ]
        return float(np.mean(shares))

    def over_fidelity(self, candidate: Candidate, ladder: Sequence[tuple[StudentView, float]]) -> list[Outcome]:
        """Meet stealers from the worst on the ladder to the wanted one."""
        places = sorted({round(place) for place in np.linspace(0, len(ladder) - 1, _STEPS + 1)})
        numbers = range(_FRESH, _FRESH + self.keys)
        stealers = (PlannedStealer(self.runner.corpus, ladder[place][0]) for place in places)
        return sorted((self.outcome(candidate, stealer, numbers) for stealer in stealers), key=lambda one: one.fidelity)

    def over_queries(self, candidate: Candidate) -> list[Outcome]:
        """Meet the wanted stealer when it asks less."""
        found = []
        for share in _SHARES:
            count = max(50, round(share * len(self.stealer.asked)))
            stealer = PlannedStealer(self.runner.corpus, self.stealer.view, count)
            found.append(self.outcome(candidate, stealer, range(_FRESH, _FRESH + self.keys)))
        return found

    def _added(
        self, trials: list[Trial] | str, candidate: Candidate, number: int, stealer: PlannedStealer
    ) -> list[Trial] | str:
        if isinstance(trials, str):
            self.tick(self.draws)
            return trials
        for draw in range(self.draws):
            try:
                trials.append(self.runner.trial(candidate, number, draw, stealer))
            except RegionMarkerError as error:  # too few populated regions, or no probes in one
                self.tick(self.draws - draw)
                return str(error)
            self.tick(1)
        return trials

    def _outcome(self, candidate: Candidate, trials: list[Trial] | str, stealer: PlannedStealer) -> Outcome:
        nan = float("nan")
        if isinstance(trials, str):
            return Outcome(candidate, stealer.fidelity, len(stealer.asked), nan, nan, nan, nan, nan, 0, trials)
        signals = [trial.signal for trial in trials]
        return Outcome(
            candidate,
            stealer.fidelity,
            len(stealer.asked),
            utility_loss=float(np.mean([trial.utility_loss for trial in trials])),
            cosine=float(np.mean([trial.cosine for trial in trials])),
            signal=float(np.mean(signals)),
            error=float(np.std(signals, ddof=1) / np.sqrt(len(signals))) if len(signals) > 1 else nan,
            caught=float(np.mean([trial.p_value <= self.runner.level for trial in trials])),
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
    choices: Choices, corpus: PlanningCorpus, keys: int, draws: int, confirm: int, progress: Progress | None
) -> Callable[[int], None]:
    """Return a function that counts finished trials."""
    count = len(list(choices.candidates(corpus.width)))
    total = draws * (keys * (count + len(choices.subspaces) - 1 + _STEPS + 1 + len(_SHARES)) + confirm)
    done = 0

    def tick(more: int) -> None:
        nonlocal done
        done += more
        if progress is not None:
            progress(min(done, total), total)

    return tick


def draw_plan(path: Path, plan: Plan) -> None:
    """Draw the trade-off of all candidates, and the share of stealers caught over fidelity and over queries."""
    from regionmarker.plots import MARKED, PLAIN, Figure  # matplotlib is optional

    figure = Figure(figsize=(12, 3.8), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    good = [outcome for outcome in plan.tried if not outcome.failed]
    left.scatter([100 * one.utility_loss for one in good], [one.signal for one in good], color=PLAIN, s=18)
    if plan.recommended is not None:
        left.scatter(
            [100 * plan.recommended.utility_loss], [plan.recommended.signal], color=MARKED, label="recommended"
        )
    left.axvline(100 * plan.goals.utility_loss, color=PLAIN, linestyle="--", linewidth=0.8, label="allowed")
    left.set(title="Settings", xlabel="neighbours changed by marking, %", ylabel="signal U / √R")
    left.legend(frameon=False)
    _share(middle, plan.by_fidelity, [one.fidelity for one in plan.by_fidelity], "fidelity of the thief")
    _share(right, plan.by_queries, [one.queries for one in plan.by_queries], "texts that the thief asks")
    for axes in (left, middle, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, format="svg")


def _share(axes: Any, outcomes: Sequence[Outcome], values: Sequence[float], label: str) -> None:
    from regionmarker.plots import MARKED

    axes.plot(values, [100 * one.caught for one in outcomes], color=MARKED, marker="o")
    axes.set(title="Caught, recommended settings", xlabel=label, ylabel="share of thieves, %", ylim=(-4, 104))
