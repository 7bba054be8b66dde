"""A store in memory and one that speaks S3: the same job gives the same bytes there as in a folder."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest
from tests.support.shards import temporary_files

from regionmarker.bulk.job import open_storage
from regionmarker.bulk.remote_storage import RemoteStorage, remove_stale_folders, temporary_folder
from regionmarker.errors import InputError

KEEP = """
import os, signal
from regionmarker.bulk.remote_storage import temporary_folder
with temporary_folder() as folder:
    (folder / "part").write_bytes(b"half")
    print(folder, flush=True)
    os.kill(os.getpid(), signal.SIGKILL)
"""


def tree(storage) -> dict[str, bytes]:
    return {file.name: storage.read(file.name) for file in storage.files()}


def test_what_cannot_be_opened_is_one_sentence():
    with pytest.raises(InputError, match="cannot open nowhere://x"):
        open_storage("nowhere://x")


def test_a_job_in_memory_equals_one_on_disk(mark, shards, tmp_path):
    source = shards(3)
    on_disk = mark(source, tmp_path / "out")
    store = open_storage("memory://bulk-job/in")
    for path in source.iterdir():
        store.write(path.name, path.read_bytes())
    in_memory = mark("memory://bulk-job/in", "memory://bulk-job/out")
    names = [entry["shard"] for entry in on_disk.manifest["shards"]]
    marked = open_storage("memory://bulk-job/out")
    assert all(marked.read(name) == (tmp_path / "out" / name).read_bytes() for name in names)
    assert [entry["output_sha256"] for entry in in_memory.manifest["shards"]] == [
        entry["output_sha256"] for entry in on_disk.manifest["shards"]
    ]
    assert mark("memory://bulk-job/in", "memory://bulk-job/out").already_done == 3
    assert not [name for name in tree(marked) if name.endswith((".tmp", "lock"))]


def test_a_killed_process_leaves_its_copies_to_the_next_one(monkeypatch, tmp_path):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", KEEP], capture_output=True, text=True, env=environment)
    left = Path(done.stdout.strip())
    assert (left / "part").exists()
    with temporary_folder() as mine:
        assert not left.exists()
        remove_stale_folders()
        assert mine.exists()
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def store():
    found = RemoteStorage("memory://lock-of-a-store")
    found.remove("lock")
    yield found
    found.remove("lock")


def holder(**facts) -> bytes:
    return json.dumps({"host": "elsewhere", "pid": 1, "token": "t", "time": time.time(), **facts}).encode()


def test_a_store_is_locked_by_a_fresh_note(store):
    store.write("lock", holder())
    with pytest.raises(InputError, match="another job is writing to memory://lock-of-a-store"), store.lock("lock"):
        pass
    assert store.read("lock") is not None


def test_a_stale_note_or_one_of_a_dead_process_is_nobodys(store):
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    for left in (holder(time=time.time() - 3600), holder(host=socket.gethostname(), pid=gone.pid), b"{"):
        store.write("lock", left)
        with store.lock("lock"):
            assert json.loads(store.read("lock"))["pid"] == os.getpid()
        assert store.read("lock") is None


# A server that speaks S3 in a process of its own: it uploads a folder, says its port, and later writes a bucket out.
SERVER = """
import sys
from pathlib import Path
import boto3
from moto.server import ThreadedMotoServer
server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
server.start()
url = "http://127.0.0.1:%d" % server.get_host_and_port()[1]
client = boto3.client("s3", endpoint_url=url)
client.create_bucket(Bucket="vectors")
for path in Path(sys.argv[1]).iterdir():
    client.put_object(Bucket="vectors", Key="in/" + path.name, Body=path.read_bytes())
print(url, flush=True)
for line in sys.stdin:
    for item in client.list_objects_v2(Bucket="vectors", Prefix="out/")["Contents"]:
        path = Path(line.strip()) / item["Key"]
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(client.get_object(Bucket="vectors", Key=item["Key"])["Body"].read())
    print("written", flush=True)
"""


def marked_on_s3(environment, key, source, target) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "regionmarker", "mark", "--json", "--key", str(key), source, target]
    return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300)


def test_a_job_on_s3_equals_one_on_disk(mark, shards, tmp_path, bulk_keys):
    pytest.importorskip("moto.server", reason="moto is not installed")
    pytest.importorskip("s3fs", reason="s3fs is not installed")
    source = shards(3)
    on_disk = mark(source, tmp_path / "out")
    names = {"AWS_ACCESS_KEY_ID": "tests", "AWS_SECRET_ACCESS_KEY": "tests", "AWS_DEFAULT_REGION": "us-east-1"}
    environment = {**os.environ, **names}
    with subprocess.Popen(
        [sys.executable, "-c", SERVER, source],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=environment,
    ) as server:  # fmt: skip
        environment["AWS_ENDPOINT_URL"] = server.stdout.readline().strip()
        key = bulk_keys / "key-serving.rmkey"
        runs = [marked_on_s3(environment, key, "s3://vectors/in", "s3://vectors/out") for _ in range(2)]
        nowhere = marked_on_s3(environment, key, "s3://nobodys/in", str(tmp_path / "never"))
        server.stdin.write(f"{tmp_path / 's3'}\n")
        server.stdin.flush()
        server.stdout.readline()
        server.stdin.close()
    assert [run.returncode for run in runs] == [0, 0], runs[0].stderr + runs[1].stderr
    assert [json.loads(run.stdout)["already_done"] for run in runs] == [0, 3]
    there = tmp_path / "s3" / "out"
    for entry in on_disk.manifest["shards"]:
        assert (there / entry["shard"]).read_bytes() == (tmp_path / "out" / entry["shard"]).read_bytes()
    manifest = json.loads((there / "_regionmarker" / "manifest.json").read_bytes())
    for far, near in zip(manifest["shards"], on_disk.manifest["shards"], strict=True):
        assert {**far, "input_stamp": ""} == {**near, "input_stamp": ""}
    assert temporary_files(tmp_path) == []
    assert nowhere.returncode in (2, 3)
    assert "s3://nobodys/in" in nowhere.stderr
    assert len(nowhere.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "never").exists()
