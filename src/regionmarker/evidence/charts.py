"""The report's pictures: SVG to be put into a page, the same bytes for the same numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any

import numpy as np

from regionmarker.evidence.disclosure import DECILES, Curve, ProbeMap
from regionmarker.evidence.score_forms import ScoreForm
from regionmarker.plots import GROUPS, GUIDE, INK, MARKED, PLAIN, Axes, Figure, inline, panels, svg
from regionmarker.vectors import Doubles

_WIDE = 7.2
_FIFTHS = ("lowest fifth", "second", "middle", "fourth", "upper fifth")
Chart = Callable[..., str]


def chart(draw: Callable[..., Figure]) -> Chart:
    """Turn a function that draws a figure into one that returns SVG."""

    @wraps(draw)
    def drawn(*arguments: Any) -> str:
        name = draw.__name__
        return inline(svg(name, lambda: draw(*arguments)), name)

    return drawn


@chart
def null_distribution(form: ScoreForm, scores: dict[str, Any]) -> Figure:
    """Draw how many tuples have which total, with the true one marked."""
    lowest, shares = form.distribution(scores)
    values = (lowest + np.arange(len(shares), dtype=np.float64)) * form.step
    figure = Figure(figsize=(_WIDE, 2.7), layout="constrained")
    axes = figure.subplots()
    edges = np.linspace(values[0], values[-1] + form.step, 81)
    heights, _ = np.histogram(values, edges, weights=shares)
    axes.stairs(np.where(heights > 0, heights, np.nan), edges, fill=True, color=PLAIN, baseline=0.0)
    if None not in scores["observed"]:
        _mark_total(axes, sum(scores["observed"]) * form.step, values)
    axes.set_yscale("log")
    axes.set_ylim(top=30 * heights.max())  # room for the label
    axes.set(xlabel="total U of a tuple of pool texts", ylabel="share of all tuples")
    return figure


def _mark_total(axes: Axes, observed: float, values: Doubles) -> None:
    axes.axvline(observed, color=MARKED, linewidth=1.6)
    left = observed > values[0] + 0.6 * (values[-1] - values[0])
    axes.annotate(
        f"this key's targets, U = {observed:.2f}".replace("-", "\N{MINUS SIGN}"),
        (observed, 0.94),
        xycoords=("data", "axes fraction"),
        xytext=(-5 if left else 5, 0),
        textcoords="offset points",
        ha="right" if left else "left",
        va="top",
        color=MARKED,
        fontweight="bold",
    )


def rank_of(scores: dict[str, Any], place: int) -> int | None:
    """Return the rank of a region's target among the pool, 1 the highest; None where it has no answer."""
    observed = scores["observed"][place]
    return None if observed is None else 1 + sum(int(score > observed) for score in scores["lists"][place])


@chart
def pool_ranks(scores: dict[str, Any], names: Sequence[str]) -> Figure:
    """Draw every pool text's score in each region, with the target's marked."""
    figure, shown = panels(len(names), across=3, height=1.9, total=_WIDE)
    for place, (axes, name) in enumerate(zip(shown, names, strict=True)):
        z = np.array(scores["lists"][place]) * scores["step"]
        axes.hist(z, bins=40, color=PLAIN)
        rank = rank_of(scores, place)
        if rank is not None:
            axes.axvline(scores["observed"][place] * scores["step"], color=MARKED, linewidth=1.6)
        found = "not answered" if rank is None else f"rank {rank} of {scores['pool']}"
        axes.set_title(f"{name}: {found}", loc="left")
        axes.set_xlabel("score z")
    shown[0].set_ylabel("pool texts")
    return figure


@chart
def list_scores(scores: dict[str, Any]) -> Figure:
    """Draw the scores of every carrier's list in one strip each, with the target's marked."""
    figure = Figure(figsize=(_WIDE, 2.9), layout="constrained")
    axes = figure.subplots()
    for place, (listed, observed) in enumerate(zip(scores["lists"], scores["observed"], strict=True)):
        z, weight = np.array(listed) * scores["step"], scores["weights"][place]
        axes.plot(np.full(len(z), place), z / weight, "_", color=PLAIN, markersize=9, markeredgewidth=0.8)
        axes.plot(place, observed * scores["step"] / weight, "o", color=MARKED, markersize=5)
    axes.set_xticks(range(len(scores["lists"])), [str(place + 1) for place in range(len(scores["lists"]))], fontsize=7)
    axes.set(xlabel="carrier", ylabel="score z")
    return figure


@chart
def paper_curves(curves: Sequence[Curve], names: Sequence[str]) -> Figure:
    """Draw the paper's comparison in each region: probes inside against probes outside."""
    figure, shown = panels(len(names), across=3, height=2.1, total=_WIDE)
    for axes, name, curve in zip(shown, names, curves, strict=True):
        axes.set_title(name, loc="left")
        if curve.outside is None:
            axes.plot(DECILES * 100, DECILES * 100, color=GUIDE, linewidth=1.2)
            axes.plot(DECILES * 100, curve.inside * 100, color=MARKED, marker="o", markersize=2.5, linewidth=1.2)
            axes.set(xlabel="probes outside, %", ylim=(-3, 103))
        else:
            axes.ecdf(curve.outside, color=PLAIN, linewidth=1.4, label="outside")
            axes.ecdf(curve.inside, color=MARKED, linewidth=1.4, label="inside")
            axes.set_xlabel("cosine to the target")
    summary = not curves or curves[0].outside is None
    shown[0].set_ylabel("probes inside, %" if summary else "share of probes below")
    if not summary:
        shown[0].legend(loc="lower right", handlelength=1.2)
    return figure


@chart
def power_curve(power: dict[str, Any]) -> Figure:
    """Draw how often simulated copies of each fidelity are caught, with the interval where there is one."""
    figure = Figure(figsize=(_WIDE, 2.3), layout="constrained")
    axes = figure.subplots()
    axes.axhline(power["wanted"] * 100, color=GUIDE, linewidth=1.2)
    shares = np.array(power["detected"]) * 100
    axes.plot(power["fidelities"], shares, color=INK, marker="o", markersize=4)
    if power.get("low"):
        low, high = np.array(power["low"]) * 100, np.array(power["high"]) * 100
        axes.errorbar(power["fidelities"], shares, yerr=[shares - low, high - shares], color=INK, capsize=3, fmt="none")
    if power["caught"] is not None:
        axes.axvline(power["caught"], color=MARKED, linewidth=1.2, linestyle=(0, (4, 3)))
        axes.annotate(
            f"{power['wanted']:.0%} caught from {power['caught']:g}",
            (power["caught"], 0.08),
            xycoords=("data", "axes fraction"),
            xytext=(5, 0),
            textcoords="offset points",
            color=MARKED,
        )
    axes.set(xlabel="fidelity of the copy", ylabel="copies caught, %", ylim=(-4, 106))
    return figure


@chart
def probe_map(shown: ProbeMap, names: Sequence[str]) -> Figure:
    """Draw where the probes lie in two of the secret coordinates, coloured by region or by their carrier's fifth."""
    figure = Figure(figsize=(_WIDE, 4.2), layout="constrained")
    axes = figure.subplots()
    groups, labels = shown.groups, ("outside", *names)
    if shown.shown is not None:
        groups, labels = shown.groups[:, shown.shown], _FIFTHS
    for number, name in enumerate(labels):
        x, y = shown.coordinates[groups == number].T
        colour = GUIDE if number == 0 else GROUPS[(number - 1) % len(GROUPS)]
        axes.plot(x, y, ".", color=colour, markersize=3 if number == 0 else 5, label=name)
    axes.axhline(0.0, color=INK, linewidth=0.8)
    axes.axvline(0.0, color=INK, linewidth=0.8)
    axes.set(xlabel="distance to one hyperplane", ylabel="distance to another")
    axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), markerscale=2)
    return figure
