"""A first look at a stranger's file in a child process: where the library that reads it dies, only the child dies.

Libraries in C++ and Rust end the process over some damaged files instead of raising. So a file is shown to a child
first. The child is started once and asked again and again; it holds no key, and it leaves when its parent is gone.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

from regionmarker import errors
from regionmarker.errors import InputError, OutsideError, RegionMarkerError

_CRASHES = frozenset(
    {signal.SIGABRT, signal.SIGSEGV, signal.SIGBUS, signal.SIGILL, signal.SIGFPE, signal.SIGTRAP, signal.SIGSYS}
)
_OURS = "REGIONMARKER_"  # what opens keys comes in variables of this name; the child gets none of them
_READY = b"ready\n"


class Looker:
    """A child process that calls the readers of files which it is told of.

    Examples
    --------
    >>> looker = Looker()
    >>> looker.look("os:stat", "missing.parquet", path="missing.parquet")
    Traceback (most recent call last):
    ...
    regionmarker.errors.InputError: cannot read missing.parquet: [Errno 2] No such file or directory: 'missing.parquet'
    >>> looker.close()
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._child: subprocess.Popen[bytes] | None = None

    def look(self, reader: str, name: str, **arguments: object) -> None:
        """Call ``reader`` (``module:function``) with ``arguments`` in the child, and raise here what it raises there.

        ``name`` is the file's name in an error. An error that is none of ours, and the child's death, become one
        sentence as well.
        """
        about = {"reader": reader, "name": name, "folder": str(Path.cwd()), "arguments": arguments}
        request = json.dumps(about).encode() + b"\n"
        with self._lock:
            child = self._child or self._start()
            self._child = child
            try:
                said = _exchange(child, request)
            except BaseException:  # an interruption: the answer that is still to come must not be the next look's
                self._end()
                raise
            if not said.endswith(b"\n"):
                child.wait()
                self._end()
                raise _death(name, child.returncode)
        answer = json.loads(said)
        if answer["error"] is not None:
            kind = getattr(errors, answer["kind"], InputError)
            raise kind(answer["error"])

    def close(self) -> None:
        """End the child; the next look starts another."""
        with self._lock:
            self._end()

    def forget(self) -> None:
        """Leave the child to the process that started it: this one is a fork of that."""
        if self._child is not None:
            self._child.returncode = 0  # it is not ours to wait for
        self._lock, self._child = threading.Lock(), None

    def _start(self) -> subprocess.Popen[bytes]:
        environment = {name: value for name, value in os.environ.items() if not name.startswith(_OURS)}
        environment["PYTHONPATH"] = os.pathsep.join(entry for entry in sys.path if entry)
        try:
            child = subprocess.Popen(  # noqa: S603 - our own module
                [sys.executable, "-m", __spec__.name],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,  # a crash prints stacks there
                env=environment,
                start_new_session=True,  # an interruption at the terminal is the parent's to handle
            )
        except OSError as error:
            raise OutsideError(f"cannot start a process that looks at files: {error.strerror}") from None
        if child.stdout is None or child.stdout.readline() != _READY:
            self._child = child
            self._end()
            raise OutsideError(f"cannot start a process that looks at files: {sys.executable} did not run it")
        return child

    def _end(self) -> None:
        child, self._child = self._child, None
        if child is None:
            return
        child.kill()
        child.wait()
        for pipe in (child.stdin, child.stdout):
            with contextlib.suppress(BrokenPipeError):
                if pipe is not None:
                    pipe.close()


LOOKER = Looker()
"""The child that this process keeps."""

atexit.register(LOOKER.close)
os.register_at_fork(after_in_child=LOOKER.forget)


def first_look(reader: str, name: str, **arguments: object) -> None:
    """Look at a file in the child that this process keeps; see :meth:`Looker.look`.

    Examples
    --------
    >>> first_look("json:loads", "settings.json", s="{}")
    """
    LOOKER.look(reader, name, **arguments)


def _exchange(child: subprocess.Popen[bytes], request: bytes) -> bytes:
    """Send a request and return the answer's line; not a whole line where the child died."""
    if child.stdin is None or child.stdout is None:
        return b""
    try:
        child.stdin.write(request)
        child.stdin.flush()
        return child.stdout.readline()
    except BrokenPipeError:
        return b""


def _death(name: str, code: int) -> RegionMarkerError:
    if -code in _CRASHES:
        return InputError(
            f"cannot read {name}: the library that reads it crashed ({signal.Signals(-code).name}); "
            "the file is damaged: write it again"
        )
    return OutsideError(f"the process that looked at {name} was ended from outside (exit code {code}): run again")


def _call(request: dict[str, Any]) -> dict[str, object]:
    module, _, function = request["reader"].partition(":")
    try:
        os.chdir(request["folder"])  # the parent's, which may have changed: paths may be relative
        getattr(importlib.import_module(module), function)(**request["arguments"])
    except RegionMarkerError as error:
        return {"error": str(error), "kind": type(error).__name__}
    except BaseException as error:  # noqa: BLE001 - a panic of a library in Rust is no Exception
        said = (str(error).splitlines() or [type(error).__name__])[0]
        return {"error": f"cannot read {request['name']}: {said}", "kind": InputError.__name__}
    return {"error": None}


def _serve() -> None:
    with contextlib.suppress(ImportError):  # no core dump for every damaged file
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    answers = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # what a library prints is no answer
    answers.write(_READY)
    for line in sys.stdin.buffer:
        answers.write(json.dumps(_call(json.loads(line))).encode() + b"\n")


if __name__ == "__main__":
    _serve()
