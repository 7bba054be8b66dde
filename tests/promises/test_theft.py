"""The whole story over real sockets: a thief buys from the gateway, serves its copy the same way, and is caught."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pybase64
import pytest
from tests.support.running import running

from regionmarker import RegionMarker
from regionmarker.benchmark.stealers import TokenBag
from regionmarker.cli import main
from regionmarker.gateway.gateway import open_gateway
from regionmarker.gateway.settings import Settings
from regionmarker.gateway.tenants.accounts import Accounts
from regionmarker.keys.files import KeyRing, save_serving

BATCH = 512


@contextmanager
def copy_server(model):
    """The thief's service: the same API, another model behind it."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self):
            question = json.loads(self.rfile.read(int(self.headers["content-length"])))
            rows = model.encode(question["input"]).astype("<f4")
            data = [
                {"object": "embedding", "index": place, "embedding": pybase64.b64encode(row.tobytes()).decode()}
                for place, row in enumerate(rows)
            ]
            body = json.dumps({"object": "list", "data": data, "model": question["model"]}).encode()
            self.send_response(200)
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1#copycat"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def run(capsys):
    def call(*arguments):
        capsys.readouterr()
        with pytest.raises(SystemExit) as left:
            main([*map(str, arguments), "--json"])
        assert not left.value.code
        return json.loads(capsys.readouterr().out)

    return call


def test_the_copy_is_convicted_and_its_buyer_is_named(tmp_path, monkeypatch, run, sentences, embeddings):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("REGIONMARKER_SUSPECT_API_KEY", "")
    order = np.random.default_rng(0).permutation(len(sentences))
    ours, bought = order[:2500], [sentences[row] for row in order[2500:]]
    # A fixed key without its TEST stamp, which the gateway would refuse: the same test on every machine.
    marker = RegionMarker(seed=1, pool=256, reservoir=1200).fit(
        [sentences[i] for i in ours], embeddings=embeddings[ours]
    )
    key = replace(marker.key_, test=False)
    KeyRing((key,)).save("provider.rmkey")
    save_serving(tmp_path / "serving.rmkey", key.serving(["alice", "bob"]), None)
    accounts = Accounts.open("tenants.db")
    keys = {name: accounts.add(name) for name in ("alice", "bob")}
    accounts.close()

    with running(open_gateway(Settings(tmp_path / "serving.rmkey", database="tenants.db"))) as house:
        loot = [house.embed(bought[at : at + BATCH], keys["alice"]) for at in range(0, len(bought), BATCH)]
        assert not np.array_equal(loot[0], house.embed(bought[:BATCH], keys["bob"]))

    with copy_server(TokenBag().steal(bought, np.concatenate(loot))) as copy:
        suspect = ("--key", "provider.rmkey", "--suspect", copy, "--budget", 1456, "--cache", "answers.sqlite")
        verdict = run("verify", *suspect, "--no-power")
        traced = run("trace", *suspect, "--tenant", "alice", "--tenant", "bob")

    assert verdict["outcome"] == "infringement"
    assert verdict["p_value"] <= 1e-3
    assert [(row["tenant"], row["accused"]) for row in traced["tenants"]] == [("alice", True), ("bob", False)]

    # The same verdict on the same texts clears who never bought: the provider's own unmarked model.
    innocent = run("verify", "--key", "provider.rmkey", "--suspect", "wordllama", "--budget", 1456, "--no-power")
    assert innocent["outcome"] != "infringement"
