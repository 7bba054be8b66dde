"""A server that is slow, busy, broken or gone: what is asked again, and what is not."""

from __future__ import annotations

import socket
import time
from collections.abc import Callable
from email.utils import formatdate
from typing import Any

import numpy as np
import pytest

from regionmarker.encoders import load_encoder
from regionmarker.encoders.http_client import EndpointError
from regionmarker.encoders.openai import OpenAIEncoder
from regionmarker.errors import OutsideError

Remote = Callable[..., OpenAIEncoder]
TEXTS = [f"text {number}" for number in range(7)]


def expected(hashes: Any, texts: list[str]) -> Any:
    return load_encoder(hashes).encode(texts)


@pytest.mark.parametrize("status", [408, 409, 424, 429, 500, 502, 503, 504, 529])
def test_passing_failures_are_asked_again(server: Any, remote: Remote, hashes: Any, status: int) -> None:
    server.will(status, "<html><h1>Bad Gateway</h1></html>")
    server.will(status)
    assert np.array_equal(remote().encode(TEXTS), expected(hashes, TEXTS))
    assert server.asked == [TEXTS] * 3


@pytest.mark.parametrize("status", [301, 400, 401, 403, 404, 422])
def test_lasting_failures_are_not(server: Any, remote: Remote, status: int) -> None:
    server.will(status, {"error": {"message": "no such model"}}, location="/elsewhere")
    advice = "; check the API key in OPENAI_API_KEY" if status in (401, 403) else ""
    with pytest.raises(OutsideError, match=rf"answered {status}: no such model{advice}$") as caught:
        remote().encode(TEXTS)
    assert caught.value.exit_code == 3
    assert isinstance(caught.value, EndpointError)
    assert caught.value.status == status
    assert len(server.asked) == 1


def test_attempts_are_bounded(server: Any, remote: Remote) -> None:
    for _ in range(9):
        server.will(502, "<html><head><title>502</title></head><h1>Bad Gateway</h1></html>")
    with pytest.raises(OutsideError, match=r"answered 502: 502 Bad Gateway$"):
        remote(attempts=3).encode(TEXTS)
    assert len(server.asked) == 3


def test_waits_grow(server: Any, remote: Remote) -> None:
    for _ in range(3):
        server.will(500)
    remote(backoff=0.05).encode(["a"])
    waits = np.diff(server.times)
    assert (waits >= [0.05, 0.1, 0.2]).all()


@pytest.mark.parametrize(
    ("status", "headers", "least"), [(429, {"retry_after": "1"}, 1.0), (503, {"retry_after_ms": "300"}, 0.3)]
)
def test_a_server_that_asks_for_time_gets_it(
    server: Any, remote: Remote, status: int, headers: dict[str, str], least: float
) -> None:
    server.will(status, **headers)
    remote().encode(["a"])
    assert least <= server.times[1] - server.times[0] < least + 10


def test_a_server_that_names_a_date_is_not_asked_before_it(server: Any, remote: Remote) -> None:
    date = int(time.time()) + 2
    server.will(429, retry_after=formatdate(date, usegmt=True))
    remote().encode(["a"])
    assert date <= time.time() < date + 10
    assert len(server.asked) == 2


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
    from regionmarker.encoders import http_client as endpoint

    monkeypatch.setattr(endpoint, "_MOST_BYTES", 1 << 20)
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
