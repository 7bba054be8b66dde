"""Traffic leaves the fitted regions, or the upstream changes its model: both are noticed, across restarts too."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace

import numpy as np
import pytest

from regionmarker import RegionMarker
from regionmarker.gateway.drift import TEXTS, Canaries, RegionWatch, total_variation
from regionmarker.gateway.errors import ApiError, invalid_answer
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


class Upstream:
    def __init__(self, wordllama) -> None:
        self._rows = wordllama.encode(list(TEXTS))
        self.noise = 0.0
        self.failure: ApiError | None = None
        self.asked = 0

    async def embed(self, texts):
        assert texts == list(TEXTS)
        self.asked += 1
        if self.failure is not None:
            raise self.failure
        rows = self._rows + self.noise * np.random.default_rng(0).standard_normal(self._rows.shape).astype(np.float32)
        return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture
def upstream(wordllama):
    return Upstream(wordllama)


@pytest.fixture
def served_key(marker):
    return ServedKey(marker.key_.serving())


def check(canaries, times=1):
    async def ask():
        for _ in range(times):
            await canaries.check()

    asyncio.run(ask())


def test_the_same_model_is_no_alarm(upstream, served_key, told):
    canaries = Canaries(upstream.embed, served_key, told.append)
    assert canaries.state == "not asked yet"
    check(canaries)
    upstream.noise = 0.001  # half precision, another batch
    check(canaries, 2)
    assert told == []
    assert canaries.state == "the upstream answers as before"


def test_another_model_is_one_alarm_and_its_return_ends_it(upstream, served_key, told):
    canaries = Canaries(upstream.embed, served_key, told.append)
    check(canaries)
    upstream.noise = 0.05
    check(canaries, 3)
    upstream.noise = 0.0
    check(canaries)
    assert told == [f"the upstream answers {len(TEXTS)} of {len(TEXTS)} canary texts differently", ""]


def test_another_name_or_width_is_an_alarm_as_well(upstream, served_key, told):
    canaries = Canaries(upstream.embed, served_key, told.append)
    check(canaries)
    upstream.failure = invalid_answer("model", "the upstream answered with another model than it was asked for")
    check(canaries)
    assert "another model" in told[0]


def test_an_upstream_that_is_away_is_not_another_one(upstream, served_key, told):
    canaries = Canaries(upstream.embed, served_key, told.append)
    upstream.failure = ApiError(502, "upstream_error", "gone")
    check(canaries, 2)
    assert told == []
    assert canaries.state == "not asked yet"


def test_a_restart_remembers(upstream, served_key, told, tmp_path):
    file = tmp_path / "key.canaries.json"
    check(Canaries(upstream.embed, served_key, told.append, file))
    upstream.noise = 0.05
    check(Canaries(upstream.embed, served_key, told.append, file))
    assert "differently" in told[0]
    assert set(json.loads(file.read_text())) == {"key_id", "texts", "embeddings"}


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"key_id": "x"}', "null", "\x00"])
def test_a_damaged_file_is_made_anew(upstream, served_key, told, tmp_path, content):
    file = tmp_path / "key.canaries.json"
    file.write_text(content)
    check(Canaries(upstream.embed, served_key, told.append, file))
    assert told == []
    assert json.loads(file.read_text())["key_id"] == served_key.current().key_id


def test_another_key_asks_anew(upstream, served_key, told, real_marker):
    canaries = Canaries(upstream.embed, served_key, told.append)
    check(canaries)
    upstream.noise = 0.05
    served_key.swap(real_marker.key_.serving())
    check(canaries)
    assert told == []


def test_a_folder_that_cannot_be_written_is_no_reason_to_stop(upstream, served_key, told, tmp_path):
    canaries = Canaries(upstream.embed, served_key, told.append, tmp_path / "nowhere" / "file.json")
    check(canaries)
    upstream.noise = 0.05
    check(canaries)
    assert len(told) == 1
