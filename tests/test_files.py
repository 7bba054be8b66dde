"""Files are whole or not there, and a folder's lock never outlives its holder."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

from regionmarker.errors import InputError, OutsideError
from regionmarker.files import atomic_path, lock_folder

HOLD = """
import sys, time
from pathlib import Path
from regionmarker.files import lock_folder
with lock_folder(Path(sys.argv[1]), "busy"):
    print("held", flush=True)
    time.sleep(600)
"""


def test_a_failed_write_changes_nothing(tmp_path):
    target = tmp_path / "whole.txt"
    target.write_text("before")

    def interrupted() -> None:
        with atomic_path(target) as temporary:
            temporary.write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert target.read_text() == "before"
    assert list(tmp_path.iterdir()) == [target]


def test_what_the_disk_refuses_is_one_sentence(tmp_path):
    refusal = r"^cannot write .*: No such file or directory; nothing was changed$"
    with pytest.raises(OutsideError, match=refusal), atomic_path(tmp_path / "gone" / "file"):
        pass


def test_a_killed_holder_leaves_no_lock(tmp_path):
    with subprocess.Popen([sys.executable, "-c", HOLD, tmp_path], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(InputError, match=r"^wait for it$"), lock_folder(tmp_path, "wait for it"):
            pass
        holder.send_signal(signal.SIGKILL)
        holder.wait()
    with lock_folder(tmp_path, "wait for it"):
        assert list(tmp_path.iterdir()) == []
