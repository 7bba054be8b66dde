"""The curves of a plan: what each setting costs and brings, and what happens when the thief is another."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from regionmarker.planning.search import Outcome, Plan
from regionmarker.plots import MARKED, PLAIN, Figure


def draw_plan(path: Path, plan: Plan) -> None:
    """Draw the trade-off of all candidates, and the share of thieves caught over fidelity and over queries."""
    figure = Figure(figsize=(12, 3.8), layout="constrained")
    left, middle, right = figure.subplots(1, 3)
    good = [outcome for outcome in plan.tried if not outcome.failed]
    left.scatter([100 * one.utility_loss for one in good], [one.signal for one in good], color=PLAIN, s=18)
    if plan.recommended is not None:
        left.scatter(
            [100 * plan.recommended.utility_loss], [plan.recommended.signal], color=MARKED, label="recommended"
        )
    left.axvline(100 * plan.wishes.utility_loss, color=PLAIN, linestyle="--", linewidth=0.8, label="allowed")
    left.set(title="Settings", xlabel="neighbours changed by marking, %", ylabel="signal U / √R")
    left.legend(frameon=False)
    _share(middle, plan.by_fidelity, [one.fidelity for one in plan.by_fidelity], "fidelity of the thief")
    _share(right, plan.by_queries, [one.queries for one in plan.by_queries], "texts that the thief asks")
    for axes in (left, middle, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, format="svg")


def _share(axes: Any, outcomes: Sequence[Outcome], values: Sequence[float], label: str) -> None:
    axes.plot(values, [100 * one.caught for one in outcomes], color=MARKED, marker="o")
    axes.set(title="Caught, recommended settings", xlabel=label, ylabel="share of thieves, %", ylim=(-4, 104))
