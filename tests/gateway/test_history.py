"""The last hour: every answer is counted once, in its minute, and forgotten after sixty."""

from __future__ import annotations

import numpy as np
import pytest

from regionmarker.gateway.history import MINUTES, History, Minute
from regionmarker.gateway.metrics import Metrics


class Clock:
    now = 6e7

    def __call__(self) -> float:
        return self.now


def test_answers_are_counted_in_their_minute():
    clock = Clock()
    history = History(clock)
    for status in (200, 200, 401, 429, 499, 500, 503):
        history.see(status, 0.01)
    clock.now += 60
    history.see(200, 0.01)
    before, last = history.minutes()[-2:]
    assert (before.served, before.refused, before.failed, before.answered) == (2, 3, 2, 7)
    assert (last.served, last.answered) == (1, 1)


def test_an_hour_is_kept_and_no_more():
    clock = Clock()
    history = History(clock)
    for _ in range(3 * MINUTES):
        history.see(200, 0.01)
        clock.now += 60
    clock.now -= 60
    assert [minute.served for minute in history.minutes()] == [1] * MINUTES
    clock.now += 30 * 60
    assert [minute.served for minute in history.minutes()] == [1] * 30 + [0] * 30
    clock.now += 1e6
    assert sum(minute.answered for minute in history.minutes()) == 0


def test_minutes_follow_each_other_without_a_gap():
    clock = Clock()
    history = History(clock)
    history.see(200, 0.01)
    clock.now += 7 * 60
    history.see(200, 0.01)
    numbers = [minute.number for minute in history.minutes()]
    assert numbers == list(range(numbers[0], numbers[0] + MINUTES))


@pytest.mark.parametrize("share", [0.5, 0.95])
def test_quantiles_are_off_by_at_most_a_seventh(share):
    times = np.random.default_rng(3).lognormal(-4.0, 1.0, 5000)
    minute = Minute(0)
    for seconds in times:
        minute.see(200, float(seconds))
    exact = float(np.quantile(times, share))
    assert exact / 1.16 < minute.within(share) < exact * 1.16


def test_refusals_have_no_time_and_odd_times_do_no_harm():
    minute = Minute(0)
    minute.see(429, 5.0)
    assert minute.within(0.5) is None
    minute.see(200, 1e9)
    assert 90 < minute.within(0.5) < 200
    minute.see(200, 0.0)
    minute.see(200, -1.0)
    assert minute.within(0.5) == pytest.approx(1e-4)


def test_every_answer_of_the_metrics_reaches_it():
    metrics = Metrics()
    metrics.answered("/v1/embeddings", 200, "acme", 0.01)
    assert sum(minute.served for minute in metrics.history.minutes()) == 1
