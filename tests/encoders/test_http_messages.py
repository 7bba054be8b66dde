"""Addresses, bodies and messages, without a network."""

from __future__ import annotations

import base64
import json
import re
from datetime import UTC, datetime
from email.utils import format_datetime
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from regionmarker.encoders.http_messages import (
    base_of,
    decode_answer,
    endpoint_of,
    redact,
    seconds_to_wait,
    server_message,
)
from regionmarker.errors import InputError, OutsideError


@pytest.mark.parametrize(
    ("url", "endpoint"),
    [
        ("https://api.openai.com/v1", "https://api.openai.com/v1/embeddings"),
        ("https://api.openai.com/v1/", "https://api.openai.com/v1/embeddings"),
        ("https://api.openai.com", "https://api.openai.com/v1/embeddings"),
        ("http://localhost:8080/", "http://localhost:8080/v1/embeddings"),
        ("http://[::1]:8080", "http://[::1]:8080/v1/embeddings"),
        ("https://proxy.example/team", "https://proxy.example/team/v1/embeddings"),
        ("https://api.deepinfra.com/v1/openai", "https://api.deepinfra.com/v1/openai/embeddings"),
        ("https://x.example/v1beta/openai/", "https://x.example/v1beta/openai/embeddings"),
        ("http://localhost:7997/embeddings", "http://localhost:7997/embeddings"),
        ("HTTPS://API.Example.com/V1x", "https://api.example.com/V1x/v1/embeddings"),
    ],
)
def test_the_endpoint_is_found_from_the_base(url: str, endpoint: str) -> None:
    assert endpoint_of(url) == endpoint
    assert endpoint_of(base_of(endpoint)) == endpoint


@pytest.mark.parametrize(
    "url", ["", "localhost", "file:///etc/passwd", "http://", "http://h\n/v1", "http://ho\u0455t/v1"]
)
def test_other_addresses_are_refused(url: str) -> None:
    with pytest.raises(InputError):
        endpoint_of(url)


def coded(*numbers: float) -> str:
    return base64.b64encode(np.array(numbers, dtype="<f4").tobytes()).decode()


def body(*items: dict[str, Any]) -> bytes:
    return json.dumps({"data": items}).encode()


def test_vectors_may_be_base64_or_numbers_and_come_in_any_order() -> None:
    answer = body({"index": 1, "embedding": [1, 2.5]}, {"index": 0, "embedding": coded(3.0, 4.0)})
    first, second = decode_answer(answer, [0, 1], "it")
    assert first.tolist() == [3.0, 4.0]
    assert second.tolist() == [1.0, 2.5]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (b"", r"not JSON \(0 bytes\)"),
        (b'{"data": [{"index": 0, "emb', "not JSON"),
        (b"<html>hello</html>", "not JSON"),
        (b"\xff\xfe\x00", "not JSON"),
        (b"[" * 200_000, "not JSON"),
        (b"[]", "without a list of embeddings"),
        (b"null", "without a list of embeddings"),
        (b'{"data": {}}', "without a list of embeddings"),
        (b'{"data": [1, 2]}', "without a list of embeddings"),
        (body(), "was asked 2 texts and gave 0 vectors"),
        (body({"index": 0, "embedding": [1]}), "was asked 2 texts and gave 1 vectors"),
        (body({"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}), "not 0 to 1, each once"),
        (body({"index": 1, "embedding": [1]}, {"index": 2, "embedding": [1]}), "not 0 to 1, each once"),
        (body({"index": -1, "embedding": [1]}, {"index": 0, "embedding": [1]}), "not 0 to 1, each once"),
        (body({"index": True, "embedding": [1]}, {"index": 0, "embedding": [1]}), "not 0 to 1, each once"),
        (body({"embedding": [1]}, {"embedding": [1]}), "not 0 to 1, each once"),
        (body({"index": 0, "embedding": [1]}, {"index": 1}), "not a vector for text 9"),
        (body({"index": 0, "embedding": [1]}, {"index": 1, "embedding": "%%%"}), "not a vector for text 9"),
        (body({"index": 0, "embedding": [1]}, {"index": 1, "embedding": "AAA="}), "not a vector for text 9"),
        (body({"index": 0, "embedding": [1]}, {"index": 1, "embedding": [1, None]}), "not a vector for text 9"),
        (body({"index": 0, "embedding": [1]}, {"index": 1, "embedding": [[1]]}), "not a vector for text 9"),
        (body({"index": 0, "embedding": [1]}, {"index": 1, "embedding": ["1"]}), "not a vector for text 9"),
        (body({"index": 0, "embedding": [1]}, {"index": 1, "embedding": [10**400]}), "not a vector for text 9"),
    ],
)
def test_an_answer_that_is_not_whole_is_refused(answer: bytes, message: str) -> None:
    with pytest.raises(OutsideError, match=message):
        decode_answer(answer, [8, 9], "it")


@given(st.binary(max_size=200))
def test_garbage_gets_the_one_kind_of_error(garbage: bytes) -> None:
    with pytest.raises(OutsideError):
        decode_answer(garbage, [0], "it")
    assert isinstance(server_message(garbage), str)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"error": {"message": "no such model", "type": "x", "param": None, "code": None}}, "no such model"),
        ({"message": "backend failed", "code": 424, "type": "backend"}, "backend failed"),
        ({"error": "try pulling it first"}, "try pulling it first"),
        ({"detail": "Unauthorized"}, "Unauthorized"),
        ({"detail": [{"loc": ["input"], "msg": "bad"}]}, '[{"loc": ["input"], "msg": "bad"}]'),
        ({"error": {"detail": "two\n  lines"}}, "two lines"),
        ({}, "{}"),
    ],
)
def test_the_message_is_found_in_every_shape_of_error(answer: Any, message: str) -> None:
    assert server_message(json.dumps(answer).encode()) == message


def test_of_a_page_the_visible_words_are_the_message() -> None:
    page = b"<html><style>p {}</style><script>alert(1)</script><h1>502 Bad&nbsp;Gateway</h1><p>nginx</p></html>"
    assert server_message(page) == "502 Bad Gateway nginx"


SECRET = "the patient Ann Miller was seen on the 3rd of May with chest pain"
KEY = "sk-proj-abcdefghijklmnopqrstuvwxyz0123456789"


@pytest.mark.parametrize(
    "said",
    [
        f"invalid input: '{SECRET}' is too long",
        f"invalid input: {SECRET[:40]}... is too long",
        f"invalid input: ...{SECRET[20:]}",
        "got " + json.dumps([SECRET]),
        f"Incorrect API key provided: {KEY}",
        f"Incorrect API key provided: {KEY[:20]}***{KEY[-8:]}",
        f"header was Bearer {KEY}, body was {SECRET}",
    ],
)
def test_a_message_that_repeats_a_text_or_the_key_loses_it(said: str) -> None:
    shown = redact(said, KEY, ["other text", SECRET])
    assert "[...]" in shown
    assert "Ann Miller" not in shown
    assert "chest pain" not in shown
    for start in range(len(KEY) - 5):
        assert KEY[start : start + 6] not in shown


def test_short_and_foreign_texts_are_hidden_as_well() -> None:
    assert redact("no token in 'Ann'", "", ["Ann"]) == "no token in '[...]'"
    assert (
        redact("bad input 患者アンミラーは胸の痛みを訴えた!", "", ["患者アンミラーは胸の痛みを訴えた"])
        == "bad input [...]!"
    )
    escaped = json.dumps("患者アン")[1:-1]
    assert "\\u" not in redact(f"bad input {escaped}", "", ["患者アン"])


def test_a_message_without_secrets_is_shown_to_200_characters() -> None:
    assert redact("model not found", KEY, [SECRET, "a", "is"]) == "model not found"
    assert len(redact("x" * 1000, KEY, [SECRET])) == 200


@given(st.text(min_size=12, max_size=80), st.text(max_size=30), st.text(max_size=30))
def test_no_long_text_survives_in_a_message(text: str, before: str, after: str) -> None:
    plain = " ".join(text.split())
    if len(plain) >= 12:
        assert plain not in redact(before + plain + after, "", [text])


NOW = datetime(2026, 11, 16, 12, 0, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "3"}, 3.0),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": " 1.5 "}, 1.5),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after-ms": "250", "retry-after": "9"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "9"}, 9.0),
        ({"retry-after": format_datetime(NOW.replace(second=7), usegmt=True)}, 7.0),
        ({"retry-after": format_datetime(NOW.replace(hour=1), usegmt=True)}, 0.0),
        ({"retry-after": "tomorrow"}, None),
        ({"retry-after": "-5"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "9" * 400}, None),
    ],
)
def test_a_server_may_ask_for_time_in_three_ways(headers: dict[str, str], seconds: float | None) -> None:
    assert seconds_to_wait(headers, now=NOW.timestamp()) == seconds


@given(st.text(max_size=40))
@example("Mon, 99 Foo 0000 99:99:99 +9999")
@example("Fri, 31 Dec 9999 23:59:59 -9999")
def test_no_header_breaks_it(value: str) -> None:
    wait = seconds_to_wait({"retry-after": value})
    assert wait is None or wait >= 0


class Untouched(str):
    """A text that nobody may look through."""

    __slots__ = ()

    def split(self, *_: Any) -> Any:
        raise AssertionError("somebody looks through a large text")

    __contains__ = split


def test_a_large_text_is_not_searched_and_not_shown() -> None:
    """Redacting a refused text of 15 MB took seconds; now it costs no more than the message is long."""
    text = Untouched("the secret of Ann Miller " * 600_000)
    said = (
        "Input 3 of 7: maximum context length is 8192 tokens, but 'the secret of Ann Miller 4012888888881881' has 90000"
    )
    shown = redact(said, KEY, ["a", text])
    assert shown == (
        "Input 3 of 7: maximum context length is 8192 tokens, but 'the [...] of [...] [...] [...]' has 90000"
    )


def test_a_key_is_hidden_beside_a_large_text() -> None:
    assert KEY not in redact(f"invalid api_key {KEY}", KEY, ["x" * 10**6])


def test_thousands_of_short_texts_are_compared_without_a_pattern_each(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    finditer = re.finditer
    monkeypatch.setattr(re, "finditer", lambda pattern, text: compiled.append(pattern) or finditer(pattern, text))
    assert redact("the text 'word 7' is bad", "", [f"word {n}" for n in range(2048)]) == "the text '[...]' is bad"
    assert len(compiled) <= 3


def test_a_page_of_open_scripts_is_not_read_for_seconds() -> None:
    assert len(server_message(b"<script" * 10**6)) <= 4000
