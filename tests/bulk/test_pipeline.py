"""Prefetching keeps order, passes errors on where they happened, and leaves no thread behind."""

from __future__ import annotations

import threading

import pytest

from regionmarker.bulk.pipeline import prefetch


def test_order_is_kept():
    with prefetch(iter(range(100)), depth=3) as items:
        assert list(items) == list(range(100))


def test_an_error_arrives_after_the_items_before_it():
    def failing():
        yield 1
        raise ValueError("broken")

    seen = []

    def use():
        with prefetch(failing()) as items:
            seen.extend(items)

    with pytest.raises(ValueError, match="broken"):
        use()
    assert seen == [1]


def test_leaving_early_ends_the_maker_and_its_thread():
    ended = []

    def endless():
        try:
            while True:
                yield 0
        finally:
            ended.append(True)

    before = threading.active_count()
    with prefetch(endless()) as items:
        next(items)
    assert ended == [True]
    assert threading.active_count() == before
