"""The lock keeps a second job away, and never outlives its holder."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from regionmarker.bulk.lock import locked
from regionmarker.bulk.storage import open_place
from regionmarker.errors import InputError

HOLD = """
import sys, time
from regionmarker.bulk.lock import locked
from regionmarker.bulk.storage import open_place
with locked(open_place(sys.argv[1]), "state/lock"):
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_killed_holder_leaves_no_lock(tmp_path):
    holder = subprocess.Popen([sys.executable, "-c", HOLD, tmp_path], stdout=subprocess.PIPE, text=True)
    with holder:
        assert holder.stdout.readline() == "held\n"
        with (
            pytest.raises(InputError, match="another job is writing to"),
            locked(open_place(str(tmp_path)), "state/lock"),
        ):
            pass
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    with locked(open_place(str(tmp_path)), "state/lock"):
        assert (tmp_path / "state" / "lock").exists()
    assert not (tmp_path / "state" / "lock").exists()


@pytest.fixture
def store():
    place = open_place("memory://lock-of-a-store")
    place.remove("lock")
    yield place
    place.remove("lock")


def holder(**facts) -> bytes:
    return json.dumps({"host": "elsewhere", "pid": 1, "token": "t", "time": time.time(), **facts}).encode()


def test_a_store_is_locked_by_a_fresh_note(store):
    store.write("lock", holder())
    with pytest.raises(InputError, match="another job is writing to memory://lock-of-a-store"), locked(store, "lock"):
        pass
    assert store.read("lock") is not None


def test_a_stale_note_or_one_of_a_dead_process_is_nobodys(store):
    import socket

    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    for left in (holder(time=time.time() - 3600), holder(host=socket.gethostname(), pid=gone.pid), b"{"):
        store.write("lock", left)
        with locked(store, "lock"):
            assert json.loads(store.read("lock"))["pid"] == os.getpid()
        assert store.read("lock") is None
