"""The console's charts: the last hour as bars and dots, in coordinates that a template writes as SVG.

No script draws them and no library is needed: a page that forbids scripts can show them, and they print.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

from regionmarker.gateway.history import Minute

WIDTH, HEIGHT = 360, 120  # of the drawing; a browser scales it
LEFT, TOP, BOTTOM = 44, 12, 100  # where the axes are


@dataclass(frozen=True)
class Shape:
    """A bar of one minute, or its dot where it has no height."""

    kind: str
    x: float
    y: float
    width: float
    height: float
    label: str


@dataclass(frozen=True)
class Chart:
    """A heading, what is drawn, and the same in words.

    Attributes
    ----------
    top
        What the upper line stands for.
    legend
        Kinds of shapes with their names.
    """

    title: str
    summary: str
    top: str
    shapes: tuple[Shape, ...]
    legend: tuple[tuple[str, str], ...]


def charts(minutes: Sequence[Minute]) -> list[Chart]:
    """Return traffic, refusals and latency of these minutes."""
    served = sum(minute.served for minute in minutes)
    refused, failed = (sum(getattr(minute, name) for minute in minutes) for name in ("refused", "failed"))
    return [
        _counted("Served per minute", f"{served:,} in the last hour", minutes, {"served": "served"}),
        _counted(
            "Refused and failed per minute", f"{refused:,} refused, {failed:,} failed in the last hour", minutes,
            {"refused": "refused (4xx)", "failed": "failed (5xx)"},
        ),
        _latency(minutes),
    ]  # fmt: skip


def _counted(title: str, summary: str, minutes: Sequence[Minute], kinds: dict[str, str]) -> Chart:
    """Stack the counts of each minute."""
    most = round_up(max((sum(getattr(minute, kind) for kind in kinds) for minute in minutes), default=0))
    shapes = []
    for place, minute in enumerate(minutes):
        foot = float(BOTTOM)
        for kind, name in kinds.items():
            count = getattr(minute, kind)
            if count:
                high = (BOTTOM - TOP) * count / most
                foot -= high
                shapes.append(_shape(kind, place, len(minutes), foot, high, f"{_time(minute)}: {count:,} {name}"))
    return Chart(title, summary, f"{most:,.0f}", tuple(shapes), tuple(kinds.items()))


def _latency(minutes: Sequence[Minute]) -> Chart:
    """Draw the median of each minute as a bar, and the 95th percentile as a dot above it."""
    times = [(minute.within(0.5), minute.within(0.95)) for minute in minutes]
    most = round_up(1e3 * max((high for _, high in times if high is not None), default=0.0))
    shapes = []
    for place, (minute, (median, high)) in enumerate(zip(minutes, times, strict=True)):
        if median is None or high is None:
            continue
        scale = 1e3 * (BOTTOM - TOP) / most
        label = f"{_time(minute)}: half within {milliseconds(median)}, 95 % within {milliseconds(high)}"
        shapes.append(_shape("median", place, len(minutes), BOTTOM - scale * median, scale * median, label))
        shapes.append(_shape("slowest", place, len(minutes), BOTTOM - scale * high - 1, 2.0, label))
    last = next((pair for pair in reversed(times) if pair[0] is not None), (None, None))
    summary = "nothing was served in the last hour"
    if last[0] is not None and last[1] is not None:
        summary = f"last: half within {milliseconds(last[0])}, 95 % within {milliseconds(last[1])}"
    legend = (("median", "half of the requests"), ("slowest", "95 %"))
    return Chart("Time to serve", summary, milliseconds(most / 1e3), tuple(shapes), legend)


def _shape(kind: str, place: int, count: int, y: float, height: float, label: str) -> Shape:
    step = (WIDTH - LEFT) / count
    return Shape(kind, round(LEFT + step * place, 2), round(y, 2), round(0.8 * step, 2), round(height, 2), label)


def _time(minute: Minute) -> str:
    return datetime.fromtimestamp(60 * minute.number, UTC).strftime("%H:%M")


def round_up(value: float) -> float:
    """Return the next of 1, 2, 5, 10, 20, 50, ...; at least 1.

    Examples
    --------
    >>> round_up(0), round_up(3), round_up(5), round_up(120)
    (1.0, 5.0, 5.0, 200.0)
    """
    step = 1.0
    while 10 * step < value:
        step *= 10
    return next((step * factor for factor in (1, 2, 5) if step * factor >= value), 10 * step)


def milliseconds(seconds: float) -> str:
    """Return a time in milliseconds, or in seconds where it is long.

    Examples
    --------
    >>> milliseconds(0.0042), milliseconds(0.3), milliseconds(12)
    ('4.2 ms', '300 ms', '12 s')
    """
    if seconds >= 1:
        return f"{seconds:.3g} s"
    return f"{1e3 * seconds:.2g} ms" if seconds < 0.0995 else f"{1e3 * seconds:.0f} ms"
