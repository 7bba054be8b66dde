"""A body is read within bounds, counted while it is held, and measured before it is parsed."""

from __future__ import annotations

import asyncio
import json
import sys
import threading

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.gateways import error_of, eventually
from tests.support.raw_http import answer, connected, error_code, post, send

from regionmarker.gateway import request_body
from regionmarker.gateway.admission import Admission
from regionmarker.gateway.dialects import openai
from regionmarker.gateway.errors import ApiError
from regionmarker.gateway.request_body import check_structure, count_structure, declared_length, decoded_bytes
from regionmarker.gateway.tenants import Tenant

MB = 1 << 20


def counted_slowly(body: bytes) -> tuple[int, int, int]:
    """As a person would count: letter by letter. A backslash outside of strings is no JSON; there it hides a quote."""
    strings = lists = commas = 0
    inside = escaped = False
    for byte in body:
        letter = chr(byte)
        if escaped and letter in '"\\':
            escaped = False
            continue
        escaped = False
        if letter == "\\":
            escaped = True
        elif letter == '"':
            strings += not inside
            inside = not inside
        elif not inside:
            lists += letter == "["
            commas += letter == ","
    return strings, lists, commas


@given(st.text('"\\[,a', max_size=60), st.integers(1, 9))
def test_counting_is_exact_wherever_the_pieces_end(text, piece):
    was, request_body._PIECE = request_body._PIECE, piece
    try:
        assert count_structure(text.encode()) == counted_slowly(text.encode())
    finally:
        request_body._PIECE = was


def test_what_is_in_texts_does_not_count():
    texts = ['a "quoted", [bracketed] text \\ with \\" both ' * 40] * 2048
    body = json.dumps({"model": "m", "input": texts}).encode()
    assert len(body) > 2 * MB
    assert count_structure(body) == (2048 + 3, 1, 2048)
    asyncio.run(check_structure(body))
    assert openai.read_request(body).inputs == texts


BOMBS = {
    "lists": b"[" + b"[]," * (5 * MB) + b"[]]",
    "tokens": b"[" + b"1," * (8 * MB - 100) + b"1]",
    "empty texts": b"[" + b'"",' * (5 * MB) + b'""]',
    "lists of one": b"[" + b"[1]," * (4 * MB - 100) + b"[1]]",
    "nested": b"[" * (15 * MB),
    "commas": b"[" + b"," * (15 * MB) + b"]",
    "open quote": b'["' + b'\\"' * (7 * MB) + b"," * MB,
}


@pytest.mark.parametrize("name", BOMBS)
def test_no_seconds_of_work_in_the_event_loop_for_a_body_of_many_parts(serve, monkeypatch, name):
    """It is refused by its count, before a parser has made an object of it."""
    body = b'{"model":"m","input":' + BOMBS[name] + b"}"
    parsed: list[int] = []
    read_request = openai.read_request

    def reading(given: bytes):
        parsed.append(len(given))
        return read_request(given)

    monkeypatch.setattr(openai, "read_request", reading)
    serving = serve()
    parsed.clear()
    with connected(serving.port) as client:
        send(client, b"POST /v1/embeddings HTTP/1.1\r\nhost: h\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
        if name == "open quote":  # one string without an end: the parser sees that at once
            assert error_code(client, 400) == "invalid_json"
            return
        assert error_code(client, 400) == "invalid_value"
    assert parsed == []


@pytest.mark.parametrize(("route", "field"), [("/v2/embed", b"texts"), ("/api/embed", b"input")])
@pytest.mark.parametrize("name", ["lists", "empty texts", "nested"])
def test_the_other_dialects_count_before_they_parse_as_well(serve, route, field, name):
    body = b'{"model":"m","%b":' % field + BOMBS[name] + b"}"
    response = serve().client.post(route, content=body, headers={"content-type": "application/json"})
    assert response.status_code == 400
    assert f"'{field.decode()}' must hold at most 2048 inputs" in response.text


def test_a_little_too_much_gets_the_parsers_own_message(serve, upstream):
    serving = serve()
    many = serving.post([f"a text of some letters, number {n}" for n in range(2049)])
    assert "at most 2048 inputs, but holds 2049" in error_of(many, 400)["message"]
    tokens = serving.post([[11111111] * 8000] * 38)
    assert "at most 300000 tokens in all, but has 304000" in error_of(tokens, 400)["message"]


@pytest.mark.parametrize(
    ("header", "length"),
    [(b"17", 17), (b"0" * 9000 + b"17", 17), (b"9" * 9000, sys.maxsize), (b"", 0), (b"1_0", 0), (b"-5", 0), (b"0", 0)],
)
def test_lengths(header, length):
    assert declared_length({"headers": [(b"content-length", header)]}) == length


# ---- bytes in flight


def test_one_tenant_may_hold_half_of_the_bytes():
    door = Admission(capacity=8, queue=0, patience=1.0, most_bytes=100)
    with door.hold_bytes(Tenant("a")) as a, door.hold_bytes(Tenant("b")) as b, door.hold_bytes(Tenant("c")) as c:
        a.grow(50)
        with pytest.raises(ApiError) as refused:
            a.grow(1)
        assert (refused.value.status, refused.value.kind) == (429, "bytes")
        b.grow_to(40)
        b.grow_to(30)
        with pytest.raises(ApiError):
            c.expect(11)
        c.grow(10)
        assert door.bytes_held == 100
    assert (door.bytes_held, door._bytes_by_tenant) == (0, {})


def test_a_wide_letter_counts_for_the_memory_that_it_takes():
    plain, wide = (
        openai.read_request(json.dumps({"model": "m", "input": text}).encode())
        for text in ("a" * 9999, "a" * 9999 + "😀")
    )
    assert decoded_bytes(wide) > 3.9 * decoded_bytes(plain)
    assert decoded_bytes(openai.read_request(b'{"model":"m","input":[1,2,3]}')) == 3 * 36


def test_capacity_counts_bytes(serve, upstream):
    """Bodies are refused, before they are read where their length is known, while others hold all the room."""
    release = asyncio.Event()

    async def hold(stub, writer, question):
        await release.wait()
        await stub.good(writer, question)

    serving = serve(body_bytes=100_000, bytes_in_flight=400_000)
    upstream.always = hold
    large, answers = ["word " * 18_000], []
    threads = [threading.Thread(target=lambda: answers.append(serving.post(large).status_code)) for _ in range(2)]
    for thread in threads:
        thread.start()
    eventually(lambda: len(upstream.requests) == 2, "two requests")
    assert serving.gateway.admission.bytes_held > 180_000
    with connected(serving.port) as client:
        send(client, post(large)[:300])  # its head says how long it is: nobody waits for the rest
        status, headers, _ = answer(client)
        assert (status, "retry-after-ms" in headers) == (429, True)
    chunked = b"POST /v1/embeddings HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n4000\r\n" + b" " * 0x4000
    with connected(serving.port) as client:
        send(client, chunked + b"\r\n8000\r\n" + b" " * 0x8000)
        assert answer(client)[0] == 429
    assert serving.metric("regionmarker_rejected_total", reason="bytes") == 2
    upstream.loop.call_soon_threadsafe(release.set)
    for thread in threads:
        thread.join(60)
    assert answers == [200, 200]
    eventually(lambda: serving.metric("regionmarker_inflight_bytes") == 0, "no bytes held")


def test_what_a_slow_client_has_only_promised_takes_no_room(serve):
    serving = serve(body_bytes=100_000, bytes_in_flight=200_000)
    with connected(serving.port) as one, connected(serving.port) as other:
        for client in (one, other):
            send(client, post("a", length="99999"))
        assert serving.post(["word " * 19_000]).status_code == 200
