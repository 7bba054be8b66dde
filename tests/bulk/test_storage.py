"""The lock of a local folder keeps a second job away, and never outlives its holder."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

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
