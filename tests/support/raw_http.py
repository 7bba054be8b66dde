"""HTTP as a hostile client writes it: bytes into a socket, bytes out of it."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterator
from typing import Any

from tests.support.gateways import MODEL, PATIENCE


@contextlib.contextmanager
def connected(port: int) -> Iterator[socket.socket]:
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as client:
        yield client


def post(inputs: Any, *headers: str, length: str | None = None, **fields: Any) -> bytes:
    """The bytes of a request for embeddings."""
    body = json.dumps({"model": MODEL, "input": inputs, **fields}).encode()
    lines = ["POST /v1/embeddings HTTP/1.1", "host: h", *headers, f"content-length: {length or len(body)}"]
    return "\r\n".join([*lines, "", ""]).encode() + body


def send(client: socket.socket, data: bytes) -> None:
    """Send what the server still takes."""
    with contextlib.suppress(ConnectionError):
        client.sendall(data)


def answer(client: socket.socket) -> tuple[int, dict[str, str], bytes]:
    """Read one whole answer; status 0 where the connection ended without one."""
    seen = b""
    with contextlib.suppress(ConnectionError):
        while b"\r\n\r\n" not in seen:
            more = client.recv(1 << 16)
            if not more:
                return 0, {}, seen
            seen += more
        head, _, body = seen.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
        while len(body) < int(headers.get("content-length", 0)):
            body += client.recv(1 << 20)
        return int(lines[0].split()[1]), headers, body
    return 0, {}, seen


def error_code(client: socket.socket, status: int) -> str:
    """The code of an error of the one shape."""
    found, headers, body = answer(client)
    assert found == status, (found, body)
    assert headers["content-type"] == "application/json"
    error = json.loads(body)["error"]
    assert list(error) == ["message", "type", "param", "code"]
    return error["code"]


def has_ended(client: socket.socket) -> bool:
    """Read until the server closes the connection."""
    with contextlib.suppress(ConnectionError):
        while client.recv(1 << 16):
            pass
    return True
