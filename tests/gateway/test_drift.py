"""An alarm when traffic leaves the fitted regions, and none while it does not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from regionmarker import RegionMarker
from regionmarker.gateway.drift import RegionWatch, total_variation
from regionmarker.gateway.served_key import ServedKey


@pytest.fixture(scope="module")
def halves(sentences, embeddings):
    order = np.random.default_rng(3).permutation(len(sentences))
    return order[:3000], order[3000:]


@pytest.fixture(scope="module")
def hold(sentences, embeddings, halves):
    fit = halves[0]
    marker = RegionMarker(seed=4, pool=64, reservoir=2048).fit([sentences[i] for i in fit], embeddings=embeddings[fit])
    return ServedKey(marker.key_.serving())


@pytest.fixture
def told():
    return []


def show(watch, key_version, rows, batch):
    for start in range(0, len(rows), batch):
        watch.see(key_version, rows[start : start + batch])


@pytest.mark.parametrize("batch", [1, 7, 256])
def test_texts_like_the_corpus_are_calm(hold, embeddings, halves, told, batch):
    watch = RegionWatch(told.append, window=1024)
    rows = np.tile(embeddings[halves[1]], (1 if batch < 10 else 12, 1))
    show(watch, hold.current(), rows, batch)
    assert watch.state == "traffic lies in the regions of the corpus"
    assert told == []


def test_other_texts_raise_one_alarm_and_their_end_takes_it_back(hold, embeddings, halves, told, wordllama):
    watch = RegionWatch(told.append, window=1024)
    key_version = hold.current()
    usual = embeddings[halves[1]]
    recipes = [f"Add {n} grams of sugar and {n + 3} spoons of butter, then bake for {n} minutes." for n in range(1100)]
    other = wordllama.encode(recipes)
    show(watch, key_version, usual[:1100], 1)
    assert told == []
    show(watch, key_version, np.tile(other, (2, 1)), 1)
    assert told == [True]
    assert watch.state == "traffic has left the regions of the corpus"
    show(watch, key_version, usual, 1)
    assert told == [True, False]


def test_nothing_is_said_before_a_window_is_full(hold, embeddings, told):
    watch = RegionWatch(told.append, window=1024)
    show(watch, hold.current(), np.tile(embeddings[:1], (1000, 1)), 1)
    assert watch.drifting is None
    assert told == []


def test_a_new_key_begins_anew(hold, embeddings, halves, told):
    watch = RegionWatch(told.append, window=512)
    show(watch, hold.current(), np.tile(embeddings[:1], (600, 1)), 1)
    assert told == [True]
    show(watch, hold.swap(hold.current().marker.serving_), embeddings[halves[1]][:100], 1)
    assert told == [True, False]
    assert watch.state == "not enough traffic yet"


def test_an_old_serving_key_learns_from_the_first_traffic(hold, embeddings, halves, told):
    old = ServedKey(
        replace(hold.current().marker.serving_, mark=replace(hold.current().marker.serving_.mark, shares=None))
    ).current()
    watch = RegionWatch(told.append, window=512)
    show(watch, old, np.tile(embeddings[:1], (1100, 1)), 1)
    assert told == []
    assert watch.state == "traffic lies in the regions of the first traffic seen"
    show(watch, old, embeddings[halves[1]], 1)
    assert told == [True]


def test_no_state_tells_a_number(hold, embeddings, told):
    watch = RegionWatch(told.append, window=64)
    show(watch, hold.current(), embeddings[:500], 1)
    assert not any(letter.isdigit() for letter in watch.state)


def test_total_variation():
    assert total_variation(np.array([1.0, 0.0]), np.array([0.0, 1.0])) == 1.0
