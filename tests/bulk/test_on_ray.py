"""The same job on Ray: same bytes, same manifest, killed and resumed; no key material anywhere that Ray keeps things.

One cluster for the whole file, with its dashboard switched on.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import urllib.request
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tests.bulk.conftest import ROWS, shard_table, temporary_files, vectors
from tests.bulk.test_run import digests

from regionmarker import RegionMarker
from regionmarker.bulk.fit import look_on_ray
from regionmarker.bulk.job import Job
from regionmarker.bulk.manifest import KeyName
from regionmarker.bulk.on_ray import ray_engine
from regionmarker.bulk.run import run_job
from regionmarker.errors import InputError, OutsideError
from regionmarker.keys.commitment import serving_with_commitment
from regionmarker.keys.key import TextSet
from regionmarker.keys.openers import KeyReference
from regionmarker.keys.secret import Secret
from regionmarker.keys.store import make_secret, save_serving

pytest.importorskip("ray", reason="ray is not installed")
pytestmark = pytest.mark.xdist_group("ray")

CANARY = b"canary-canary-canary-canary-1234"
LOCK_CANARY = b"lockcanary-lockcanary-lockcanary"
TEXT_CANARY = "a canary text that is in the pool"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A cluster of two workers on this machine, with a short folder of its own: sockets have short names."""
    import ray

    import regionmarker.bulk.on_ray as on_ray

    on_ray._import_ray()
    environment = {"SERVING_SECRET": LOCK_CANARY.hex()}
    os.environ.update(environment)
    try:
        started = ray.init(
            num_cpus=2, include_dashboard=True, dashboard_port=0, log_to_driver=False, object_store_memory=80_000_000
        )
        yield started
    finally:
        ray.shutdown()
        for name in environment:
            os.environ.pop(name, None)


@pytest.fixture
def on_ray(cluster, bulk_keys, bulk_marker):
    def call(source, target, *, key="key-serving.rmkey", workers=2, **settings):
        job = Job(str(source), str(target), **settings)
        engine = ray_engine(job, KeyReference(str(bulk_keys / key)), workers=workers)
        return run_job(job, KeyName.of(bulk_marker), engine)

    return call


def test_both_engines_give_the_same_bytes_and_manifest(on_ray, mark, shards, tmp_path, embeddings):
    source = shards(5)
    bad = embeddings[:ROWS].copy()
    bad[7] = np.nan
    pq.write_table(shard_table(bad, 0), source / "part-003.parquet")
    (source / "part-004.parquet").write_bytes(b"torn")
    settings = {"on_bad_row": "set-aside", "tenant": "acme"}
    here = mark(source, tmp_path / "here", **settings)
    there = on_ray(source, tmp_path / "there", **settings)
    assert there.manifest == here.manifest
    assert [entry.shard for entry in there.refused] == ["part-004.parquet"]
    assert digests(tmp_path / "there") == digests(tmp_path / "here")
    assert digests(tmp_path / "there.set-aside") == digests(tmp_path / "here.set-aside") != {}
    assert temporary_files(tmp_path) == []
    for name in ("manifest.json", "job.json"):
        first, second = (tmp_path / run / "_regionmarker" / name for run in ("here", "there"))
        assert first.read_bytes() == second.read_bytes()


DRIVER = """
import sys
from regionmarker.cli import main
main(sys.argv[1:])
"""


def test_a_killed_driver_is_resumed_by_the_same_command(on_ray, mark, shards, tmp_path, cluster, bulk_keys):
    source, target = shards(40), tmp_path / "out"
    command = ["mark", "--engine", "ray", "--address", cluster.address_info["address"], "--workers", "1"]
    arguments = [*command, "--key", bulk_keys / "key-serving.rmkey", source, target]
    entries = target / "_regionmarker" / "entries"
    deadline = time.monotonic() + 300
    with subprocess.Popen([sys.executable, "-c", DRIVER, *map(str, arguments)], stderr=subprocess.DEVNULL) as driver:
        while driver.poll() is None and time.monotonic() < deadline and not list(entries.glob("*.json")):
            time.sleep(0.01)
        driver.send_signal(signal.SIGKILL)
    wanted = mark(source, tmp_path / "unbroken")
    visible = digests(target)
    assert visible.items() <= digests(tmp_path / "unbroken").items()
    assert on_ray(source, target).manifest == wanted.manifest
    assert digests(target) == digests(tmp_path / "unbroken")
    assert sorted(pq.read_table(target).column("id").to_pylist()) == list(range(40 * ROWS))
    assert temporary_files(target) == []


def test_what_a_worker_cannot_do_is_one_sentence(on_ray, shards, tmp_path, bulk_keys, cluster):
    source = shards(2)
    job = Job(str(source), str(tmp_path / "out"))
    marker = RegionMarker.load(bulk_keys / "key.rmkey")
    for reference, message in (
        (KeyReference(str(tmp_path / "gone.rmkey")), "cannot open .*gone.rmkey"),
        (KeyReference(str(bulk_keys / "key.rmkey"), opener="environment:NOT_SET"), "NOT_SET is not set here"),
        (KeyReference(str(bulk_keys / "key.rmkey"), opener="environment:SERVING_SECRET"), "wrong"),
    ):
        with pytest.raises((InputError, OutsideError), match=message):
            run_job(job, KeyName.of(marker), ray_engine(job, reference))
    with pytest.raises(InputError, match="lies in the memory of one process"):
        ray_engine(Job("memory://a", "memory://b"), KeyReference("k"))
    assert temporary_files(tmp_path / "out") == []


def corpus(folder: Path, sentences, embeddings, files: int = 7, rows: int = 300) -> Path:
    folder.mkdir()
    for number in range(files):
        part = slice(number * rows, (number + 1) * rows)
        table = pa.table({"text": sentences[part], "embedding": vectors(embeddings[part])})
        pq.write_table(table, folder / f"part-{number}.parquet")
    return folder


def test_a_key_fitted_on_ray_equals_one_fitted_in_memory(cluster, sentences, embeddings, tmp_path):
    folder = corpus(tmp_path / "corpus", sentences, embeddings)
    settings = {"seed": 3, "pool": 64, "reservoir": 512}
    inside = RegionMarker(**settings).fit(sentences[:2100], embeddings=embeddings[:2100]).key_
    make_secret(tmp_path / "k.rmkey")
    look = look_on_ray(folder, KeyReference(str(tmp_path / "k.rmkey")))
    there = RegionMarker(**settings).fit_survey(look).key_
    assert there.pool.texts == inside.pool.texts
    assert there.reservoir.texts == inside.reservoir.texts
    assert (there.regions, there.tenant_regions, there.grid) == (inside.regions, inside.tenant_regions, inside.grid)
    for name, array in inside.reduction.arrays().items():
        assert np.abs(there.reduction.arrays()[name] - array).max() < 1e-6
    assert np.abs(there.normals - inside.normals).max() < 1e-6
    bad = pq.read_table(folder / "part-3.parquet").to_pylist()
    bad[11]["embedding"][0] = float("nan")
    pq.write_table(pa.Table.from_pylist(bad), folder / "part-3.parquet")
    with pytest.raises(InputError, match=r"part-3.parquet.*row 11 holds NaN"):
        RegionMarker(**settings).fit_survey(look)


def forms(material: bytes) -> list[bytes]:
    return [material, material.hex().encode(), repr(material).encode(), material[:12]]


def test_nothing_that_ray_keeps_holds_key_material(cluster, sentences, embeddings, shards, tmp_path):
    """The dashboard's answers, the logs, the object store and its spill: searched for canaries in every form."""
    import ray

    key = RegionMarker(pool=64, reservoir=256).fit(sentences[:2000], embeddings=embeddings[:2000]).key_
    pool = TextSet((TEXT_CANARY, *key.pool.texts[1:]), key.pool.embeddings)
    key = replace(key, master=Secret(CANARY), pool=pool)
    lock = tmp_path / "lock.secret"
    lock.write_bytes(LOCK_CANARY)
    lock.chmod(0o600)
    from regionmarker.keys.store import given_opener

    path = tmp_path / "canary.rmkey"
    RegionMarker.from_key(key).save(path, secret_file=lock)
    serving = tmp_path / "canary-serving.rmkey"
    save_serving(serving, serving_with_commitment(key, ["acme"]), given_opener(None, lock))
    source = shards(3)
    for name, key_path in (("a", path), ("b", serving)):
        job = Job(str(source), str(tmp_path / name), tenant="acme")
        reference = KeyReference(str(key_path), opener="environment:SERVING_SECRET")
        assert run_job(job, KeyName.of(reference.open()), ray_engine(job, reference)).whole
    folder = corpus(tmp_path / "corpus", [TEXT_CANARY, *sentences[1:]], embeddings, files=2)
    RegionMarker(seed=3, pool=64, reservoir=512).fit_survey(
        look_on_ray(folder, KeyReference(str(path), opener="environment:SERVING_SECRET"))
    )
    kept = {**session_files(Path(cluster.address_info["session_dir"])), **dashboard(cluster.dashboard_url)}
    kept.update(plasma(os.getpid()))
    assert any(name.startswith("http") for name in kept)
    assert any("plasma" in name for name in kept)
    normal = key.normals[0].tobytes()[:16]
    target = key.serving(["acme"]).vectors[0].tobytes()[:64]
    forbidden = [*forms(CANARY), *forms(LOCK_CANARY), normal]
    found = [(name, word) for name, content in kept.items() for word in forbidden if word in content]
    assert found == []
    assert [name for name, content in kept.items() if TEXT_CANARY.encode() in content or target in content] == []
    ray.put(CANARY * 4000)  # and the search does find what is there
    assert any(CANARY in content for content in plasma(os.getpid()).values())


def session_files(folder: Path) -> dict[str, bytes]:
    return {str(path): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def dashboard(url: str) -> dict[str, bytes]:
    """What the dashboard says of jobs, actors, tasks, nodes, objects and logs."""
    pages = [
        "api/jobs/", "api/v0/actors?detail=true", "api/v0/tasks?detail=true", "api/v0/objects?detail=true",
        "api/v0/workers?detail=true", "api/v0/nodes?detail=true", "nodes?view=summary", "logical/actors",
        "api/cluster_status", "api/version",
    ]  # fmt: skip
    token = Path("~/.ray/auth_token").expanduser()
    headers = {"Authorization": f"Bearer {token.read_text().strip()}"} if token.exists() else {}
    answers = {}
    for page in pages:
        request = urllib.request.Request(f"http://{url}/{page}", headers=headers)
        with urllib.request.urlopen(request, timeout=120) as answer:
            answers[f"http://{url}/{page}"] = answer.read()
    assert b"ShardWorker" in answers[f"http://{url}/logical/actors"]
    assert json.loads(answers[f"http://{url}/api/version"])
    return answers


def plasma(process: int) -> dict[str, bytes]:
    """The object store, through this process's own mapping of it."""
    found = {}
    for line in Path(f"/proc/{process}/maps").read_text().splitlines():
        place, permissions, _, _, _, *name = line.split(maxsplit=5)
        if name and "plasma" in name[0] and "r" in permissions:
            start, end = (int(part, 16) for part in place.split("-"))
            with Path(f"/proc/{process}/mem").open("rb", buffering=0) as memory:
                memory.seek(start)
                found[f"{name[0]} {place}"] = memory.read(end - start)
    return found
