"""The console's charts: true to the counts, inside their frame, and empty without a mistake."""

from __future__ import annotations

import pytest

from regionmarker.gateway.charts import BOTTOM, LEFT, TOP, WIDTH, charts, round_up
from regionmarker.gateway.history import Minute


def hour(**counts: int) -> list[Minute]:
    """Sixty minutes; the last but one saw these counts."""
    minutes = [Minute(number) for number in range(1000, 1060)]
    for status, count in counts.items():
        for _ in range(count):
            minutes[-2].see(int(status[1:]), 0.02)
    return minutes


def test_an_empty_hour_has_nothing_to_draw():
    for chart in charts(hour()):
        assert chart.shapes == ()
        assert chart.summary


def test_heights_are_the_counts():
    served, refused, latency = charts(hour(s200=8, s429=3, s503=5))
    (bar,) = served.shapes
    assert served.top == "10"
    assert bar.height == pytest.approx(0.8 * (BOTTOM - TOP))
    assert bar.y + bar.height == pytest.approx(BOTTOM)
    assert bar.label == "17:38: 8 served"  # minute 1058 of 1 January 1970
    lower, upper = refused.shapes
    assert (lower.kind, upper.kind) == ("refused", "failed")
    assert lower.height / upper.height == pytest.approx(3 / 5)
    assert upper.y + upper.height == pytest.approx(lower.y)  # one stands on the other
    assert refused.summary == "3 refused, 5 failed in the last hour"
    assert {shape.kind for shape in latency.shapes} == {"median", "slowest"}
    assert latency.summary.startswith("last: half within 2")


@pytest.mark.parametrize("count", [1, 2, 7, 1000])
def test_nothing_leaves_its_frame(count):
    minutes = [Minute(number) for number in range(60)]
    for place, minute in enumerate(minutes):
        for _ in range(count if place % 2 else 1):
            for status in (200, 404, 500):
                minute.see(status, 0.0003 * (place + 1))
    for chart in charts(minutes):
        for shape in chart.shapes:
            assert shape.x >= LEFT
            assert shape.x + shape.width <= WIDTH
            assert shape.y >= TOP - 1.01
            assert shape.y + shape.height <= BOTTOM + 1.01
            assert shape.height > 0


@pytest.mark.parametrize("value", [0, 0.3, 1, 1.1, 2, 4.9, 9.9, 10, 99, 12345])
def test_a_scale_ends_above_its_values(value):
    top = round_up(value)
    assert max(1, value) <= top <= max(1, 2.6 * value)
