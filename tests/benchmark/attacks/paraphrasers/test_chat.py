"""A chat model behind a real HTTP server."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from regionmarker.benchmark.attacks.paraphrasers import load_paraphraser
from regionmarker.benchmark.attacks.paraphrasers.chat import PROMPT, ChatParaphraser, LocalChatParaphraser
from regionmarker.encoders.http_client import EndpointError
from regionmarker.errors import InputError, MissingExtraError, OutsideError

KEY = "canary-1a2b3c4d5e6f"


class ChatServer:
    """Answers ``n`` rewritings, unless ``reply`` says otherwise."""

    def __init__(self) -> None:
        self.questions: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.reply: Callable[[dict[str, Any]], tuple[int, Any]] = lambda question: (
            200,
            self.choices(question.get("n", 1)),
        )
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                question = json.loads(self.rfile.read(int(self.headers["content-length"])))
                server.questions.append({**question, "path": self.path})
                server.headers.append(dict(self.headers))
                status, answer = server.reply(question)
                body = answer if isinstance(answer, bytes) else json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("content-length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args: object) -> None:
                pass

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def choices(self, count: int) -> dict[str, Any]:
        said = [f"said otherwise {len(self.questions)}.{number}" for number in range(count)]
        return {"choices": [{"index": at, "message": {"role": "assistant", "content": x}} for at, x in enumerate(said)]}

    def stop(self) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()


@pytest.fixture
def server() -> Iterator[ChatServer]:
    running = ChatServer()
    yield running
    running.stop()


@pytest.fixture
def chat(server: ChatServer) -> Iterator[ChatParaphraser]:
    paraphraser = ChatParaphraser(server.url, "small", api_key=KEY, backoff=0.001, attempts=2, timeout=60)
    yield paraphraser
    paraphraser.close()


def test_asks_as_the_paper_does(chat: ChatParaphraser, server: ChatServer) -> None:
    assert chat.paraphrase(["a good film"], 5) == [[f"said otherwise 1.{number}" for number in range(5)]]
    assert server.questions == [
        {
            "model": "small",
            "messages": [{"role": "user", "content": f"{PROMPT}\na good film"}],
            "temperature": 0.7,
            "max_tokens": 1000,
            "n": 5,
            "path": "/v1/chat/completions",
        }
    ]
    assert PROMPT == "You are a helpful assistant to rewrite the text. Rewrite the following text:"
    assert server.headers[0]["Authorization"] == f"Bearer {KEY}"


def test_a_server_that_gives_one_answer_is_asked_again(chat: ChatParaphraser, server: ChatServer) -> None:
    server.reply = lambda question: (200, server.choices(1))
    assert chat.paraphrase(["one", "two"], 2) == [
        ["said otherwise 1.0", "said otherwise 2.0"],
        ["said otherwise 3.0", "said otherwise 4.0"],
    ]


def test_a_server_that_does_not_know_n_is_asked_without(chat: ChatParaphraser, server: ChatServer) -> None:
    server.reply = lambda question: (
        (400, {"error": {"message": "n is not supported"}}) if "n" in question else (200, server.choices(1))
    )
    assert [len(said) for said in chat.paraphrase(["one", "two"], 3)] == [3, 3]
    assert sum("n" in question for question in server.questions) == 1


def test_empty_answers_are_no_paraphrases(chat: ChatParaphraser, server: ChatServer) -> None:
    server.reply = lambda question: (200, {"choices": [{"message": {"content": None}}, {"message": {"content": " "}}]})
    assert chat.paraphrase(["one"], 3) == [[]]
    assert len(server.questions) == 3  # and no more


@pytest.mark.parametrize("answer", [b"<html>", {"choices": None}, {"data": []}, [1], {"choices": [{"text": "x"}]}])
def test_answers_that_are_none_are_told(chat: ChatParaphraser, server: ChatServer, answer: Any) -> None:
    server.reply = lambda question: (200, answer)
    with pytest.raises(OutsideError, match="gave an answer without choices"):
        chat.paraphrase(["one"], 3)


def test_failures_name_the_server_and_neither_key_nor_text(chat: ChatParaphraser, server: ChatServer) -> None:
    secret = "a sentence that is nobody else's business"
    server.reply = lambda question: (500, {"error": {"message": f"cannot do {secret} for {KEY}"}})
    with pytest.raises(EndpointError, match="answered 500") as caught:
        chat.paraphrase([secret], 1)
    assert len(server.questions) == 2  # asked again once
    told = str(caught.value) + repr(chat)
    assert KEY not in told
    assert secret not in told
    assert server.url in told


def test_its_name_loads_it_again(server: ChatServer) -> None:
    chat = load_paraphraser(f"chat:{server.url}#small")
    assert chat.name == f"chat:{server.url}/v1#small"
    assert load_paraphraser(chat.name).name == chat.name
    with pytest.raises(InputError, match="temperature must be"):
        ChatParaphraser(server.url, "small", temperature=7)


# ---- a GGUF file in this process


@pytest.fixture
def llama(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """The runtime's stand-in: its answers depend on the seed, and repeat; what it was asked is returned."""
    asked: list[dict[str, Any]] = []

    class Server:
        def __init__(self, settings: Any) -> None:
            self.path = settings.model.path

        def handle_chat_completions(self, question: dict[str, Any]) -> dict[str, Any]:
            asked.append({**question, "path": self.path})
            said = ['"A fine film"', "a good film.", "a fine film", "A good movie", "never"][question["seed"]]
            return {"choices": [{"message": {"content": said}}]}

    module = ModuleType("xllamacpp")
    module.Server = Server  # type: ignore[attr-defined]
    module.CommonParams = lambda: SimpleNamespace(model=SimpleNamespace(), cpuparams=SimpleNamespace())  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "xllamacpp", module)
    monkeypatch.setattr("regionmarker.benchmark.attacks.paraphrasers.chat.find_spec", lambda name: object())
    return asked


def test_a_file_is_asked_until_there_are_enough_different_answers(tmp_path: Path, llama: list[dict[str, Any]]) -> None:
    (tmp_path / "small.gguf").write_bytes(b"GGUF")
    paraphraser = load_paraphraser(f"gguf:{tmp_path}")
    assert paraphraser.paraphrase(["a good  film"], 2) == [["A fine film", "A good movie"]]
    assert [question["seed"] for question in llama] == [0, 1, 2, 3]
    assert llama[0]["path"] == str(tmp_path / "small.gguf")
    assert [message["role"] for message in llama[0]["messages"]] == ["system"] + ["user", "assistant"] * 2 + ["user"]
    assert llama[0]["messages"][-1]["content"] == "a good film"


def test_a_file_that_is_not_there_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InputError, match=r"there is no GGUF file .*nothing.gguf"):
        LocalChatParaphraser(str(tmp_path / "nothing.gguf")).paraphrase(["a"], 1)
    with pytest.raises(InputError, match="name the model: gguf:FILE"):
        load_paraphraser("gguf:")
    (tmp_path / "small.gguf").write_bytes(b"GGUF")
    monkeypatch.setattr("regionmarker.benchmark.attacks.paraphrasers.chat.find_spec", lambda name: None)
    with pytest.raises(MissingExtraError, match=r"xllamacpp is not installed: pip install .*gguf"):
        LocalChatParaphraser(str(tmp_path / "small.gguf")).paraphrase(["a"], 1)
