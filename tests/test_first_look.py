"""Where a library dies over a file, only a child dies, and the next look is answered."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from regionmarker.errors import InputError, MissingExtraError, OutsideError
from regionmarker.first_look import Looker, first_look


@pytest.fixture
def looker():
    found = Looker()
    yield found
    found.close()


def test_a_crash_is_a_sentence_and_the_next_look_is_answered(looker):
    with pytest.raises(InputError, match=r"^cannot read a\.parquet: the library that reads it crashed \(SIGABRT\)"):
        looker.look("os:abort", "a.parquet")
    looker.look("os:stat", "here", path=".")


def test_a_child_that_others_end_does_not_blame_the_file(looker):
    with pytest.raises(OutsideError, match=r"the process that looked at a\.parquet was ended from outside"):
        looker.look("os:_exit", "a.parquet", status=7)
    looker.look("os:stat", "here", path=".")
    looker._child.send_signal(signal.SIGKILL)
    looker._child.wait()
    with pytest.raises(OutsideError, match="run again"):
        looker.look("os:stat", "here", path=".")


def test_errors_come_back_as_they_are(looker, tmp_path):
    with pytest.raises(MissingExtraError, match="pip install"):
        looker.look("tests.support.looks:missing_extra", "a.lance")
    with pytest.raises(InputError, match=r"^cannot read a\.lance: a panic$"):
        looker.look("tests.support.looks:panic", "a.lance")  # neither is it an Exception there


def test_what_a_reader_prints_is_no_answer(looker):
    looker.look("tests.support.looks:loud", "a.lance")
    looker.look("os:stat", "here", path=".")


def test_relative_paths_follow_the_parent(looker, tmp_path, monkeypatch):
    looker.look("os:stat", "here", path=".")
    (tmp_path / "only-there").touch()
    monkeypatch.chdir(tmp_path)
    looker.look("os:stat", "there", path="only-there")


def test_the_child_knows_nothing_that_opens_a_key(looker, monkeypatch):
    monkeypatch.setenv("REGIONMARKER_PASSPHRASE", "swordfish")
    monkeypatch.setenv("SOMETHING_ELSE", "harmless")
    looker.look("tests.support.looks:without_variable", "a", variable="REGIONMARKER_PASSPHRASE")
    with pytest.raises(InputError, match="SOMETHING_ELSE is there"):
        looker.look("tests.support.looks:without_variable", "a", variable="SOMETHING_ELSE")


def test_many_threads_share_one_child(looker):
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda _: looker.look("os:stat", "here", path="."), range(200)))


def test_a_fork_starts_a_child_of_its_own():
    script = (
        "import os\nfrom regionmarker.first_look import LOOKER, first_look\n"
        "first_look('os:stat', 'here', path='.')\nmine = LOOKER._child.pid\n"
        "if not (pid := os.fork()):\n"
        "    first_look('os:stat', 'here', path='.')\n"
        "    same = LOOKER._child.pid == mine\n    LOOKER.close()\n    os._exit(same)\n"
        "code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])\n"
        "first_look('os:stat', 'here', path='.')\n"
        "assert (code, LOOKER._child.pid) == (0, mine)\n"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_an_executable_that_is_none_is_not_the_files_fault(looker, monkeypatch):
    for executable, said in (("/bin/false", "did not run it"), ("/nowhere/python", "No such file")):
        monkeypatch.setattr(sys, "executable", executable)
        with pytest.raises(OutsideError, match=said):
            looker.look("os:stat", "here", path=".")
    monkeypatch.undo()
    first_look("os:stat", "here", path=".")
