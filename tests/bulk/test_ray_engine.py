"""The same job on Ray: same bytes, same manifest, killed and resumed; no key material anywhere that Ray keeps things.

One cluster for the whole file, with its dashboard switched on.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from tests.support import ray_host
from tests.support.shards import ROWS, digests, shard_table, temporary_files

from regionmarker import RegionMarker
from regionmarker.bulk.job import Job
from regionmarker.bulk.ray_engine import ray_engine
from regionmarker.corpus import TextSet
from regionmarker.crypto.secret import Secret
from regionmarker.errors import InputError
from regionmarker.keys.commitment import serving_with_commitment
from regionmarker.keys.files import KeyReference, given_opener, save_serving

pytestmark = pytest.mark.xdist_group("ray")

CANARY = b"canary-canary-canary-canary-1234"
LOCK_CANARY = b"lockcanary-lockcanary-lockcanary"
TEXT_CANARY = "a canary text that is in the pool"
PATIENCE = 300


class Host:
    """The process that holds the cluster."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.facts = self._answer()

    def _answer(self) -> dict:
        line = self._process.stdout.readline()
        assert line, "the process that holds the cluster has died"
        return json.loads(line)

    def ask(self, do: str, **arguments) -> dict:
        self._process.stdin.write(json.dumps({"do": do, **arguments}) + "\n")
        self._process.stdin.flush()
        return self._answer()

    def mark(self, source, target, key, opener=None, named_by=None, **settings) -> dict:
        job = {"source": str(source), "target": str(target), **settings}
        named = None if named_by is None else {"path": str(named_by)}
        return self.ask("mark", job=job, reference={"path": str(key), "opener": opener}, named_by=named)


@pytest.fixture(scope="module")
def host(tmp_path_factory):
    """A cluster of two workers with its dashboard on; the secret that opens keys is in its environment."""
    pytest.importorskip("ray", reason="ray is not installed")
    log = tmp_path_factory.mktemp("ray") / "stderr"
    environment = {**os.environ, "SERVING_SECRET": LOCK_CANARY.hex()}
    with log.open("wb") as errors, subprocess.Popen(
        [sys.executable, ray_host.__file__],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment,
        start_new_session=True,
    ) as process:  # fmt: skip
        try:
            host = Host(process)
            host.facts["log"] = str(log)
            yield host
            process.stdin.close()
            process.wait(PATIENCE)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)


def test_both_engines_give_the_same_bytes_and_manifest(host, mark, shards, tmp_path, embeddings, bulk_keys):
    source = shards(5)
    bad = embeddings[:ROWS].copy()
    bad[7] = np.nan
    pq.write_table(shard_table(bad, 0), source / "part-003.parquet")
    (source / "part-004.parquet").write_bytes(b"torn")
    settings = {"on_bad_row": "set-aside", "tenant": "acme"}
    here = mark(source, tmp_path / "here", **settings).manifest
    there = host.mark(source, tmp_path / "there", bulk_keys / "key-serving.rmkey", **settings)["manifest"]
    assert there == here
    assert [entry["shard"] for entry in there["shards"] if entry["status"] == "refused"] == ["part-004.parquet"]
    assert digests(tmp_path / "there") == digests(tmp_path / "here")
    assert digests(tmp_path / "there.set-aside") == digests(tmp_path / "here.set-aside") != {}
    assert temporary_files(tmp_path) == []
    for name in ("manifest.json", "job.json"):
        first, second = (tmp_path / run / "_regionmarker" / name for run in ("here", "there"))
        assert first.read_bytes() == second.read_bytes()


def test_a_killed_driver_is_resumed_by_the_same_job(host, mark, shards, tmp_path, bulk_keys):
    source, target, key = shards(40), tmp_path / "out", bulk_keys / "key-serving.rmkey"
    options = ["--engine", "ray", "--address", host.facts["address"], "--workers", "1", "--key", key, source, target]
    entries = target / "_regionmarker" / "entries"
    deadline = time.monotonic() + PATIENCE
    with subprocess.Popen(
        [sys.executable, "-m", "regionmarker", "mark", *map(str, options)],
        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    ) as driver:  # fmt: skip
        while driver.poll() is None and time.monotonic() < deadline and not list(entries.glob("*.json")):
            time.sleep(0.01)
        driver.send_signal(signal.SIGKILL)
    wanted = mark(source, tmp_path / "unbroken").manifest
    assert digests(target).items() <= digests(tmp_path / "unbroken").items()
    assert host.mark(source, target, key)["manifest"] == wanted
    assert digests(target) == digests(tmp_path / "unbroken")
    assert sorted(pq.read_table(target).column("id").to_pylist()) == list(range(40 * ROWS))
    assert temporary_files(target) == []


def test_what_a_worker_cannot_do_is_one_sentence(host, shards, tmp_path, bulk_keys):
    source, key = shards(2), bulk_keys / "key.rmkey"
    missing = host.mark(source, tmp_path / "out", tmp_path / "gone.rmkey", named_by=key)
    assert "cannot open" in missing["error"]
    wrong = host.mark(source, tmp_path / "out", key, opener="environment:SERVING_SECRET", named_by=key)
    assert "or the passphrase or secret file is wrong" in wrong["error"]
    assert all(len(answer["error"].splitlines()) == 1 for answer in (missing, wrong))
    assert temporary_files(tmp_path / "out") == []
    with pytest.raises(InputError, match="lies in the memory of one process"):
        ray_engine(Job("memory://a", "memory://b"), KeyReference("k"))


@pytest.fixture
def lock(tmp_path) -> Path:
    path = tmp_path / "lock.secret"
    path.write_bytes(LOCK_CANARY)
    path.chmod(0o600)
    return path


def forms(material: bytes) -> list[bytes]:
    return [material, material.hex().encode(), repr(material).encode(), material[:12]]


def test_nothing_that_ray_keeps_holds_key_material(host, sentences, embeddings, shards, tmp_path, lock):
    """The dashboard's answers, the session's files and logs, the object store: searched for canaries in every form."""
    texts = [TEXT_CANARY, *sentences[1:2000]]
    key = RegionMarker(pool=64, reservoir=256).fit(texts, embeddings=embeddings[:2000]).key_
    key = replace(key, master=Secret(CANARY), pool=TextSet((TEXT_CANARY, *key.pool.texts[1:]), key.pool.embeddings))
    path, serving = tmp_path / "canary.rmkey", tmp_path / "canary-serving.rmkey"
    RegionMarker.from_key(key).save(path, secret_file=lock)
    save_serving(serving, serving_with_commitment(key, ["acme"]), given_opener(None, lock))
    source, opener = shards(3), "environment:SERVING_SECRET"
    for name, key_path in (("a", path), ("b", serving)):
        done = host.mark(source, tmp_path / name, key_path, opener=opener, tenant="acme")
        assert done["manifest"]["totals"]["refused"] == 0
    targets = key.serving(["acme"]).mark.vectors
    forbidden = [
        *forms(CANARY), *forms(LOCK_CANARY), TEXT_CANARY.encode(), key.mark.normals[0].tobytes()[:16],
        *(row.tobytes()[:64] for row in targets),
    ]  # fmt: skip
    kept = {**session_files(Path(host.facts["session"])), **dashboard(host.facts["dashboard"])}
    kept["stderr"] = Path(host.facts["log"]).read_bytes()
    assert [(name, word) for name, content in kept.items() for word in forbidden if word in content] == []
    searched = host.ask("search", words=[word.hex() for word in forbidden])
    assert searched["searched"] > 1_000_000
    assert searched["found"] == []
    host.ask("put", word=CANARY.hex())  # and the search does find what is there
    assert host.ask("search", words=[CANARY.hex()])["found"] != []


def session_files(folder: Path) -> dict[str, bytes]:
    files = {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    assert any("logs" in name for name in files)
    return files


def dashboard(url: str) -> dict[str, bytes]:
    """What the dashboard says of jobs, actors, tasks, nodes, objects and workers."""
    pages = [
        "api/jobs/", "api/v0/actors?detail=true", "api/v0/tasks?detail=true", "api/v0/objects?detail=true",
        "api/v0/workers?detail=true", "api/v0/nodes?detail=true", "nodes?view=summary", "logical/actors",
        "api/cluster_status", "api/version",
    ]  # fmt: skip
    token = Path("~/.ray/auth_token").expanduser()
    headers = {"Authorization": f"Bearer {token.read_text().strip()}"} if token.exists() else {}
    answers = {}
    for page in pages:
        answers[f"http://{url}/{page}"] = read(urllib.request.Request(f"http://{url}/{page}", headers=headers))
    assert b"ShardWorker" in answers[f"http://{url}/logical/actors"]  # it knows our workers
    return answers


def read(request: urllib.request.Request) -> bytes:
    """Ask until there is an answer: the dashboard's parts come up one after the other."""
    deadline = time.monotonic() + PATIENCE
    while True:
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                return answer.read()
        except urllib.error.URLError as error:
            if isinstance(error, urllib.error.HTTPError):
                error.close()
            if time.monotonic() > deadline:
                raise
            time.sleep(0.5)
