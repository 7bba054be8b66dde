"""kill -9 in the middle of a job: the same command goes on, and the end is what it would have been.

The long form, 50 points on either engine, is studies/bulk/kill.py.
"""

from __future__ import annotations

import signal
import subprocess
import sys

import pyarrow.parquet as pq
import pytest
from tests.support.shards import ROWS, digests, temporary_files

SHARDS = 12
# Marks a shard, then waits for as long as it is let live: the test kills it at a point of its own choice.
DRIVE = """
import os, sys, threading, time
from regionmarker.bulk import shard as module
from regionmarker.cli import main
stop_after, moment = int(sys.argv[1]), sys.argv[2]
real_publish, real_mark = module.ShardMarker._check_unchanged, module.ShardMarker.mark
done, lock = [0], threading.Lock()

def hang():
    os.write(1, b"here\\n")  # in one piece: two threads may come here at once
    time.sleep(600)

def before_publishing(self, shard):
    real_publish(self, shard)
    if moment == "written" and done[0] >= stop_after:
        hang()

def counting(self, shard, *arguments):
    entry = real_mark(self, shard, *arguments)
    with lock:
        done[0] += 1
        if moment == "entered" and done[0] > stop_after:
            hang()
    return entry

module.ShardMarker._check_unchanged, module.ShardMarker.mark = before_publishing, counting
main(sys.argv[3:])
"""


@pytest.mark.parametrize(("after", "moment"), [(0, "written"), (5, "entered"), (10, "written")])
def test_a_killed_job_goes_on(mark, shards, tmp_path, bulk_keys, bulk_marker, after, moment):
    source, target = shards(SHARDS), tmp_path / "out"
    command = ["mark", "--key", bulk_keys / "key.rmkey", "--workers", "2", source, target]
    arguments = [sys.executable, "-c", DRIVE, str(after), moment, *map(str, command)]
    with subprocess.Popen(arguments, stdout=subprocess.PIPE, text=True) as killed:
        came = killed.stdout.readline()
        killed.send_signal(signal.SIGKILL)
        assert (came, killed.wait(60)) == ("here\n", -signal.SIGKILL)
    if moment == "written":
        assert temporary_files(target) != []  # what the next run has to clean up
    visible = digests(target)
    outcome = mark(source, target)
    assert after <= outcome.already_done < SHARDS
    unbroken = mark(source, tmp_path / "unbroken")
    assert outcome.manifest == unbroken.manifest
    assert digests(target) == digests(tmp_path / "unbroken")
    assert visible.items() <= digests(target).items()
    assert sorted(pq.read_table(target).column("id").to_pylist()) == list(range(SHARDS * ROWS))
    assert temporary_files(target) == []
