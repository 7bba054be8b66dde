"""What all figures share: one style, no screen, the same bytes for the same numbers."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import TypeAlias

from regionmarker.errors import MissingExtraError

try:
    from matplotlib import rc_context
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
except ImportError:
    raise MissingExtraError.for_module("matplotlib", "report") from None

from regionmarker.evidence.charts import GROUPS, STYLE

Draw: TypeAlias = Callable[[], Figure]
COLOURS = dict(
    zip(("none", "embmarker", "warden", "espew", "wet", "geomark", "regionmarker"),
        ("#8a94a6", "#7a5aa6", "#3d8b5a", "#b8772b", "#2f6f9f", "#4a4f5c", "#d1495b"), strict=True)
)  # fmt: skip

__all__ = ["COLOURS", "GROUPS", "Axes", "Draw", "Figure", "panels", "svg"]


def svg(name: str, draw: Draw) -> str:
    """Return a figure as SVG; the ids in it follow from its name.

    Examples
    --------
    >>> svg("empty", Figure) == svg("empty", Figure)
    True
    """
    with rc_context({**STYLE, "svg.hashsalt": name}):
        text = io.StringIO()
        draw().savefig(text, format="svg", metadata={"Date": None, "Creator": None})
    return text.getvalue()


def panels(count: int, *, across: int = 4, width: float = 2.6, height: float = 2.3) -> tuple[Figure, list[Axes]]:
    """Return a figure with so many panels, row by row."""
    columns = min(count, across)
    rows = -(-count // columns)
    figure = Figure(figsize=(max(width * columns, 4.0), height * rows), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for axes in grid[count:]:
        axes.set_visible(False)
    return figure, grid[:count]
