"""``regionmarker serve`` as a process: tenants, a key replaced under SIGHUP, SIGTERM, and what the options refuse."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys

import numpy as np
import pytest
from tests.support.gateways import PATIENCE, eventually
from tests.support.running import House

from regionmarker import RegionMarker
from regionmarker.cli import main
from regionmarker.gateway.tenants.accounts import Accounts
from regionmarker.keys.files import save_serving
from regionmarker.keys.key import key_from_key

TOKEN = "the-operators-own-token"


@pytest.fixture
def started(tmp_path, real_marker):
    """A gateway with two tenants, and what it has logged."""
    save_serving(tmp_path / "serving.rmkey", real_marker.key_.serving(["acme"]), None)
    accounts = Accounts.open(str(tmp_path / "t.db"))
    key = accounts.add("acme")
    accounts.close()
    command = [sys.executable, "-m", "regionmarker", "serve", "--key", "serving.rmkey", "--port", "0"]
    command += ["--database", "t.db", "--drain-delay", "0", "--canaries", "canaries.json"]
    environment = {**os.environ, "REGIONMARKER_ADMIN_TOKEN": TOKEN}
    log = (tmp_path / "log").open("w+")
    process = subprocess.Popen(command, cwd=tmp_path, stderr=log, env=environment)

    def lines():
        assert process.poll() is None, (tmp_path / "log").read_text()
        text = (tmp_path / "log").read_text()
        return [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]

    def line(event):
        return next((line for line in lines() if line["event"] == event), None)

    try:
        port = eventually(lambda: line("listening"))["port"]
        house = House(f"http://127.0.0.1:{port}", None)
        eventually(lambda: _ready(house))
        yield house, process, key, line
    finally:
        process.kill()
        process.wait()
        log.close()


def _ready(house):
    try:
        return house.ask("/readyz")[0] == 200
    except OSError:
        return False


def test_it_serves_reloads_and_stops(started, tmp_path, real_marker, sentences, wordllama):
    house, process, key, line = started
    texts = sentences[::30]
    clean = wordllama.encode(texts)
    assert np.array_equal(house.embed(texts, key), real_marker.transform(clean, tenant="acme"))
    rotated = key_from_key(real_marker.key_)
    save_serving(tmp_path / "serving.rmkey", rotated.serving(["acme"]), None, overwrite=True)
    process.send_signal(signal.SIGHUP)
    eventually(lambda: line("serving with a new key"))
    assert np.array_equal(house.embed(texts, key), RegionMarker.from_key(rotated).transform(clean, tenant="acme"))
    assert rotated.id.encode() in house.ask("/console", token=TOKEN)[2]
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE) == 0
    accounts = Accounts.open(str(tmp_path / "t.db"))
    assert [(entry.requests, entry.inputs) for entry in accounts.all()] == [(2, 2 * len(texts))]
    accounts.close()
    written = (tmp_path / "log").read_text()
    for secret in (key, TOKEN, texts[0]):
        assert secret not in written
    assert (tmp_path / "canaries.json").exists()


def test_a_shutdown_that_loses_counts_has_an_exit_code(started, tmp_path):
    house, process, key, _ = started
    with sqlite3.connect(tmp_path / "t.db") as database:
        database.execute("ALTER TABLE usage RENAME TO elsewhere")
    house.embed(["a text"], key)
    process.send_signal(signal.SIGTERM)
    assert process.wait(PATIENCE) == 3
    last = (tmp_path / "log").read_text().splitlines()[-1]
    assert "the gateway has stopped, but not well: the last usage was not written: the tenants database" in last
    assert "no such table" in last


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--host", "0.0.0.0"], "--host 0.0.0.0 can be reached by others: give a tenants database with --database"),
        (["--serve-unmarked", "yes"], "--serve-unmarked takes nobody, shadow-tenants, everyone, not 'yes'"),
        (["--database", "no/such/t.db"], "the folder no/such does not exist"),
    ],
)
def test_what_is_refused(tmp_path, real_marker, monkeypatch, capsys, options, message):
    monkeypatch.chdir(tmp_path)
    save_serving(tmp_path / "serving.rmkey", real_marker.key_.serving(), None)
    with pytest.raises(SystemExit) as left:
        main(["serve", "--key", "serving.rmkey", *options])
    assert left.value.code == 2
    assert message in capsys.readouterr().err
