"""The upstream's model is changed under the key: the canaries notice, and a restart does not forget."""

from __future__ import annotations

import asyncio
import json

import numpy as np
import pytest

from regionmarker.gateway.drift import TEXTS, Canaries
from regionmarker.gateway.errors import ApiError, invalid_answer
from regionmarker.gateway.served_key import ServedKey


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
def hold(marker):
    return ServedKey(marker.key_.serving())


@pytest.fixture
def told():
    return []


def check(canaries, times=1):
    async def ask():
        for _ in range(times):
            await canaries.check()

    asyncio.run(ask())


def test_the_same_model_is_no_alarm(upstream, hold, told):
    canaries = Canaries(upstream.embed, hold, told.append)
    assert canaries.state == "not asked yet"
    check(canaries)
    upstream.noise = 0.001  # half precision, another batch
    check(canaries, 2)
    assert told == []
    assert canaries.state == "the upstream answers as before"


def test_another_model_is_one_alarm_and_its_return_ends_it(upstream, hold, told):
    canaries = Canaries(upstream.embed, hold, told.append)
    check(canaries)
    upstream.noise = 0.05
    check(canaries, 3)
    upstream.noise = 0.0
    check(canaries)
    assert told == [f"the upstream answers {len(TEXTS)} of {len(TEXTS)} canary texts differently", ""]


def test_another_name_or_width_is_an_alarm_as_well(upstream, hold, told):
    canaries = Canaries(upstream.embed, hold, told.append)
    check(canaries)
    upstream.failure = invalid_answer("model", "the upstream answered with another model than it was asked for")
    check(canaries)
    assert "another model" in told[0]


def test_an_upstream_that_is_away_is_not_another_one(upstream, hold, told):
    canaries = Canaries(upstream.embed, hold, told.append)
    upstream.failure = ApiError(502, "upstream_error", "gone")
    check(canaries, 2)
    assert told == []
    assert canaries.state == "not asked yet"


def test_a_restart_remembers(upstream, hold, told, tmp_path):
    file = tmp_path / "key.canaries.json"
    check(Canaries(upstream.embed, hold, told.append, file))
    upstream.noise = 0.05
    check(Canaries(upstream.embed, hold, told.append, file))
    assert "differently" in told[0]
    assert set(json.loads(file.read_text())) == {"key_id", "texts", "embeddings"}


@pytest.mark.parametrize("content", ["", "{}", "[]", '{"key_id": "x"}', "null", "\x00"])
def test_a_damaged_file_is_made_anew(upstream, hold, told, tmp_path, content):
    file = tmp_path / "key.canaries.json"
    file.write_text(content)
    check(Canaries(upstream.embed, hold, told.append, file))
    assert told == []
    assert json.loads(file.read_text())["key_id"] == hold.current().key_id


def test_another_key_asks_anew(upstream, hold, told, real_marker):
    canaries = Canaries(upstream.embed, hold, told.append)
    check(canaries)
    upstream.noise = 0.05
    hold.swap(real_marker.key_.serving())
    check(canaries)
    assert told == []


def test_a_folder_that_cannot_be_written_is_no_reason_to_stop(upstream, hold, told, tmp_path):
    canaries = Canaries(upstream.embed, hold, told.append, tmp_path / "nowhere" / "file.json")
    check(canaries)
    upstream.noise = 0.05
    check(canaries)
    assert len(told) == 1
