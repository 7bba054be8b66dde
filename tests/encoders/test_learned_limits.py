"""A limit is learnt from what a server took, per cause, and not for ever."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from regionmarker.encoders.learned_limits import REMEMBERED, LearnedLimits, cause_of, part_size, parts_of

MANY, LONG = ["a"] * 100, ["a" * 1000] * 100


@pytest.mark.parametrize(
    ("status", "said", "inputs", "cause"),
    [
        (413, "batch size 100 > maximum allowed batch size 32", MANY, "count"),
        (422, "Batch too large", MANY, "count"),
        (400, "too many inputs", LONG, "count"),
        (400, "array too long. Expected at most 64", MANY, "count"),
        (413, "payload too large", MANY, "count"),
        (413, "payload too large", LONG, "size"),
        (413, "payload too large", ["\N{GRINNING FACE}" * 9000] * 2, "size"),  # bytes count, and not letters
        (413, "payload too large", ["\x01" * 6000] * 2, "size"),
        (400, "The max allowed tokens per submitted batch is 120000. Your batch has 150000 tokens.", MANY, "size"),
        (413, "payload too large", ["a" * 10**7], None),
        (400, "too many tokens in input 3", LONG, None),
        (422, "this text is bad", MANY, None),
        (500, "batch", MANY, None),
        (429, "batch", MANY, None),
        (400, "unknown field encoding_format", ["a"], "base64"),
    ],
)
def test_causes(status, said, inputs, cause):
    assert cause_of(status, said, inputs, base64=True) == cause


def test_who_asked_for_no_base64_is_not_refused_for_it():
    assert cause_of(400, "encoding_format", ["a"], base64=False) is None


@pytest.mark.parametrize(
    ("said", "count", "size"),
    [("batch size 64 > 24", 64, 24), ("batch", 5, 3), ("batch of 1", 4, 2), ("24 things", 64, 32), ("batch 3.5", 8, 4)],
)
def test_the_next_size(said, count, size):
    assert part_size(said, count) == size


@given(st.text(), st.integers(2, 2048))
def test_the_next_size_is_always_smaller(said, count):
    assert 1 <= part_size(said, count) < count


@given(
    st.lists(st.integers(0, 30), min_size=1, max_size=60), st.integers(1, 20), st.none() | st.integers(1, 100),
    st.none() | st.integers(1, 30),
)  # fmt: skip
def test_parts_hold_everything_once_and_no_more_than_is_taken(sizes, batch, letters, count):
    limits = LearnedLimits(batch, clock=lambda: 0.0)
    if letters is not None:
        limits.learn("size", 1, letters)
    if count is not None:
        limits.learn("count", count, 1)
    inputs = ["x" * size for size in sizes]
    bounds = limits.bounds(inputs)
    assert [place for first, last in bounds for place in range(first, last)] == list(range(len(sizes)))
    for first, last in bounds:
        assert 1 <= last - first <= min(batch, count or batch)
        assert last - first == 1 or letters is None or sum(sizes[first:last]) <= letters


def test_what_was_learnt_is_forgotten():
    now = [0.0]
    limits = LearnedLimits(64, clock=lambda: now[0])
    limits.learn("count", 8, 0)
    limits.learn("base64", 0, 0)
    assert (limits.batch, limits.base64) == (8, False)
    now[0] = REMEMBERED
    assert (limits.batch, limits.base64) == (64, True)
    assert not LearnedLimits(64, base64=False).base64


def test_parts():
    assert parts_of(0, 0, 3) == []
