"""Places: a folder, memory, and a store that speaks S3; the same job gives the same bytes in all of them."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

import pytest
from tests.bulk.conftest import temporary_files

from regionmarker.bulk.places import open_place
from regionmarker.bulk.spool import remove_stale, spool
from regionmarker.errors import InputError

KEEP = """
import os, signal
from regionmarker.bulk.spool import spool
with spool() as folder:
    (folder / "part").write_bytes(b"half")
    print(folder, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def tree(place) -> dict[str, bytes]:
    return {file.name: place.read(file.name) for file in place.files()}


@pytest.mark.parametrize("where", ["local", "memory"])
def test_small_files_and_published_ones(tmp_path, where):
    place = open_place(str(tmp_path / "place") if where == "local" else "memory://small-files")
    place.write("a/b.txt", b"small")
    with place.scratch("partial") as path:
        path.write_bytes(b"large")
        place.publish(path, "c/d.bin")
    assert tree(place) == {"a/b.txt": b"small", "c/d.bin": b"large"}
    with place.fetched("c/d.bin") as copy:
        assert copy.read_bytes() == b"large"
    stamp = place.facts("a/b.txt")
    place.write("a/b.txt", b"other content")
    assert place.facts("a/b.txt") != stamp
    place.remove("a")
    place.remove("never/there")
    assert list(tree(place)) == ["c/d.bin"]
    assert (place.facts("a/b.txt"), place.read("a/b.txt")) == (None, None)


def test_what_cannot_be_opened_is_one_sentence():
    with pytest.raises(InputError, match="cannot open nowhere://x"):
        open_place("nowhere://x")


def test_a_job_in_memory_equals_one_on_disk(mark, shards, tmp_path):
    source = shards(3)
    on_disk = mark(source, tmp_path / "out")
    store = open_place("memory://bulk-job/in")
    for path in source.iterdir():
        store.write(path.name, path.read_bytes())
    in_memory = mark("memory://bulk-job/in", "memory://bulk-job/out")
    names = [entry["shard"] for entry in on_disk.manifest["shards"]]
    marked = open_place("memory://bulk-job/out")
    assert all(marked.read(name) == (tmp_path / "out" / name).read_bytes() for name in names)
    assert [entry["output_sha256"] for entry in in_memory.manifest["shards"]] == [
        entry["output_sha256"] for entry in on_disk.manifest["shards"]
    ]
    assert mark("memory://bulk-job/in", "memory://bulk-job/out").already_done == 3
    assert not [name for name in tree(marked) if name.endswith((".tmp", "lock"))]


def test_a_killed_process_leaves_its_spool_to_the_next_one(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", KEEP], capture_output=True, text=True, env=environment)
    left = Path(done.stdout.strip())
    assert (left / "part").exists()
    with spool() as mine:
        assert not left.exists()
        remove_stale()
        assert mine.exists()
    assert list(tmp_path.iterdir()) == []


@pytest.fixture(scope="module")
def s3():
    """A server that speaks S3, and the environment in which a client finds it."""
    server_module = pytest.importorskip("moto.server", reason="moto is not installed")
    server = server_module.ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    _, port = server.get_host_and_port()
    url = f"http://127.0.0.1:{port}"
    request(f"{url}/vectors", "PUT")
    keys = {"AWS_ACCESS_KEY_ID": "tests", "AWS_SECRET_ACCESS_KEY": "tests", "AWS_DEFAULT_REGION": "us-east-1"}
    yield url, {**os.environ, **keys, "AWS_ENDPOINT_URL": url}
    server.stop()


def request(url: str, method: str = "GET", content: bytes | None = None) -> bytes:
    with urllib.request.urlopen(urllib.request.Request(url, data=content, method=method), timeout=60) as answer:
        return answer.read()


def test_a_job_on_s3_equals_one_on_disk(s3, mark, shards, tmp_path, bulk_keys):
    pytest.importorskip("s3fs", reason="s3fs is not installed")
    url, environment = s3
    source = shards(3)
    on_disk = mark(source, tmp_path / "out")
    for path in source.iterdir():
        request(f"{url}/vectors/in/{path.name}", "PUT", path.read_bytes())
    command = [sys.executable, "-m", "regionmarker", "mark", "--json", "--key", str(bulk_keys / "key-serving.rmkey")]
    runs = [
        subprocess.run(
            [*command, "s3://vectors/in", "s3://vectors/out"], capture_output=True, text=True, env=environment
        )
        for _ in range(2)
    ]
    assert [run.returncode for run in runs] == [0, 0], runs[0].stderr + runs[1].stderr
    assert [json.loads(run.stdout)["already_done"] for run in runs] == [0, 3]
    for entry in on_disk.manifest["shards"]:
        assert request(f"{url}/vectors/out/{entry['shard']}") == (tmp_path / "out" / entry["shard"]).read_bytes()
    manifest = json.loads(request(f"{url}/vectors/out/_regionmarker/manifest.json"))
    for there, here in zip(manifest["shards"], on_disk.manifest["shards"], strict=True):
        assert {**there, "input_stamp": ""} == {**here, "input_stamp": ""}
    assert temporary_files(tmp_path) == []


def test_a_bucket_that_is_not_there_is_one_sentence(s3, tmp_path, bulk_keys):
    pytest.importorskip("s3fs", reason="s3fs is not installed")
    command = [sys.executable, "-m", "regionmarker", "mark", "--key", str(bulk_keys / "key-serving.rmkey")]
    done = subprocess.run([*command, "s3://nobodys/in", "out"], capture_output=True, text=True, env=s3[1], cwd=tmp_path)
    assert done.returncode in (2, 3)
    assert "s3://nobodys/in" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "out").exists()
