"""A real server on a real socket, in good and bad health."""

from __future__ import annotations

import base64
import copy
import gzip
import json
import logging
import pickle
import socket
import time
import traceback
from collections.abc import Callable
from email.utils import formatdate
from pathlib import Path
from typing import Any

import httpx2
import numpy as np
import pytest

from regionmarker.encoders import CachedEncoder, load_encoder
from regionmarker.encoders.openai import EndpointError, OpenAIEncoder
from regionmarker.errors import InputError, OutsideError

Remote = Callable[..., OpenAIEncoder]
TEXTS = [f"text {number}" for number in range(7)]


def expected(hashes: Any, texts: list[str]) -> Any:
    return load_encoder(hashes).encode(texts)


def test_asks_as_openai_documents_it(server: Any, remote: Remote, key: str) -> None:
    remote().encode(["one", "zwei é"])
    assert server.requests == [{"model": "small", "input": ["one", "zwei é"], "encoding_format": "base64"}]
    assert server.paths == ["/v1/embeddings"]
    assert server.headers[0]["Authorization"] == f"Bearer {key}"
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
    assert encoder.batch_size == 2


def test_one_text_that_is_too_large_is_an_error(server: Any, remote: Remote) -> None:
    server.will(413, "too large")
    with pytest.raises(EndpointError, match="answered 413: too large"):
        remote().encode(["a"])


@pytest.mark.parametrize("status", [408, 409, 424, 429, 500, 502, 503, 504, 529])
def test_passing_failures_are_asked_again(server: Any, remote: Remote, hashes: Any, status: int) -> None:
    server.will(status, "<html><h1>Bad Gateway</h1></html>")
    server.will(status)
    assert np.array_equal(remote().encode(TEXTS), expected(hashes, TEXTS))
    assert server.asked == [TEXTS] * 3


@pytest.mark.parametrize("status", [301, 400, 401, 403, 404, 422])
def test_lasting_failures_are_not(server: Any, remote: Remote, status: int) -> None:
    server.will(status, {"error": {"message": "no such model"}}, location="/elsewhere")
    with pytest.raises(OutsideError, match=rf"answered {status}: no such model$") as caught:
        remote().encode(TEXTS)
    assert caught.value.exit_code == 3
    assert isinstance(caught.value, EndpointError)
    assert caught.value.status == status
    assert len(server.asked) == 1


def test_attempts_are_bounded(server: Any, remote: Remote) -> None:
    for _ in range(9):
        server.will(502, "<html><head><title>502</title></head><h1>Bad Gateway</h1></html>")
    with pytest.raises(OutsideError, match="answered 502: 502 Bad Gateway$"):
        remote(attempts=3).encode(TEXTS)
    assert len(server.asked) == 3


def test_waits_grow(server: Any, remote: Remote) -> None:
    for _ in range(3):
        server.will(500)
    remote(backoff=0.05).encode(["a"])
    waits = np.diff(server.times)
    assert (waits >= [0.05, 0.1, 0.2]).all()


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize(
    ("headers", "least"),
    [
        (lambda: {"retry_after": "1"}, 1.0),
        (lambda: {"retry_after_ms": "300"}, 0.3),
        (lambda: {"retry_after": formatdate(time.time() + 2, usegmt=True)}, 0.9),
    ],
    ids=["seconds", "milliseconds", "date"],
)
def test_a_server_that_asks_for_time_gets_it(
    server: Any, remote: Remote, status: int, headers: Any, least: float
) -> None:
    server.will(status, **headers())
    remote().encode(["a"])
    waited = server.times[1] - server.times[0]
    assert least <= waited < least + 1.5


def test_a_server_that_asks_for_an_hour_is_out_of_service(server: Any, remote: Remote) -> None:
    server.will(429, "busy", retry_after="3600")
    with pytest.raises(OutsideError, match=r"answered 429: busy \(it asks to wait 3600 s\)"):
        remote().encode(["a"])
    assert len(server.asked) == 1


def test_a_server_may_say_itself_whether_to_ask_again(server: Any, remote: Remote) -> None:
    server.will(400, x_should_retry="true")
    remote().encode(["a"])
    server.will(500, "final", x_should_retry="false")
    with pytest.raises(OutsideError, match="answered 500: final"):
        remote().encode(["a"])
    assert len(server.asked) == 3


def test_an_empty_account_is_not_asked_again(server: Any, remote: Remote) -> None:
    server.will(429, {"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}})
    with pytest.raises(OutsideError, match="You exceeded your quota"):
        remote().encode(["a"])
    assert len(server.asked) == 1


def test_a_slow_server_is_asked_again_and_then_given_up(server: Any, remote: Remote) -> None:
    for _ in range(2):
        server.script.append(lambda handler, _: server.stopping.wait(3))
    with pytest.raises(OutsideError, match=r"did not answer within 0\.2 s$"):
        remote(timeout=0.2, attempts=2).encode(["a"])
    assert len(server.asked) == 2


def test_a_server_that_drips_is_slow_too(server: Any, remote: Remote) -> None:
    def drip(handler: Any, _: Any) -> None:
        handler.send_response(200)
        handler.send_header("content-length", "1000")
        handler.end_headers()
        for _ in range(40):
            if server.stopping.wait(0.05):
                break
            try:
                handler.wfile.write(b" ")
            except OSError:
                break

    server.script.append(drip)
    began = time.monotonic()
    with pytest.raises(OutsideError, match=r"did not answer within 0\.3 s$"):
        remote(timeout=0.3, attempts=1).encode(["a"])
    assert time.monotonic() - began < 1.5


def test_an_answer_without_end_is_cut_off(server: Any, remote: Remote, monkeypatch: pytest.MonkeyPatch) -> None:
    from regionmarker.encoders import openai

    monkeypatch.setattr(openai, "_MOST_BYTES", 1 << 20)
    server.will(200, b"x" * (3 << 20))
    with pytest.raises(OutsideError, match="its answer is larger than 1 MiB"):
        remote(attempts=1).encode(["a"])


def test_a_connection_that_breaks_is_made_again(server: Any, remote: Remote, hashes: Any) -> None:
    def hang_up(handler: Any, _: Any) -> None:
        handler.close_connection = True

    def half(handler: Any, _: Any) -> None:
        handler.send_response(200)
        handler.send_header("content-length", "1000")
        handler.end_headers()
        handler.wfile.write(b'{"data": [')
        handler.close_connection = True

    server.script += [hang_up, half]
    assert np.array_equal(remote().encode(TEXTS), expected(hashes, TEXTS))
    assert len(server.asked) == 3


def test_a_server_that_is_not_there_is_named() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with (
        OpenAIEncoder(f"http://127.0.0.1:{port}", "m", attempts=2, backoff=0.001) as encoder,
        pytest.raises(OutsideError, match=rf"^openai:http://127.0.0.1:{port}/v1#m cannot be reached: .*refused"),
    ):
        encoder.encode(["a"])


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
    [b"", b"\x00\xff" * 50, b"<html><body>Welcome!</body></html>", b'{"data": [{"index": 0, "embedding": [0.1, 0.', b"[]"],
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


def test_the_key_goes_into_the_header_and_nowhere_else(
    server: Any, remote: Remote, key: str, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    caplog.set_level(logging.DEBUG)
    secret = "the patient Ann Miller has a rare disease"
    encoder = remote(attempts=2)
    cached = CachedEncoder(encoder, tmp_path / "c.sqlite")
    leaks = [repr(encoder), str(encoder), repr(cached), encoder.name, repr(vars(encoder)), f"{encoder._client.auth!r}"]
    echo = f"bad request: header Bearer {key} with input {secret}"
    replies: list[Callable[[], None]] = [
        lambda: server.will(401, {"error": {"message": echo}}),
        lambda: [server.will(500, echo) for _ in range(2)],  # type: ignore[func-returns-value]
        lambda: server.will(200, echo),
        lambda: server.will(200, {"data": [{"index": 5, "embedding": echo}]}),
        lambda: server.will(200, {"data": [{"index": 0, "embedding": echo}]}),
    ]
    for reply in replies:
        reply()
        with pytest.raises(OutsideError) as caught:
            cached.encode([secret])
        leaks += [str(caught.value), repr(caught.value)]
    leaks.append(caplog.text)
    leaks += [repr(record.__dict__) for record in caplog.records]
    cached.encode([secret])
    leaks += [path.read_bytes().decode("latin1") for path in tmp_path.glob("c.sqlite*")]
    assert [leak for leak in leaks if key in leak or "Ann Miller" in leak] == []


@pytest.mark.parametrize("failure", ["refusal", "hang up", "garbage", "slow"])
def test_a_traceback_with_locals_shows_no_key(server: Any, remote: Remote, key: str, failure: str) -> None:
    replies = {
        "refusal": lambda handler, _: server.send(handler, 401, b"no"),
        "hang up": lambda handler, _: setattr(handler, "close_connection", True),
        "garbage": lambda handler, _: server.send(handler, 200, b"no"),
        "slow": lambda handler, _: server.stopping.wait(1),
    }
    server.script.append(replies[failure])
    with pytest.raises(OutsideError) as caught:
        remote(attempts=1, timeout=0.3).encode(["a"])
    error: BaseException | None = caught.value
    seen = 0
    while error is not None:
        for frame, _ in traceback.walk_tb(error.__traceback__):
            if frame.f_code.co_filename != __file__:
                seen += 1
                assert key not in repr(frame.f_locals)
        error = error.__cause__ or error.__context__
    assert seen > 2


@pytest.mark.parametrize("bad", ["canary\nkey", "canary key", "canary-é", "canary\x00"])
def test_a_key_that_is_no_key_is_refused_unseen(bad: str) -> None:
    with pytest.raises(InputError, match="check OPENAI_API_KEY") as caught:
        OpenAIEncoder("http://localhost", "m", api_key=bad)
    assert "canary" not in str(caught.value)


def test_an_encoder_with_a_key_cannot_be_copied(remote: Remote) -> None:
    encoder = remote()
    for copier in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError):
            copier(encoder._key)
    for copier in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError):
            copier(encoder)
