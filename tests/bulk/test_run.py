"""A job: everything once, resumed where it was cut short, and one clear sentence for each thing that can go wrong."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from tests.support.shards import ROWS, digests, matrix, shard_table, temporary_files

from regionmarker import RegionMarker
from regionmarker.bulk.job import Job
from regionmarker.bulk.manifest import KeyLabel
from regionmarker.bulk.run import local_engine, run_job
from regionmarker.errors import InputError, OutsideError
from regionmarker.keys.commitment import commit


def test_every_shard_is_marked_and_written_down(mark, shards, tmp_path, bulk_marker, embeddings):
    source = shards(3)
    outcome = mark(source, tmp_path / "out", verify_output=True)
    table = pq.read_table(tmp_path / "out")
    assert table.column("id").to_pylist() == list(range(3 * ROWS))
    assert np.array_equal(matrix(table), bulk_marker.transform(embeddings[: 3 * ROWS]))
    manifest = json.loads((tmp_path / "out" / outcome.manifest_name).read_text())
    assert manifest == outcome.manifest
    assert manifest["key"] == {
        "id": bulk_marker.key_.id, "commitment": commit(bulk_marker.key_), "public_salt": None, "test": False,
    }  # fmt: skip
    assert manifest["totals"]["rows"] == 3 * ROWS
    entries = {entry["shard"]: entry for entry in manifest["shards"]}
    assert {name: entry["output_sha256"] for name, entry in entries.items()} == digests(tmp_path / "out")
    assert {name: entry["input_sha256"] for name, entry in entries.items()} == digests(source)
    assert temporary_files(tmp_path / "out") == []


def test_a_serving_key_gives_the_same_manifest(mark, shards, tmp_path, bulk_keys):
    source = shards(2)
    serving = RegionMarker.load(bulk_keys / "key-serving.rmkey")
    assert mark(source, tmp_path / "a").manifest == mark(source, tmp_path / "b", marker=serving).manifest


def test_a_second_run_finds_nothing_to_do_and_a_new_shard_is_added(mark, shards, tmp_path, embeddings):
    source = shards(3)
    first = mark(source, tmp_path / "out")
    before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").glob("*.parquet")}
    again = mark(source, tmp_path / "out")
    assert (again.already_done, again.manifest) == (3, first.manifest)
    pq.write_table(shard_table(embeddings, 3), source / "part-003.parquet")
    assert mark(source, tmp_path / "out").already_done == 3
    assert {path: path.stat().st_mtime_ns for path in before} == before
    assert pq.read_table(tmp_path / "out").column("id").to_pylist() == list(range(4 * ROWS))


def test_a_lost_or_torn_output_is_made_again(mark, shards, tmp_path):
    source = shards(3)
    mark(source, tmp_path / "out")
    whole = digests(tmp_path / "out")
    (tmp_path / "out" / "part-000.parquet").unlink()
    (tmp_path / "out" / "part-001.parquet").write_bytes(b"torn")
    (tmp_path / "out" / "_regionmarker" / "entries" / "part-002.parquet.json").write_text("{")
    assert mark(source, tmp_path / "out").already_done == 0
    assert digests(tmp_path / "out") == whole


def test_verify_output_finds_what_changed_since_an_earlier_run(mark, shards, tmp_path):
    """Size and time are as they were, the bytes are not: an output is made again, an input is refused."""
    source, target = shards(2), tmp_path / "out"
    mark(source, target)
    whole = digests(target)
    _flip(target / "part-001.parquet")
    assert mark(source, target).already_done == 2  # by its size alone
    assert mark(source, target, verify_output=True).already_done == 1
    assert digests(target) == whole
    _flip(source / "part-000.parquet")
    assert mark(source, target).already_done == 2
    with pytest.raises(InputError, match=r"part-000\.parquet changed since it was marked"):
        mark(source, target, verify_output=True)


def _flip(path):
    stamp, content = path.stat(), bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)
    os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))


def test_changed_input_is_an_error_and_touched_input_is_not(mark, shards, tmp_path, embeddings):
    source = shards(2)
    mark(source, tmp_path / "out")
    before = digests(tmp_path / "out")
    os.utime(source / "part-000.parquet")
    assert mark(source, tmp_path / "out").already_done == 2
    pq.write_table(shard_table(embeddings, 7), source / "part-000.parquet")
    with pytest.raises(InputError, match=r"part-000.parquet changed since it was marked: put it back"):
        mark(source, tmp_path / "out")
    (source / "part-000.parquet").unlink()
    with pytest.raises(InputError, match=r"part-000.parquet was marked before, but its input is gone"):
        mark(source, tmp_path / "out")
    assert digests(tmp_path / "out") == before


def test_another_key_or_setting_on_resume_is_an_error(mark, shards, tmp_path, bulk_keys, bulk_marker):
    source = shards(2)
    mark(source, tmp_path / "out")
    before = digests(tmp_path / "out")
    other = RegionMarker.load(bulk_keys / "other.rmkey")
    with pytest.raises(InputError, match=f"begun with key {bulk_marker.key_.id}, and this is key {other.key_.id}"):
        mark(source, tmp_path / "out", marker=other)
    salted = RegionMarker.from_key(bulk_marker.key_.with_salt(bytes(range(16))))
    with pytest.raises(InputError, match=r"and this is key \w+ with a public salt"):
        mark(source, tmp_path / "out", marker=salted)
    with pytest.raises(InputError, match="begun with tenant '', and now it is 'acme'"):
        mark(source, tmp_path / "out", tenant="acme")
    assert digests(tmp_path / "out") == before
    mark(source, tmp_path / "out", marker=other, force=True)
    assert digests(tmp_path / "out").keys() == before.keys()
    assert not set(digests(tmp_path / "out").values()) & set(before.values())


def test_a_folder_of_something_else_is_refused(mark, shards, tmp_path):
    source = shards(1)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("precious")
    with pytest.raises(InputError, match=r"holds thesis.txt already, and no job of ours"):
        mark(source, tmp_path / "out")
    with pytest.raises(InputError, match="lie one in the other"):
        mark(source, source / "out")
    assert [path.name for path in (tmp_path / "out").iterdir() if path.is_file()] == ["thesis.txt"]


def test_two_jobs_on_one_output_are_kept_apart(shards, tmp_path, bulk_marker):
    source, target = shards(2), tmp_path / "out"
    job = Job(str(source), str(target))
    complaints = []

    def meddling(shards_, on_rows):
        with pytest.raises(InputError, match=r"another job is writing to .*out: wait for it"):
            run_job(job, KeyLabel.of(bulk_marker), local_engine(job, bulk_marker))
        complaints.append(True)
        yield from local_engine(job, bulk_marker)(shards_, on_rows)

    assert run_job(job, KeyLabel.of(bulk_marker), meddling).whole
    assert complaints == [True]
    assert temporary_files(target) == []


SCRIPT = """
import resource, signal, sys
from regionmarker.cli import main
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]), int(sys.argv[1])))
main(sys.argv[2:])
"""


def test_a_full_disk_loses_nothing(shards, tmp_path, bulk_keys, mark):
    """A limit on the size of files stands for the full disk: it works without a mount, and for root as well."""
    source = shards(4, rows=100)
    small = source / "part-000.parquet"
    pq.write_table(pq.read_table(small).slice(0, 10), small)
    limit = 60_000  # above the key files and the small shard, below the others
    command = [sys.executable, "-c", SCRIPT, limit, "mark", "--key", bulk_keys / "key-serving.rmkey", source, "out"]
    done = subprocess.run(
        [*map(str, command), "--workers", "1"], capture_output=True, text=True, cwd=tmp_path, timeout=300
    )
    assert done.returncode == 3, done.stderr
    assert "cannot write part-001.parquet to out: File too large; what was finished before stays" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert sorted(digests(tmp_path / "out")) == ["part-000.parquet"]
    assert temporary_files(tmp_path / "out") == []
    serving = RegionMarker.load(bulk_keys / "key-serving.rmkey")
    outcome = mark(source, tmp_path / "out", marker=serving)
    assert (outcome.whole, outcome.already_done) == (True, 1)


def test_an_output_that_cannot_be_written_is_one_sentence(mark, shards):
    """/proc takes no files, not even from root."""
    with pytest.raises(OutsideError, match="cannot write to /proc/regionmarker-out"):
        mark(shards(1), Path("/proc/regionmarker-out"))


def test_interrupting_drops_what_was_begun(shards, tmp_path, bulk_marker):
    source = shards(6)
    job = Job(str(source), str(tmp_path / "out"))
    engine = local_engine(job, bulk_marker, 2)

    def interrupted(shards_, on_rows):
        for number, entry in enumerate(engine(shards_, on_rows)):
            yield entry
            if number == 1:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_job(job, KeyLabel.of(bulk_marker), interrupted)
    assert temporary_files(tmp_path / "out") == []
    outcome = run_job(job, KeyLabel.of(bulk_marker), engine)
    assert outcome.whole
    assert outcome.already_done >= 2
