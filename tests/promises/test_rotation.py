"""The key is rotated under load: no request fails, and every response is marked by exactly one version."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from tests.support.gateways import eventually
from tests.support.running import running

from regionmarker import RegionMarker
from regionmarker.gateway.gateway import open_gateway
from regionmarker.gateway.settings import Settings
from regionmarker.keys.files import save_serving
from regionmarker.keys.key import key_from_key


@pytest.fixture
def texts(sentences):
    """So many different ones that no two keys leave them all alike."""
    return sentences[::20]


@pytest.fixture
def keys(real_marker):
    """Three keys on one fit."""
    first = real_marker.key_
    second = key_from_key(first)
    return [first, second, key_from_key(second)]


def test_every_response_has_exactly_one_version(tmp_path, keys, texts, wordllama):
    clean = wordllama.encode(texts)
    expected = {RegionMarker.from_key(key).transform(clean).tobytes(): key.id for key in keys}
    assert len(expected) == 3
    path = tmp_path / "serving.rmkey"
    save_serving(path, keys[0].serving(), None)
    gateway = open_gateway(Settings(path))
    hold, seen, stop = gateway.served_key, [], threading.Event()

    def client(_):
        while not stop.is_set():
            seen.append(expected.get(house.embed(texts, "any").tobytes(), "a mixture"))

    with running(gateway) as house, ThreadPoolExecutor(4) as clients:
        done = [clients.submit(client, number) for number in range(4)]
        try:
            for version, key in enumerate(keys[1:], start=2):
                eventually(lambda: len(seen) > 4)
                save_serving(path, key.serving(), None, overwrite=True)  # renamed over the old file; nobody is told
                eventually(lambda version=version: hold.current().version == version)
                eventually(lambda key=key: key.id in seen)
        finally:
            stop.set()
        for one in done:
            one.result()
    assert set(seen) == {key.id for key in keys}  # all three were served, and nothing else


def test_a_bad_file_under_load_changes_nothing(tmp_path, keys, texts, wordllama):
    path = tmp_path / "serving.rmkey"
    save_serving(path, keys[0].serving(), None)
    expected = RegionMarker.from_key(keys[0]).transform(wordllama.encode(texts))
    gateway = open_gateway(Settings(path))
    with running(gateway) as house:
        path.write_bytes(b"half a key")
        eventually(lambda: gateway.key_reloader.trouble)
        assert np.array_equal(house.embed(texts, "any"), expected)
        assert b"regionmarker_key_stale 1.0" in house.ask("/metrics")[2]
