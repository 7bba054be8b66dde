"""Asks ``/livez`` a hundred times a second until its standard input ends, then prints all times, in seconds."""

from __future__ import annotations

import json
import select
import socket
import sys
import time

_QUESTION = b"GET /livez HTTP/1.1\r\nhost: h\r\n\r\n"


def main() -> None:
    """Ask and measure."""
    seconds: list[float] = []
    connection = socket.create_connection(("127.0.0.1", int(sys.argv[1])), timeout=120)
    while not seconds or not select.select([sys.stdin], [], [], 0.01)[0]:
        started = time.perf_counter()
        connection.sendall(_QUESTION)
        answer = b""
        while not answer.endswith(b"}"):
            answer += connection.recv(1 << 16) or b"}"  # who ends the connection has not answered
        if b"200" not in answer[:15]:
            seconds.append(120.0)
            break
        seconds.append(time.perf_counter() - started)
    print(json.dumps(seconds))
