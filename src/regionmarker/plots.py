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


def draw_verdicts(rows: Sequence[tuple[str, bool, float, float]], level: float) -> Figure:
    """Draw suspects, guilty or not, with their p-values by the paper's test and by ours, and what each test convicts.

    Parameters
    ----------
    rows
        Name, whether guilty, the paper's p, our p.
    level
        Of our test; the paper's is 0.05.
    """
    with rc_context(STYLE):
        figure = Figure(figsize=(9.0, 0.8 + 0.42 * len(rows)), layout="constrained")
        left, right = figure.subplots(1, 2, sharey=True)
        for axes, place, limit, title in (
            (left, 2, 0.05, "The paper's test convicts below 0.05"),
            (right, 3, level, f"Ours convicts below {level:g}"),
        ):
            for number, row in enumerate(rows):
                p_value = max(float(row[place]), _SMALLEST)
                colour = MARKED if p_value <= limit else PLAIN
                axes.plot([limit, p_value], [number, number], color=colour, linewidth=2.5, solid_capstyle="butt")
                axes.plot(p_value, number, "o", color=colour, markersize=8)
            axes.axvline(limit, color=INK, linewidth=0.8)
            axes.set(xscale="log", xlabel="p-value", xlim=(_SMALLEST / 30, 30.0))
            axes.set_title(title, loc="left")
        left.set_yticks(
            range(len(rows)), [f"{name} ({'guilty' if guilty else 'innocent'})" for name, guilty, *_ in rows]
        )
        left.invert_yaxis()
    return figure
