"""A real server on a real socket: what is asked, what is answered, and what is refused as an answer."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import pytest

from regionmarker.encoders import CachedEncoder, load_encoder
from regionmarker.encoders.http_client import EndpointError
from regionmarker.encoders.openai import OpenAIEncoder
from regionmarker.errors import InputError, OutsideError

Remote = Callable[..., OpenAIEncoder]
TEXTS = [f"text {number}" for number in range(7)]


def expected(hashes: Any, texts: list[str]) -> Any:
    return load_encoder(hashes).encode(texts)


def test_asks_as_openai_documents_it(server: Any, remote: Remote, api_key: str) -> None:
    remote().encode(["one", "zwei é"])
    assert server.requests == [{"model": "small", "input": ["one", "zwei é"], "encoding_format": "base64"}]
    assert server.paths == ["/v1/embeddings"]
    assert server.headers[0]["Authorization"] == f"Bearer {api_key}"
    assert server.headers[0]["content-type"] == "application/json"


def test_a_spec_loads_it_and_its_name_is_a_spec(server: Any) -> None:
    encoder: Any = load_encoder(f"openai:{server.url}/v1/#org/small:latest", batch_size=2)
    again: Any = load_encoder(encoder.name)
    assert encoder.name == again.name == f"openai:{server.url}/v1#org/small:latest"
    assert np.array_equal(encoder.encode(["a"]), again.encode(["a"]))
    assert server.requests[0]["model"] == "org/small:latest"


def test_sends_no_key_where_there_is_none(server: Any, remote: Remote, monkeypatch: pytest.MonkeyPatch) -> None:
    remote(api_key="").encode(["a"])
    monkeypatch.delenv("OPENAI_API_KEY")
    remote().encode(["a"])
    assert all("Authorization" not in headers for headers in server.headers)


def test_asks_in_batches(server: Any, remote: Remote, hashes: Any) -> None:
    rows = remote(batch_size=3).encode(TEXTS)
    assert [len(texts) for texts in server.asked] == [3, 3, 1]
    assert np.array_equal(rows, expected(hashes, TEXTS))


def test_numbers_instead_of_base64_give_the_same_bits(server: Any, remote: Remote, hashes: Any) -> None:
    def as_numbers(data: list[dict[str, Any]]) -> None:
        for item in data:
            item["embedding"] = np.frombuffer(base64.b64decode(item["embedding"]), "<f4").tolist()

    server.will_alter(as_numbers)
    assert np.array_equal(remote().encode(TEXTS), expected(hashes, TEXTS))


def test_shuffled_answers_are_put_in_order(server: Any, remote: Remote, hashes: Any) -> None:
    server.will_alter(lambda data: data[::-1])
    assert np.array_equal(remote().encode(TEXTS), expected(hashes, TEXTS))


def test_a_server_that_does_not_know_base64_is_asked_for_numbers_from_then_on(
    server: Any, remote: Remote, hashes: Any
) -> None:
    server.will(400, {"error": {"message": "Unknown parameter: encoding_format"}})
    encoder = remote(batch_size=4)
    assert np.array_equal(encoder.encode(TEXTS), expected(hashes, TEXTS))
    assert ["encoding_format" in question for question in server.requests] == [True, False, False]


@pytest.mark.parametrize(
    ("status", "body"),
    [(413, "too large"), (422, {"message": "batch size 4 > maximum allowed batch size 2", "code": 422})],
)
def test_a_batch_that_is_too_large_is_halved(server: Any, remote: Remote, hashes: Any, status: int, body: Any) -> None:
    server.will(status, body)
    encoder = remote(batch_size=4)
    assert np.array_equal(encoder.encode(TEXTS), expected(hashes, TEXTS))
    assert [len(texts) for texts in server.asked] == [4, 2, 2, 2, 1]
    assert encoder.batch_size == 4


class Limited:
    """A server's reply that takes so many texts and letters at once, and none that is bad."""

    def __init__(
        self, server: Any, *, most: int = 10**6, letters: int = 10**9, bad: str = "", said: Any = "no"
    ) -> None:
        self.server, self.most, self.letters, self.bad = server, most, letters, bad

    def __call__(self, handler: Any, question: dict[str, Any]) -> None:
        texts = question["input"]
        if self.bad and self.bad in texts:
            self.server.send(handler, 422, b'{"detail": "batch: this text is bad"}')
        elif len(texts) > self.most or sum(map(len, texts)) > self.letters:
            self.server.send(handler, 413, b"too large")
        else:
            self.server.answer(handler, question)


def test_one_refused_request_degrades_nobody_for_ever(server: Any, remote: Remote, hashes: Any) -> None:
    now = [0.0]
    encoder = remote(batch_size=8, clock=lambda: now[0])
    server.script = [Limited(server, bad=TEXTS[3])] * 20
    with pytest.raises(EndpointError, match="this text is bad"):
        encoder.encode(TEXTS)
    assert len(server.asked) <= 6  # it was looked for, not asked for over and over
    server.script = []
    server.requests.clear()
    assert np.array_equal(encoder.encode(TEXTS), expected(hashes, TEXTS))
    assert [len(texts) for texts in server.asked] == [7]  # one bad text has taught nothing
    server.script = [Limited(server, most=3)] * 3
    server.requests.clear()
    encoder.encode(TEXTS)
    encoder.encode(TEXTS)
    assert [len(texts) for texts in server.asked] == [7, 4, 2, 2, 2, 1, 2, 2, 2, 1]  # a limit that was found out
    now[0] += 301
    server.requests.clear()
    encoder.encode(TEXTS)
    assert [len(texts) for texts in server.asked] == [7]  # and forgotten


def test_a_limit_of_letters_is_not_one_of_texts(server: Any, remote: Remote) -> None:
    encoder = remote(batch_size=8)
    long = [letter * 60_000 for letter in "abcd"]
    server.script = [Limited(server, letters=130_000)] * 3
    encoder.encode(long)
    assert [len(texts) for texts in server.asked] == [4, 2, 2]
    server.requests.clear()
    encoder.encode(TEXTS)
    assert [len(texts) for texts in server.asked] == [7]
    encoder.encode(long)
    assert [len(texts) for texts in server.asked] == [7, 2, 2]


def test_a_word_in_an_error_does_not_switch_base64_off(server: Any, remote: Remote) -> None:
    now = [0.0]
    encoder = remote(clock=lambda: now[0])
    for _ in range(2):
        server.will(400, {"error": {"message": "bad text beside encoding_format"}})
    with pytest.raises(EndpointError, match="bad text"):
        encoder.encode(TEXTS)
    server.requests.clear()
    encoder.encode(TEXTS)
    assert "encoding_format" in server.requests[0]
    server.will(400, {"error": {"message": "unknown field encoding_format"}})
    server.requests.clear()
    encoder.encode(TEXTS)
    encoder.encode(TEXTS)
    assert ["encoding_format" in question for question in server.requests] == [True, False, False]
    now[0] += 301
    encoder.encode(TEXTS)
    assert "encoding_format" in server.requests[-1]


def test_one_text_that_is_too_large_is_an_error(server: Any, remote: Remote) -> None:
    server.will(413, "too large")
    with pytest.raises(EndpointError, match="answered 413: too large"):
        remote().encode(["a"])


def first(**change: Any) -> Callable[[list[dict[str, Any]]], None]:
    return lambda data: data[1].update(change)


def coded(numbers: Any) -> str:
    return base64.b64encode(np.array(numbers, dtype="<f4").tobytes()).decode()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (first(embedding=coded([np.nan] * 24)), "not finite for text 4"),
        (first(embedding=[float("nan")] * 24), "not finite for text 4"),
        (first(embedding=[float("-inf")] * 24), "not finite for text 4"),
        (first(embedding=coded([0] * 24)), "zero vector for text 4"),
        (first(embedding=coded([1] * 23)), "changed its width: 24 before, 23 from text 4 on"),
        (first(embedding=[None] * 24), "not a vector for text 4"),
        (first(embedding=""), "changed its width: 24 before, 0 from text 4 on"),
        (first(index=0), "not 0 to 2, each once"),
        (lambda data: [{**item, "embedding": coded([1] * 9)} for item in data], "24 before, 9 from text 3 on"),
        (lambda data: data[:2], "was asked 3 texts and gave 2 vectors"),
        (lambda data: data * 2, "was asked 3 texts and gave 6 vectors"),
        (lambda data: [], "was asked 3 texts and gave 0 vectors"),
    ],
)
def test_a_wrong_answer_is_the_servers_fault_and_names_the_text(
    server: Any, remote: Remote, change: Any, message: str
) -> None:
    encoder = remote(batch_size=3)
    server.script.append(server.answer)
    server.will_alter(change)
    with pytest.raises(OutsideError, match=message):
        encoder.encode(TEXTS)
    assert len(server.asked) == 2


@pytest.mark.parametrize(
    "garbage",
    [
        b"",
        b"\x00\xff" * 50,
        b"<html><body>Welcome!</body></html>",
        b'{"data": [{"index": 0, "embedding": [0.1, 0.',
        b"[]",
    ],
)
def test_garbage_with_status_200_is_an_error(server: Any, remote: Remote, garbage: bytes) -> None:
    server.will(200, garbage)
    with pytest.raises(OutsideError, match=r"^openai:http://127.0.0.1:\d+/v1#small gave an answer"):
        remote().encode(["a"])


def test_positions_are_those_of_the_whole_list_behind_a_cache(server: Any, remote: Remote, tmp_path: Path) -> None:
    encoder = CachedEncoder(remote(batch_size=2), tmp_path / "c.sqlite")
    encoder.encode([TEXTS[0], TEXTS[2], TEXTS[3]])
    server.will_alter(first(embedding=coded([0] * 24)))
    with pytest.raises(OutsideError, match="zero vector for text 4"):
        encoder.encode(TEXTS)


def test_the_bytes_of_every_answer_can_be_seen(server: Any, remote: Remote) -> None:
    seen: list[tuple[list[str], bytes]] = []
    encoder = remote(batch_size=4, on_response=lambda texts, body: seen.append((texts, body)))
    server.will(500, "not an answer")
    encoder.encode(TEXTS)
    assert [texts for texts, _ in seen] == [TEXTS[:4], TEXTS[4:]]
    assert len(json.loads(seen[0][1])["data"]) == 4
    server.will(200, b"garbage is evidence, too")
    with pytest.raises(OutsideError):
        encoder.encode(["a"])
    assert seen[-1] == (["a"], b"garbage is evidence, too")


def test_compressed_answers_are_read(server: Any, remote: Remote, hashes: Any) -> None:
    def squeeze(handler: Any, question: Any) -> None:
        body = gzip.compress(json.dumps({"data": server.data(question)}).encode())
        server.send(handler, 200, body, content_encoding="gzip")

    server.script.append(squeeze)
    assert np.array_equal(remote().encode(TEXTS), expected(hashes, TEXTS))
    server.will(200, b"this is not gzip", content_encoding="gzip")
    with pytest.raises(OutsideError):
        remote(attempts=1).encode(["a"])


def test_another_transport_will_do() -> None:
    def serve(request: httpx2.Request) -> httpx2.Response:
        return httpx2.Response(200, json={"data": [{"index": 0, "embedding": [0, 2]}]})

    with OpenAIEncoder("https://example.invalid", "m", transport=httpx2.MockTransport(serve)) as encoder:
        assert encoder.encode(["a"]).tolist() == [[0.0, 1.0]]


def test_nothing_is_asked_for_nothing_or_for_an_empty_text(server: Any, remote: Remote) -> None:
    encoder = remote(batch_size=1)
    assert encoder.encode([]).shape == (0, 0)
    with pytest.raises(InputError, match="text 1 is empty"):
        encoder.encode(["a", ""])
    assert server.asked == []


@pytest.mark.parametrize(
    "options", [{"batch_size": 2049}, {"batch_size": 0}, {"attempts": 0}, {"timeout": 0}, {"backoff": -1}]
)
def test_impossible_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        OpenAIEncoder("http://localhost", "m", **options)
