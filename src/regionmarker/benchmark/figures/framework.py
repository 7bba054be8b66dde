"""The framework diagram: what is served, what is stolen, and how a suspect is judged."""

from __future__ import annotations

from regionmarker.plots import MARKED, PLAIN, Axes, Figure

_BOXES = {
    "text": (0.02, 0.62, "a customer's text", PLAIN),
    "clean": (0.22, 0.62, "clean vector e", PLAIN),
    "region": (0.42, 0.62, "region of the\nsecret space", PLAIN),
    "served": (0.62, 0.62, "served vector e_p:\na little of a target in\ntrigger regions", MARKED),
    "copy": (0.82, 0.62, "a thief's copy\nlearns the mark", MARKED),
    "key": (0.42, 0.08, "key: reducer, hyperplanes,\ntrigger regions, targets", PLAIN),
    "probes": (0.62, 0.08, "probes of all regions,\nand the pool", PLAIN),
    "verdict": (0.82, 0.08, "decoy test: the true\ntargets among all that\nmight have been drawn", MARKED),
}
_ARROWS = (("text", "clean"), ("clean", "region"), ("region", "served"), ("served", "copy"), ("key", "region"),
           ("key", "probes"), ("probes", "copy"), ("copy", "verdict"))  # fmt: skip
_WIDTH, _HEIGHT = 0.165, 0.3


def framework() -> Figure:
    """Draw it."""
    figure = Figure(figsize=(9.0, 2.6), layout="constrained")
    axes: Axes = figure.subplots()
    axes.set(xlim=(0, 1), ylim=(0, 1))
    axes.set_axis_off()
    for left, low, words, colour in _BOXES.values():
        axes.text(
            left + _WIDTH / 2, low + _HEIGHT / 2, words, ha="center", va="center", fontsize=8,
            bbox={"boxstyle": "round,pad=0.5", "facecolor": "white", "edgecolor": colour, "linewidth": 1.4},
        )  # fmt: skip
    for start, end in _ARROWS:
        axes.annotate("", _edge(end, start), _edge(start, end), arrowprops={"arrowstyle": "->", "color": "#4a5362"})
    return figure


def _edge(of: str, towards: str) -> tuple[float, float]:
    """Return the point of a box's edge that faces another box."""
    left, low, *_ = _BOXES[of]
    other_left, other_low, *_ = _BOXES[towards]
    middle_x, middle_y = left + _WIDTH / 2, low + _HEIGHT / 2
    if abs(other_low - low) > 0.1 and abs(other_left - left) < 0.1:
        return middle_x, middle_y + (0.2 if other_low > low else -0.2)
    if abs(other_low - low) > 0.1:
        return middle_x + (0.06 if other_left > left else -0.06), middle_y + (0.2 if other_low > low else -0.2)
    return middle_x + (0.085 if other_left > left else -0.085), middle_y
