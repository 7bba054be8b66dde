"""A gateway with all that watches it, on a real socket, in a thread of this process."""

from __future__ import annotations

import contextlib
import json
import threading
import urllib.error
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pybase64

from regionmarker.gateway.gateway import Gateway
from regionmarker.gateway.server import Server, bind


@dataclass
class House:
    """Where a gateway is reached."""

    url: str
    gateway: Gateway

    def ask(self, path: str, *, token: str = "", body: object = None, method: str | None = None, **headers: str):
        """Return status, headers and body of one request; redirects are not followed."""
        data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, method=method)
        if isinstance(data, bytes) and not isinstance(body, bytes):
            request.add_header("content-type", "application/json")
        if token:
            request.add_header("authorization", f"Bearer {token}")
        for name, value in headers.items():
            request.add_header(name.replace("_", "-"), value)
        try:
            with _opener.open(request, timeout=100) as answer:
                return answer.status, answer.headers, answer.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.headers, error.read()

    def embed(self, texts: list[str], token: str) -> np.ndarray:
        """Return the served vectors."""
        question = {"model": "wordllama", "input": texts, "encoding_format": "base64"}
        status, _, body = self.ask("/v1/embeddings", token=token, body=question)
        assert status == 200, body
        return vectors(body)


def vectors(body: bytes) -> np.ndarray:
    return np.stack([np.frombuffer(pybase64.b64decode(row["embedding"]), "<f4") for row in json.loads(body)["data"]])


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_):
        return None


_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _Stay)


@contextlib.contextmanager
def running(gateway: Gateway) -> Iterator[House]:
    """Serve until the block ends."""
    listening = bind("127.0.0.1", 0)
    server = Server(gateway)
    started = threading.Event()
    on_tick = server.on_tick

    async def tick(counter: int) -> bool:
        started.set()
        return await on_tick(counter)

    server.on_tick = tick  # type: ignore[method-assign]
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]})
    thread.start()
    try:
        assert started.wait(100)
        yield House(f"http://127.0.0.1:{listening.getsockname()[1]}", gateway)
    finally:
        server.should_exit = True
        thread.join()
        listening.close()
