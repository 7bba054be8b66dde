"""Asks ``/livez`` a hundred times a second until its standard input ends, then prints all times, in seconds.

Each time is a pair: the whole wait, and the processor time that the server's event loop used meanwhile (0 where its
process is not given). On a busy machine the second one is what an idle machine would show.
"""

from __future__ import annotations

import json
import select
import socket
import sys
import time
from pathlib import Path

_QUESTION = b"GET /livez HTTP/1.1\r\nhost: h\r\n\r\n"


def main() -> None:
    """Ask and measure."""
    seconds: list[tuple[float, float]] = []
    pid = sys.argv[2] if len(sys.argv) > 2 else ""
    connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=120)
    while not seconds or not select.select([sys.stdin], [], [], 0.01)[0]:
        started, used = time.perf_counter(), _used(pid)
        connection.sendall(_QUESTION)
        answer = b""
        while not answer.endswith(b"}"):
            answer += connection.recv(1 << 16) or b"}"  # who ends the connection has not answered
        if b"200" not in answer[:15]:
            seconds.append((120.0, 120.0))
            break
        seconds.append((time.perf_counter() - started, _used(pid) - used))
    print(json.dumps(seconds))


def _used(pid: str) -> float:
    """Return the processor seconds of a process's first thread, which runs its event loop."""
    return int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[0]) / 1e9 if pid else 0.0
