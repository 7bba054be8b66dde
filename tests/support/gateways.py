"""A real gateway on a real socket before a real upstream on another, each in a thread with its own loop."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import io
import json
import socket
import ssl
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import pytest

from regionmarker import RegionMarker, load_encoder
from regionmarker.errors import InputError
from regionmarker.gateway.gateway import Gateway
from regionmarker.gateway.logs import make_logger
from regionmarker.gateway.metrics import Metrics
from regionmarker.gateway.served_key import ServedKey
from regionmarker.gateway.server import Server, bind
from regionmarker.gateway.settings import Settings
from regionmarker.gateway.upstreams import load_upstream

WIDTH = 256
MODEL = "stub-embedding"
PATIENCE = 60.0  # seconds; nothing here takes that long unless it is broken


def eventually(condition: Callable[[], Any], what: str = "the condition") -> Any:
    """Wait until something becomes true, with a deadline that only a broken program meets."""
    deadline = time.monotonic() + PATIENCE
    while not (found := condition()):
        assert time.monotonic() < deadline, f"{what} did not come true within {PATIENCE:g} s"
        time.sleep(0.01)
    return found


@cache
def _encoder() -> Any:
    return load_encoder("wordllama")


def vector_of(item: str | list[int]) -> np.ndarray:
    """What the upstream's model makes of one input."""
    return vectors_of([item])[0]


def vectors_of(inputs: list[Any]) -> np.ndarray:
    """What the upstream's model makes of inputs: a real encoder's vectors of texts, a hash's of anything else."""
    with contextlib.suppress(InputError):  # of tokens, and of texts without a word in them
        return _encoder().encode(inputs)
    return np.stack([_hashed(item) for item in inputs])


def _hashed(item: Any) -> np.ndarray:
    seed = int.from_bytes(sha256(json.dumps(item).encode()).digest()[:8], "big")
    row = np.random.default_rng(seed).standard_normal(WIDTH)
    return (row / np.linalg.norm(row)).astype(np.float16).astype(np.float32)


class Looping:
    """Something that runs in an event loop of its own, in a thread."""

    def __init__(self, factory: Callable[[], Any] | None = None) -> None:
        self.loop = (factory or asyncio.new_event_loop)()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        self.loop.run_forever()

    def call(self, coroutine: Awaitable[Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(PATIENCE)

    def start(self) -> None:
        self._thread.start()

    def end(self) -> None:
        self.call(self._settle())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join(PATIENCE)
        self.loop.close()

    async def _settle(self) -> None:
        others = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self.loop.shutdown_default_executor()
        await self.loop.shutdown_asyncgens()


Reply = Callable[["StubUpstream", asyncio.StreamWriter, dict[str, Any]], Awaitable[None]]


class StubUpstream(Looping):
    """Answers as OpenAI does, unless ``script`` holds other replies, which are used up first, or ``always`` one."""

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        super().__init__()
        self.script: list[Reply] = []
        self.always: Reply | None = None
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.open = 0  # connections
        self.left = 0  # clients that went away while a reply was held back
        self.start()
        self._server = self.call(asyncio.start_server(self._serve, "127.0.0.1", 0, limit=1 << 24, ssl=context))
        self.port = self._server.sockets[0].getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/v1"
        self.spec = f"openai:{self.url}#{MODEL}"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.open += 1
        try:
            while await self._one(reader, writer):
                pass
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass  # the client has left, or the test has ended
        finally:
            self.open -= 1
            writer.close()

    async def _one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in head[1:] if line)
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        if head[0].startswith("GET"):
            self.write(writer, 200, b"{}")
        else:
            question = json.loads(body)
            self.requests.append(question)
            self.headers.append(headers)
            reply = self.script.pop(0) if self.script else self.always or StubUpstream.good
            watch = asyncio.ensure_future(reader.read(1)) if getattr(reply, "watched", False) else None
            work = asyncio.ensure_future(reply(self, writer, question))
            done, _ = await asyncio.wait([part for part in (work, watch) if part], return_when="FIRST_COMPLETED")
            if watch is not None and watch in done:
                work.cancel()
                self.left += 1
                return False
            if watch is not None:
                watch.cancel()
                await asyncio.gather(watch, return_exceptions=True)  # one reader at a time
            await work
        await writer.drain()
        return not writer.is_closing()

    @staticmethod
    def write(writer: asyncio.StreamWriter, status: int, body: bytes, **headers: str) -> None:
        named = {"content-type": "application/json", "content-length": str(len(body))}
        named |= {name.replace("_", "-"): value for name, value in headers.items()}
        head = "".join(f"{name}: {value}\r\n" for name, value in named.items())
        writer.write(f"HTTP/1.1 {status} Stub\r\n{head}\r\n".encode() + body)

    @staticmethod
    def answer(question: dict[str, Any]) -> dict[str, Any]:
        rows = vectors_of(question["input"])
        coded = question.get("encoding_format") == "base64"
        embeddings = [base64.b64encode(row.tobytes()).decode() if coded else row.tolist() for row in rows]
        data = [{"object": "embedding", "index": i, "embedding": one} for i, one in enumerate(embeddings)]
        tokens = sum(map(len, question["input"]))
        usage = {"prompt_tokens": tokens, "total_tokens": tokens}
        return {"object": "list", "data": data, "model": question["model"], "usage": usage}

    async def good(self, writer: asyncio.StreamWriter, question: dict[str, Any]) -> None:
        self.write(writer, 200, json.dumps(self.answer(question)).encode())

    def stop(self) -> None:
        self.loop.call_soon_threadsafe(self._server.close)
        self.end()


class Serving(Looping):
    """A gateway under test."""

    def __init__(self, gateway: Gateway) -> None:
        import uvloop

        super().__init__(uvloop.new_event_loop)
        self.gateway = gateway
        self.server = Server(gateway)
        self.listening = bind("127.0.0.1", 0)
        self.start()
        self._serving = asyncio.run_coroutine_threadsafe(self.server.serve(sockets=[self.listening]), self.loop)
        eventually(lambda: self.server.started or self._serving.done(), "the gateway's start")
        if self._serving.done():
            self._serving.result()
        self.port = self.server.port
        self.url = f"http://127.0.0.1:{self.port}"
        self.client = httpx2.Client(base_url=self.url, headers={"authorization": "Bearer k"}, timeout=PATIENCE)
        self.post([".."])  # opens what is opened once
        self._tasks = self.tasks()

    def post(self, inputs: Any, model: str = MODEL, **fields: Any) -> httpx2.Response:
        return self.client.post("/v1/embeddings", json={"model": model, "input": inputs, **fields})

    def tasks(self) -> int:
        async def count() -> int:
            return len(asyncio.all_tasks())

        return self.call(count())

    def metric(self, name: str, **labels: str) -> float:
        return self.gateway.metrics.registry.get_sample_value(name, labels) or 0.0

    def is_at_rest(self) -> bool:
        """Whether no task, no upstream connection in use and no place at the door is left over."""
        session = getattr(self.gateway.upstream, "_session", None)
        in_use = len(session.connector._acquired) if session is not None else 0
        admission = self.gateway.admission
        return not in_use and not admission.in_flight and not admission.queued and self.tasks() <= self._tasks

    def stop(self) -> None:
        self.client.close()
        self.loop.call_soon_threadsafe(self.server.drain, 0.0)
        self._serving.result(PATIENCE)
        self.listening.close()
        self.end()


@pytest.fixture(scope="session")
def key_marker(marker) -> RegionMarker:
    """The marker that the gateways of these tests serve with; the same in every run."""
    return marker


def start_gateway(marker: RegionMarker, stub: StubUpstream, log: io.StringIO, spec: str | None = None, **given: Any):
    """Start a gateway before ``stub``; keywords are settings, and what :func:`serve` says."""
    lookup, source, tenants = given.pop("lookup", None), given.pop("source", None), given.pop("tenants", ())
    logger = make_logger(given.pop("level", "debug"), log)
    usual = {"port": 0, "drain_delay": 0.0, "grace": 10.0, "total": 30.0, "read": 20.0}
    upstream = {"upstream": spec or stub.spec, "upstream_key": "sk-upstream-canary-123456"}
    settings = Settings(Path("no file: the key is given"), **upstream, **{**usual, **given})
    metrics = Metrics()
    served_key = ServedKey(marker.key_.serving(tenants))
    source = source or load_upstream(settings, metrics)
    serving = Serving(Gateway(settings, served_key, source, tenants=lookup, metrics=metrics, logger=logger))
    stub.requests.clear()
    stub.headers.clear()
    return serving


@pytest.fixture
def upstream() -> Iterator[StubUpstream]:
    stub = StubUpstream()
    yield stub
    stub.stop()


@pytest.fixture
def log() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
def serve(key_marker, upstream, log) -> Iterator[Callable[..., Serving]]:
    """Start gateways before ``upstream``; keywords are settings, and ``spec``, ``source``, ``lookup``, ``tenants``,
    ``level``."""
    started: list[Serving] = []

    def start(spec: str | None = None, **given: Any) -> Serving:
        started.append(start_gateway(key_marker, upstream, log, spec, **given))
        return started[-1]

    yield start
    for serving in started:
        serving.stop()


@pytest.fixture(scope="module")
def module_serving(key_marker) -> Iterator[Callable[..., tuple[Serving, StubUpstream]]]:
    """Start one gateway and its upstream for a whole module."""
    stub, started = StubUpstream(), []

    def start(spec: str | None = None, **given: Any) -> tuple[Serving, StubUpstream]:
        started.append(start_gateway(key_marker, stub, io.StringIO(), spec, **given))
        return started[-1], stub

    yield start
    for serving in started:
        serving.stop()
    stub.stop()


@pytest.fixture
def closed_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def rows_of(response: httpx2.Response) -> np.ndarray:
    """The vectors of an answer, in order."""
    assert response.status_code == 200, response.text
    items = response.json()["data"]
    assert [item["index"] for item in items] == list(range(len(items)))
    coded = [item["embedding"] for item in items]
    return np.stack(
        [np.frombuffer(base64.b64decode(one), "<f4") if isinstance(one, str) else np.float32(one) for one in coded]
    )


def error_of(response: httpx2.Response, status: int, code: str | None = None) -> dict[str, Any]:
    """The error of an answer, whose shape is checked."""
    assert response.status_code == status, response.text
    assert response.headers["content-type"] == "application/json"
    body = response.json()
    assert list(body) == ["error"]
    assert list(body["error"]) == ["message", "type", "param", "code"]
    assert isinstance(body["error"]["message"], str)
    assert isinstance(body["error"]["type"], str)
    if code is not None:
        assert body["error"]["code"] == code
    return body["error"]


class Log:
    """A logger that keeps what it is given."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, dict]] = []

    def warning(self, event, **fields):
        self.lines.append((event, fields))

    error = info = warning
