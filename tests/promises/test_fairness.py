"""One tenant at ten times its quota does not starve another: counted, not timed."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from tests.support.gateways import eventually
from tests.support.running import running

from regionmarker.gateway.gateway import open_gateway
from regionmarker.gateway.settings import Settings
from regionmarker.gateway.tenants.accounts import Accounts
from regionmarker.keys.files import save_serving

QUOTA = 12


class Gated:
    """An encoder that stands still while its gate is closed."""

    name = "wordllama"

    def __init__(self, encoder) -> None:
        self._encoder = encoder
        self.gate = threading.Event()
        self.gate.set()

    def encode(self, texts):
        assert self.gate.wait(100)
        return self._encoder.encode(texts)


@pytest.fixture
def opened(tmp_path, real_marker):
    """A gateway with room for four large requests and four that wait, and a greedy and a modest tenant."""
    path = tmp_path / "serving.rmkey"
    save_serving(path, real_marker.key_.serving(["greedy", "modest"]), None)
    database = str(tmp_path / "t.db")

    def make(**limits):
        accounts = Accounts.open(database)
        keys = {"greedy": accounts.add("greedy", limits=limits), "modest": accounts.add("modest")}
        accounts.close()
        return open_gateway(Settings(path, database=database, capacity=2048, queue=2048, patience=100.0)), keys

    return make


def ask(house, key, inputs):
    question = {"model": "wordllama", "input": [f"text {number}" for number in range(inputs)]}
    status, headers, body = house.ask("/v1/embeddings", token=key, body=question)
    if status == 429:
        assert int(headers["retry-after-ms"]) > 0
        assert b'"rate_limit_exceeded"' in body
    return status


def test_beyond_its_quota_the_greedy_tenant_is_refused_and_nobody_else(opened):
    gateway, keys = opened(requests_per_minute=QUOTA)
    with running(gateway) as house, ThreadPoolExecutor(8) as threads:
        greedy = [threads.submit(ask, house, keys["greedy"], 8) for _ in range(10 * QUOTA)]
        modest = [threads.submit(ask, house, keys["modest"], 8) for _ in range(2 * QUOTA)]
        assert [future.result() for future in modest] == [200] * (2 * QUOTA)
        statuses = [future.result() for future in greedy]
    assert set(statuses) == {200, 429}
    assert statuses.count(200) >= QUOTA


def test_who_fills_the_queue_makes_room_for_who_does_not(opened, wordllama):
    gateway, keys = opened()
    encoder = Gated(wordllama)
    gateway.upstream._encoder = encoder
    admission = gateway.admission
    with running(gateway) as house, ThreadPoolExecutor(16) as threads:
        eventually(lambda: gateway.canaries.trouble is not None)
        encoder.gate.clear()
        try:
            greedy = [threads.submit(ask, house, keys["greedy"], 512) for _ in range(10)]
            eventually(lambda: (admission.in_flight, admission.queued) == (2048, 2048))
            modest = [threads.submit(ask, house, keys["modest"], 4) for _ in range(4)]
            eventually(lambda: (line := admission._lines.get("modest")) is not None and line.queued == 16)
        finally:
            encoder.gate.set()
        assert [future.result() for future in modest] == [200] * 4
        statuses = [future.result() for future in greedy]
    assert set(statuses) == {200, 429}
    assert statuses.count(200) >= 4
