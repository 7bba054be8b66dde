"""How the verdict depends on the theft: the texts that a thief bought, and how well he copied."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from statistics import median

from regionmarker.benchmark.tables.results import LEVEL, Results, Row
from regionmarker.plots import GROUPS, Axes, Draw, Figure, panels

_FLOOR = 1e-60
_SIMULATED = "simulated"


def thefts(results: Results) -> Iterable[tuple[str, str, Draw]]:
    """Yield one figure, where one defense judged thieves who bought more and less, and simulated ones.

    Trained copies stand over the texts bought, simulated ones (which no thief reaches) over their fidelity.
    """
    copies = results.copies.where(lambda row: row["error"] is None and row["decoy_p"] is not None)
    trained = copies.where(lambda row: not _is_simulated(row))
    simulated = copies.where(_is_simulated)
    several = len(trained.by("queries")) > 2 and len(copies.by("defense")) == 1
    if several and len(simulated.by("stealer")) > 2:
        caption = "What a copy's p depends on: below the line it is caught, every point is a copy."
        yield "thefts", caption, lambda: _thefts(trained, simulated)


def _is_simulated(row: Row) -> bool:
    return str(row["stealer"]).startswith(_SIMULATED)


def _thefts(trained: Results, simulated: Results) -> Figure:
    figure, (left, right) = panels(2, width=3.7, height=3.0)
    _points(left, trained, lambda row: float(row["queries"]), group="queries")
    counts = sorted({row["queries"] for row in trained})
    left.set_xscale("log")
    left.set_xticks(counts, [f"{count:,}" for count in counts])
    left.minorticks_off()
    left.set(title="trained copies", xlabel="texts bought", ylabel="p of the decoy test")
    _points(right, simulated, lambda row: float(row["clean_fidelity"]), group="stealer")
    right.set(title="simulated copies", xlabel="fidelity, centred, to the clean vectors")
    left.legend()
    return figure


def _points(axes: Axes, copies: Results, where: Callable[[Row], float], group: str) -> None:
    """Draw every copy, and a line through the medians of the groups, one colour per attack."""
    for (attack, some), colour in zip(copies.by("attack").items(), GROUPS * 9, strict=False):
        axes.scatter([where(row) for row in some], [max(row["decoy_p"], _FLOOR) for row in some], s=8, color=colour,
                     alpha=0.45, linewidths=0)  # fmt: skip
        middles = sorted(
            (median(where(row) for row in of), median(max(row["decoy_p"], _FLOOR) for row in of))
            for of in some.by(group).values()
        )
        axes.plot(*zip(*middles, strict=True), color=colour, linewidth=1.2, label=_named(attack))
    axes.axhline(LEVEL, color="#1f2733", linewidth=0.8)
    axes.set(yscale="log")


def _named(attack: str) -> str:
    return {"none": "as it is"}.get(attack, "rotated" if attack.startswith("after") else attack)
