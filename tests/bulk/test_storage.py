"""A local folder: its lock keeps a second job away and never outlives its holder; what is no file is none."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from regionmarker.bulk.job import list_shards
from regionmarker.bulk.storage import LocalStorage
from regionmarker.errors import InputError

HOLD = """
import sys, time
from regionmarker.bulk.storage import LocalStorage
with LocalStorage(sys.argv[1]).lock("state/lock"):
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_killed_holder_leaves_no_lock(tmp_path):
    holder = subprocess.Popen([sys.executable, "-c", HOLD, tmp_path], stdout=subprocess.PIPE, text=True)
    with holder:
        assert holder.stdout.readline() == "held\n"
        with (
            pytest.raises(InputError, match="another job is writing to"),
            LocalStorage(str(tmp_path)).lock("state/lock"),
        ):
            pass
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    with LocalStorage(str(tmp_path)).lock("state/lock"):
        assert (tmp_path / "state" / "lock").exists()
    assert not (tmp_path / "state" / "lock").exists()


def test_a_pipe_in_place_of_a_shard_keeps_nobody_waiting(tmp_path):
    for name in ("pipe.parquet", "pipe.npy"):
        os.mkfifo(tmp_path / name)
        storage = LocalStorage(str(tmp_path))
        assert storage.info(name) is None
        assert storage.read(name) is None
        with pytest.raises(InputError, match="does not exist, or is not a file"):
            list_shards(storage, name)
    with pytest.raises(InputError, match="holds no file of vectors"):
        list_shards(storage)
