"""Which choice to recommend.

1. For keys with marks for tenants, and without: a TEST key is made from the provider's part of the corpus, and the
   strength is found for every share of neighbours to keep.
2. Twelve sets, each with hyperplanes, a stealer and a query set of its own: the stealer is weakened until it has the
   wanted fidelity, and its copy is judged at every strength, as it is and as if it had been rotated. Half of the
   stealers are networks, half are linear.
3. The share caught has an interval over the sets of each kind; the promise reaches from the lower end of the worse kind
   to the upper end of the better one. Recommended is what costs least among the choices whose lower end is what is
   wanted, rotated or not, one with marks for tenants where there is one; else among those that hold for copies that
   were not rotated; else the choice that catches most.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from regionmarker.errors import InputError
from regionmarker.planning.goals import Choice, Choices, Goals
from regionmarker.planning.trials import CLOSE, KINDS, SETS, PlanningCorpus, Trial, TrialLog, TrialRunner
from regionmarker.progress import Progress
from regionmarker.verification.power import CaughtShare

BOTH, UNROTATED, ROTATED, NEITHER = "both", "unrotated", "rotated", "neither"


@dataclass(frozen=True)
class Outcome:
    """What trials say of one choice.

    Attributes
    ----------
    strength
        What keeps the chosen share of neighbours.
    unrotated, rotated
        The share of copies that are caught, as they are and after any rotation, each with an interval that holds for
        every kind of stealer.
    by_kind
        The same for each kind alone, with its own interval over its sets: by kind, then "unrotated" and "rotated".
    """

    choice: Choice
    strength: float
    unrotated: CaughtShare
    rotated: CaughtShare
    by_kind: dict[str, dict[str, CaughtShare]]

    def holds(self, power: float) -> str:
        """Say for which copies the lower end is what is wanted: "both", "unrotated" or "neither"."""
        if self.unrotated.low < power:
            return NEITHER
        return BOTH if self.rotated.low >= power else UNROTATED

    def to_dict(self) -> dict[str, object]:
        plain = asdict(self)
        return {**plain.pop("choice"), "keygen": self.choice.options, **plain}


@dataclass(frozen=True)
class Plan:
    """The recommendation, and everything that it rests on.

    Attributes
    ----------
    fidelity, plain_fidelity
        Of the stealers that were judged, on average; the second with the means left in.
    lowest_fidelity, highest_fidelity
        Of the worst and the best of them.
    best_fidelity
        What they reach without any noise, on average.
    queries, asked, texts
        Texts that stealers buy from (each has its own four fifths), that a verdict asks, and of the whole corpus.
    sets
        Stealers.
    """

    goals: Goals
    outcomes: tuple[Outcome, ...]
    recommended: Outcome
    fidelity: float
    plain_fidelity: float
    lowest_fidelity: float
    highest_fidelity: float
    best_fidelity: float
    queries: int
    asked: int
    texts: int
    sets: int

    @property
    def met(self) -> bool:
        """Whether every stealer has the wanted fidelity, within 0.02."""
        wanted = self.goals.fidelity
        return wanted - CLOSE <= self.lowest_fidelity and self.highest_fidelity <= wanted + CLOSE

    @property
    def catches(self) -> str:
        return self.recommended.holds(self.goals.power)

    def to_dict(self) -> dict[str, object]:
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__}
        return {
            **plain,
            "goals": asdict(self.goals),
            "recommended": self.recommended.to_dict(),
            "outcomes": [outcome.to_dict() for outcome in self.outcomes],
            "met": self.met,
            "catches": self.catches,
        }


def plan(
    corpus: PlanningCorpus,
    goals: Goals | None = None,
    choices: Choices | None = None,
    *,
    sets: int = SETS,
    store: Path | None = None,
    progress: Progress | None = None,
) -> Plan:
    """Say what a verdict would catch with each choice, and recommend one.

    Parameters
    ----------
    corpus
        The corpus, divided between the stealer and the key.
    goals, choices
        What is wanted, what is tried.
    sets
        Stealers, each with a query set and hyperplanes of its own; the two kinds by turns.
    store
        A file in which finished trials are kept, so that a plan that was stopped goes on.
    progress
        Called after each step.
    """
    goals, choices = goals or Goals(), choices or Choices()
    if sets < 2 * len(KINDS):
        raise InputError(f"sets is {sets}, but intervals for {len(KINDS)} kinds need at least {2 * len(KINDS)}")
    runner = TrialRunner(corpus, TrialLog(store, corpus.digest), goals)
    total, done = len(choices.tenants) * (len(choices.kept) + sets), 0

    def tick() -> None:
        nonlocal done
        done += 1
        if progress is not None:
            progress(done, total)

    outcomes: list[Outcome] = []
    trials: list[Trial] = []
    for tenants in sorted(choices.tenants, reverse=True):
        group = [choice for choice in choices if choice.tenants == tenants]
        strengths = []
        for choice in group:
            strengths.append(runner.strength(choice))
            tick()
        found = []
        for number in range(sets):
            found.append(runner.trial(group, number))
            tick()
        outcomes += [_outcome(choice, strength, found) for choice, strength in zip(group, strengths, strict=True)]
        trials += found
    order = list(choices)
    outcomes.sort(key=lambda outcome: order.index(outcome.choice))
    return Plan(
        goals,
        tuple(outcomes),
        recommended(outcomes, goals.power),
        round(float(np.mean([trial.fidelity for trial in trials])), 3),
        round(float(np.mean([trial.plain_fidelity for trial in trials])), 3),
        round(min(trial.fidelity for trial in trials), 3),
        round(max(trial.fidelity for trial in trials), 3),
        round(float(np.mean([trial.best for trial in trials])), 3),
        queries=len(corpus.queries),
        asked=trials[0].asked,
        texts=len(corpus.texts),
        sets=sets,
    )


def recommended(outcomes: Sequence[Outcome], power: float) -> Outcome:
    """Return the first of the outcomes, which begin with the cheapest, that holds; else the one that catches most.

    Marks for tenants are given up only where nothing else holds.
    """
    in_order = sorted(outcomes, key=lambda outcome: not outcome.choice.tenants)
    for wanted in ((BOTH,), (BOTH, UNROTATED)):
        for outcome in in_order:
            if outcome.holds(power) in wanted:
                return outcome
    return max(outcomes, key=lambda outcome: outcome.unrotated.low + outcome.rotated.low)


def _outcome(choice: Choice, strength: float, trials: Sequence[Trial]) -> Outcome:
    def caught(kind: str, name: str) -> CaughtShare:
        return CaughtShare.of(
            np.array([getattr(trial, name)[f"{choice.kept:g}"] for trial in trials if trial.kind == kind])
        )

    by_kind = {kind: {name: caught(kind, name) for name in (UNROTATED, ROTATED)} for kind in KINDS}
    unrotated, rotated = (
        CaughtShare.covering([of_kind[name] for of_kind in by_kind.values()]) for name in (UNROTATED, ROTATED)
    )
    return Outcome(choice, round(strength, 4), unrotated, rotated, by_kind)


def draw_plan(path: Path, plan: Plan) -> None:
    """Draw the share of copies caught over the share of neighbours kept, as they are and rotated."""
    from regionmarker.plots import MARKED, PLAIN, Figure  # matplotlib is optional

    figure = Figure(figsize=(9, 3.6), layout="constrained")
    panels: Sequence[Any] = figure.subplots(1, 2, sharey=True)
    for axes, name in zip(panels, ("unrotated", "rotated"), strict=True):
        for tenants, colour, shift in ((True, MARKED, -0.001), (False, PLAIN, 0.001)):
            group = [one for one in plan.outcomes if one.choice.tenants == tenants]
            if not group:
                continue
            shares: list[CaughtShare] = [getattr(one, name) for one in group]
            bars = [[share.detected - share.low for share in shares], [share.high - share.detected for share in shares]]
            axes.errorbar(
                [one.choice.kept + shift for one in group], [100 * share.detected for share in shares],
                yerr=100 * np.array(bars), color=colour, marker="o", capsize=3,
                label="with tenants" if tenants else "without tenants",
            )  # fmt: skip
        axes.axhline(100 * plan.goals.power, color=PLAIN, linestyle="--", linewidth=0.8)
        axes.set(title=f"Copies of fidelity {plan.fidelity:.2f}, {name}", xlabel="neighbours kept", ylim=(-4, 104))
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel("copies caught, %")
    panels[0].legend(frameon=False)
    figure.savefig(path, format="svg")
