"""Curves: the paper's sweeps with power beside them, and power by fidelity, attack and cost."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import partial

import numpy as np

from regionmarker.benchmark.defenses import look_of
from regionmarker.benchmark.grid.cell import NO_DEFENSE
from regionmarker.benchmark.tables.power import Point, losses, swept
from regionmarker.benchmark.tables.results import LEVEL, Results, corpus_title, default_settings, label, scheme, title
from regionmarker.plots import GROUPS, Axes, Draw, Figure, panels

_FLOOR = 1e-10
_GREY = "#dde1e8"  # a test that cannot be applied, or a cell that is not there


def curves(results: Results) -> Iterable[tuple[str, str, Draw]]:
    """Yield name, caption and drawing of every figure that the rows allow."""
    for sweep in swept(results):
        caption = (
            f"{title(sweep.scheme)}, effect of {sweep.symbol}: Δcos (solid) and copies caught at {LEVEL:g} "
            "(dashed, right)."
        )
        yield sweep.name, caption, partial(_sweep, sweep.points, sweep.symbol)
    copies = results.where(default_settings).copies.where(
        lambda row: row["decoy_p"] is not None and row["fidelity"] is not None
    )
    if copies:
        caption = "Fidelity of every copy and the p-value of the decoy test; below the line it is caught."
        yield "fidelity", caption, lambda: _fidelity(copies)
        caption = f"Share of copies caught at {LEVEL:g}, by attack and defense."
        yield "attacks", caption, lambda: _matrix(results.where(default_settings).most_common_setup())
    if results.innocents:
        caption = "How often each test convicts blameless suspects; the decoy test is asked for one in a thousand."
        yield "false-positives", caption, lambda: _rates(results)
    if results.copies:
        yield "trade-off", "What a setting costs an honest customer, and what it catches.", lambda: _trade_off(results)


def _sweep(points: list[Point], symbol: str) -> Figure:
    corpora = list(dict.fromkeys(point.corpus for point in points))
    attacks = list(dict.fromkeys(point.attack for point in points))
    figure, grid = panels(len(corpora), width=3.0)
    for axes, corpus in zip(grid, corpora, strict=True):
        right = axes.twinx()
        for attack, colour in zip(attacks, GROUPS * len(attacks), strict=False):
            of = [point for point in points if (point.corpus, point.attack) == (corpus, attack)]
            where = [point.value for point in of]
            axes.plot(where, [100 * _mean(point.rows.copies.values("delta_cos")) for point in of], "o-", color=colour,
                      markersize=3, label=attack)  # fmt: skip
            right.plot(where, [point.power for point in of], "s--", color=colour, markersize=3, alpha=0.6)
        axes.set(title=corpus_title(corpus), xlabel=symbol, ylabel="Δcos, %")
        right.set(ylim=(-0.05, 1.05), ylabel="caught")
        if symbol == "queries":
            counts = sorted({point.value for point in points})
            axes.set_xscale("log")
            axes.set_xticks(counts, [f"{count:,.0f}" for count in counts], rotation=45)
            axes.minorticks_off()
    grid[0].legend()
    return figure


def _fidelity(copies: Results) -> Figure:
    figure, (axes,) = panels(1, width=5.6, height=3.2)
    for name, some in copies.by(scheme).items():
        fidelity = [row["fidelity"] for row in some]
        axes.scatter(fidelity, [max(row["decoy_p"], _FLOOR) for row in some], s=9, color=look_of(name).colour,
                     label=title(name), linewidths=0)  # fmt: skip
    axes.axhline(LEVEL, color="#1f2733", linewidth=0.8)
    axes.set(yscale="log", xlabel="fidelity of the copy", ylabel="p of the decoy test")
    figure.legend(loc="outside lower center", ncols=3)
    return figure


def _matrix(results: Results) -> Figure:
    names = results.copies.schemes()
    attacks = list(dict.fromkeys(row["attack"] for row in results.copies))
    power = np.full((len(attacks), len(names)), np.nan)
    impossible = np.zeros(power.shape, dtype=bool)
    for (attack, name), some in results.copies.by(lambda row: (row["attack"], scheme(row))).items():
        caught, judged = some.detected()
        place = attacks.index(attack), names.index(name)
        impossible[place] = bool(judged) and not some.where(error=None).values("decoy_p")
        if judged and not impossible[place]:
            power[place] = caught / judged
    figure = Figure(figsize=(1.05 * len(names) + 2.6, 0.26 * len(attacks) + 1.1), layout="constrained")
    axes: Axes = figure.subplots()
    # Not imshow: that puts a bitmap into the page, and the page may load nothing.
    axes.set_facecolor(_GREY)
    axes.pcolormesh(np.ma.masked_invalid(power), cmap="RdYlGn", vmin=0, vmax=1, edgecolors="white", linewidth=0.5)
    for row, column in np.argwhere(impossible):
        axes.text(column + 0.5, row + 0.5, "n/a", ha="center", va="center", color="#4a5362")
    axes.invert_yaxis()
    for row, column in np.argwhere(np.isfinite(power)):
        colour = "white" if abs(power[row, column] - 0.5) > 0.35 else "#1f2733"  # both ends of the scale are dark
        axes.text(column + 0.5, row + 0.5, f"{power[row, column]:.2f}", ha="center", va="center", color=colour)
    axes.set_xticks(np.arange(len(names)) + 0.5, [_two_lines(title(name)) for name in names])
    axes.set_yticks(np.arange(len(attacks)) + 0.5, attacks)
    axes.tick_params(length=0)
    return figure


def _rates(results: Results) -> Figure:
    names = results.innocents.schemes()
    figure, (axes,) = panels(1, width=7.0, height=2.8)
    groups = [results.innocents.of(name) for name in names]
    tests = {
        "published rule": [some.called_copies() for some in groups],
        "decoy test": [some.detected() for some in groups],
    }
    for shift, (test, counts) in enumerate(tests.items()):
        shares = [hits / judged if judged else math.nan for hits, judged in counts]
        axes.bar(np.arange(len(names)) + 0.4 * shift - 0.2, shares, 0.38, label=test, color=GROUPS[shift])
    axes.set_xticks(range(len(names)), [_two_lines(title(name)) for name in names])
    axes.set(ylim=(0, 1.05), ylabel="blameless suspects convicted")
    axes.legend()
    return figure


def _trade_off(results: Results) -> Figure:
    figure, (left, right) = panels(2, width=3.6, height=2.9)
    marked = results.where(lambda row: scheme(row) != NO_DEFENSE)
    for (name, _), some in marked.by(lambda row: (scheme(row), label(row["defense"]))).items():
        caught, judged = some.copies.detected()
        lost, kept = losses(some), some.values("overlap")
        if judged:
            for axes, value in ((left, _mean(lost)), (right, 100 * (1 - _mean(kept)))):
                axes.scatter([value], [caught / judged], color=look_of(name).colour, s=16)
    for name in dict.fromkeys(scheme(row) for row in results.copies):
        left.scatter([], [], color=look_of(name).colour, s=16, label=title(name))
    left.set(xlabel="accuracy lost, points", ylabel=f"copies caught at {LEVEL:g}", ylim=(-0.05, 1.05))
    right.set(xlabel="nearest neighbours lost, %", ylim=(-0.05, 1.05))
    left.legend()
    return figure


def _two_lines(name: str) -> str:
    """Break a defense's title, so that neighbours on an axis do not meet."""
    return name.replace(" ", "\n", 1) if len(name) > 14 else name


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else math.nan
