"""What all pictures share: colours, one style, no screen, SVG with the same bytes for the same numbers."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from regionmarker.errors import MissingExtraError

try:
    from matplotlib import rc_context
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
except ImportError:
    raise MissingExtraError.for_module("matplotlib", "report") from None

__all__ = [
    "GROUPS",
    "GUIDE",
    "INK",
    "MARKED",
    "PLAIN",
    "STYLE",
    "Axes",
    "Draw",
    "Figure",
    "draw_verdicts",
    "inline",
    "panels",
    "svg",
]

Draw: TypeAlias = Callable[[], Figure]

PLAIN, MARKED = "#8a94a6", "#d1495b"
"""The colours of what carries no mark, and of what does."""

INK, GUIDE = "#1f2733", "#c9ced8"
"""The colours of texts and of lines that only guide the eye."""

GROUPS = ("#d1495b", "#2f6f9f", "#3d8b5a", "#b8772b", "#7a5aa6", "#4a4f5c")
"""Colours of groups that have none of their own."""

STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",  # comes with matplotlib, so texts have one width everywhere
    "font.size": 8.5,
    "text.color": INK,
    "axes.edgecolor": "#6b7585",
    "axes.labelcolor": INK,
    "axes.titlesize": 8.5,
    "figure.titlesize": 8.5,
    "legend.fontsize": 8.5,
    "xtick.labelsize": 8.5,
    "ytick.labelsize": 8.5,
    "axes.titleweight": "bold",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": "#4a5362",
    "ytick.color": "#4a5362",
    "legend.frameon": False,
    "svg.fonttype": "none",
}


def svg(name: str, draw: Draw) -> str:
    """Return a figure as SVG, drawn in our style.

    Parameters
    ----------
    name
        The salt of the ids: those of one figure mean nothing in another.
    draw
        Makes the figure.

    Examples
    --------
    >>> svg("empty", Figure) == svg("empty", Figure)
    True
    """
    with rc_context({**STYLE, "svg.hashsalt": name}):
        text = io.StringIO()
        draw().savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return text.getvalue()


def inline(text: str, name: str) -> str:
    """Return an SVG as an HTML page takes it: no prologue, no metadata, no address of any kind, ids of its own."""
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r' xmlns(:xlink)?="[^"]*"', "", text)
    text = re.sub(r'<g id="([\w.]+)"', rf'<g id="{name}-\1"', text)
    text = re.sub(r'(<svg [^>]*?)width="[^"]*pt" height="[^"]*pt"', r"\1", text, count=1)
    # The viewer's own fonts, all of them narrower than the one that was measured with.
    text = text.replace("'DejaVu Sans'", "'DejaVu Sans', Verdana, sans-serif")
    return re.sub(r"[ \t]+\n", "\n", text)


def panels(
    count: int, *, across: int = 4, width: float = 2.6, height: float = 2.3, total: float | None = None
) -> tuple[Figure, list[Axes]]:
    """Return a figure, ``total`` wide if given, with ``count`` panels row by row, at most ``across`` in a row."""
    columns = min(count, across)
    rows = -(-count // columns)
    figure = Figure(figsize=(total or max(width * columns, 4.0), height * rows), layout="constrained")
    axes = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for unused in axes[count:]:
        unused.set_visible(False)
    return figure, axes[:count]


_SMALLEST = 1e-50  # p-values below it are drawn there
_WRONG, _RIGHT = MARKED, "#3d8b5a"


def draw_verdicts(rows: Sequence[tuple[str, bool, float, float]], level: float) -> Figure:
    """Draw what the paper's test and ours say of suspects, guilty or not, and whether that is right.

    Parameters
    ----------
    rows
        Name, whether guilty, the paper's p, our p; the guilty first.
    level
        Of our test; the paper's is 0.05.
    """
    smallest = max(min(min(row[2:]) for row in rows), _SMALLEST)
    with rc_context(STYLE):
        figure = Figure(figsize=(9.0, 1.1 + 0.44 * len(rows)), layout="constrained")
        both = figure.subplots(1, 2, sharey=True)
        for axes, place, limit, whose in ((both[0], 2, 0.05, "The paper's test"), (both[1], 3, level, "Ours")):
            wrong = 0
            for number, row in enumerate(rows):
                p_value = max(float(row[place]), _SMALLEST)
                convicted, guilty = p_value <= limit, row[1]
                wrong += convicted != guilty
                _draw_row(axes, number, p_value, limit, guilty=guilty)
            axes.axvline(limit, color=INK, linewidth=0.8)
            axes.axhline(sum(row[1] for row in rows) - 0.5, color=GUIDE, linewidth=0.8, linestyle=(0, (4, 3)))
            axes.set(xscale="log", xlabel=f"p-value; below {limit:g} convicts", xlim=(smallest / 1e3, 1e12))
            axes.set_xticks([tick for tick in (1, 1e-8, 1e-16, 1e-24, 1e-32, 1e-40, 1e-48) if tick >= smallest / 1e3])
            axes.set_ylim(len(rows) - 0.4, -0.6)
            verdict = f"{wrong} of {len(rows)} wrong" if wrong else f"all {len(rows)} right"
            axes.set_title(f"{whose}: {verdict}", loc="left", color=_WRONG if wrong else _RIGHT, fontsize=11)
        both[0].set_yticks(range(len(rows)), [f"{'guilty' if row[1] else 'innocent'}:  {row[0]}" for row in rows])
    return figure


def _draw_row(axes: Axes, number: int, p_value: float, limit: float, *, guilty: bool) -> None:
    convicted = p_value <= limit
    colour = _RIGHT if convicted == guilty else _WRONG
    axes.plot([limit, p_value], [number, number], color=colour, linewidth=2.5, solid_capstyle="butt")
    axes.plot(p_value, number, "o" if convicted else "D", color=colour, markersize=7)
    word = "convicted" if convicted else "not convicted"
    sign = "\N{CHECK MARK}" if convicted == guilty else "\N{BALLOT X}"
    axes.text(200.0, number, f"{sign} {word}", color=colour, va="center", fontsize=8.5, fontweight="bold")
