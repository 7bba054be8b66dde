"""Limits at the door: what a stranger can make the gateway hold is bounded, and told in the one shape."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import time

import pytest
from tests.support.gateways import eventually
from tests.support.raw_http import answer, connected, error_code, has_ended, post, send

GET = b"GET /livez HTTP/1.1\r\nhost: h\r\n\r\n"
CHUNKED = b"POST /v1/embeddings HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\n"


def refused(serving, reason: str) -> float:
    return serving.metric("regionmarker_connections_refused_total", reason=reason)


@pytest.fixture
def many(serve):
    """Open sockets that are closed in the end."""
    with contextlib.ExitStack() as stack:
        yield lambda port, count: [stack.enter_context(connected(port)) for _ in range(count)]


# ---- heads


@pytest.mark.parametrize(
    "head",
    [
        b"GET /livez HTTP/1.1\r\nx: " + b"a" * 40_000 + b"\r\n\r\n",
        b"GET /livez HTTP/1.1\r\n" + b"".join(b"x%d: a\r\n" % n for n in range(101)) + b"\r\n",
        b"GET /livez HTTP/1.1\r\nx: " + b"a" * (8 << 20),  # without an end
        b"GET /livez HTTP/1.1\r\n" + b"x: aaaaaaaaaaaaaaaaaa\r\n" * 400_000,
        b"GET /" + b"a" * (8 << 20),
        CHUNKED + b"0\r\nx: " + b"a" * 40_000 + b"\r\n\r\n",
    ],
    ids=["one large", "too many", "one without end", "many without end", "the address", "behind the body"],
)  # fmt: skip
def test_limits_at_the_door_of_heads(serve, head):
    serving = serve()
    with connected(serving.port) as client:
        send(client, head)
        assert error_code(client, 431) == "headers_too_large"
        assert has_ended(client)
    assert refused(serving, "head_size") == 1
    with connected(serving.port) as client:
        large = b"GET /livez HTTP/1.1\r\n" + b"".join(b"x%d: %b\r\n" % (n, b"a" * 300) for n in range(99)) + b"\r\n"
        send(client, large)
        assert answer(client)[0] == 200


def test_a_trailer_without_end_is_not_held(serve):
    serving = serve(idle=600.0)
    with connected(serving.port) as client:
        send(client, CHUNKED + b"0\r\nx: ")
        send(client, b"a" * (4 << 20))
        assert error_code(client, 400) == "invalid_http"


def test_what_comes_behind_a_body_is_no_header(serve, upstream):
    serving = serve()
    body = post(["a"]).partition(b"\r\n\r\n")[2]
    with connected(serving.port) as client:
        send(client, CHUNKED + b"%x\r\n%b\r\n0\r\ncontent-encoding: gzip\r\n\r\n" % (len(body), body))
        assert answer(client)[0] == 200
        send(client, GET)
        assert answer(client)[0] == 200


# ---- time


def test_limits_at_the_door_of_time(serve, many):
    """Who says nothing, or half a head, or nothing more: each is ended; who asks in time is not."""
    serving = serve(header_timeout=0.3, idle=0.3)
    silent = many(serving.port, 20)
    (half,) = many(serving.port, 1)
    send(half, GET[:20])
    (later,) = many(serving.port, 1)
    send(later, GET)
    assert answer(later)[0] == 200
    assert error_code(half, 408) == "request_timeout"
    assert all(map(has_ended, [*silent, half, later]))
    assert refused(serving, "head_time") == 1
    assert refused(serving, "idle") == 20
    eventually(lambda: serving.gateway.connections.open <= 1, "closed connections")  # one is the test's own client


def test_a_head_that_drips_is_ended(serve):
    serving = serve(header_timeout=0.3)
    with connected(serving.port) as client:
        send(client, GET)
        assert answer(client)[0] == 200
        for byte in GET:  # the second one on the same connection
            send(client, bytes([byte]))
            time.sleep(0.03)
        assert error_code(client, 408) == "request_timeout"


@pytest.mark.parametrize("head", [post("a", length="10").partition(b"{")[0], CHUNKED], ids=["a length", "chunks"])
def test_limits_at_the_door_of_a_body_that_never_begins(serve, head):
    serving = serve(read=0.3, idle=0.3)
    with connected(serving.port) as client:
        send(client, head)
        assert error_code(client, 408) == "request_timeout"
        assert has_ended(client)


def test_empty_lines_do_not_keep_a_connection_for_ever(serve):
    serving = serve(idle=0.3)
    with connected(serving.port) as client:
        send(client, GET)
        assert answer(client)[0] == 200
        send(client, b"\r\n")
        assert has_ended(client)


def test_the_rest_of_a_body_that_nobody_reads_is_not_waited_for_for_ever(serve):
    serving = serve(read=0.3)
    with connected(serving.port) as client:
        send(client, post("a", "content-type: text/plain", length="1000000"))
        assert error_code(client, 415) == "unsupported_media_type"
        send(client, b"and a little more of it")
        assert has_ended(client)
    with connected(serving.port) as client:  # but who sends it to its end may ask again
        send(client, post("a", "content-type: text/plain", length="1000"))
        assert error_code(client, 415) == "unsupported_media_type"
        send(client, b"x" * (1000 - len(post("a").partition(b"\r\n\r\n")[2])) + GET)
        assert answer(client)[0] == 200


def test_who_does_not_read_gives_its_places_back(serve, sentences):
    """Two large requests on one connection that reads nothing: the second answer could wait for ever."""
    serving = serve(read=0.5, capacity=4096)
    with socket.socket() as client:
        client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        client.connect(("127.0.0.1", serving.port))
        send(client, post(sentences[:2048]) + post(sentences[:60]))
        eventually(lambda: refused(serving, "stalled") == 1, "the end of patience")
        eventually(serving.is_at_rest, "rest")
        assert serving.gateway.admission.bytes_held == 0


# ---- numbers


def test_limits_at_the_door_of_connections(serve, many):
    serving = serve(clients=10)
    serving.client.close()
    eventually(lambda: serving.gateway.connections.open == 0, "an empty house")
    clients = many(serving.port, 10)
    eventually(lambda: serving.gateway.connections.open == 10, "ten connections")
    (last,) = many(serving.port, 1)
    assert error_code(last, 503) == "too_many_connections"
    assert has_ended(last)
    assert refused(serving, "clients") == 1
    assert serving.metric("regionmarker_connections") == 10
    clients[0].close()
    eventually(lambda: serving.gateway.connections.open == 9, "room")
    (next_one,) = many(serving.port, 1)
    send(next_one, GET)
    assert answer(next_one)[0] == 200


def test_limits_at_the_door_of_one_address(serve, many):
    serving = serve(clients_per_address=3, trusted_proxies=())
    serving.client.close()
    eventually(lambda: serving.gateway.connections.open == 0, "an empty house")
    many(serving.port, 3)
    eventually(lambda: serving.gateway.connections.open == 3, "three connections")
    (last,) = many(serving.port, 1)
    send(last, GET.replace(b"\r\n\r\n", b"\r\nx-forwarded-for: 192.0.2.1\r\n\r\n"))  # a stranger may say anything
    assert error_code(last, 503) == "too_many_connections"
    assert refused(serving, "address") == 1


def test_behind_a_proxy_that_is_trusted_the_address_that_it_names_counts(serve, upstream, many):
    async def never(stub, writer, question):
        await asyncio.sleep(3600)

    never.watched = True
    serving = serve(clients_per_address=2)
    upstream.always = never
    first = many(serving.port, 2)
    for client in first:
        send(client, post("a", "x-forwarded-for: 198.51.100.9, 192.0.2.1"))
    eventually(lambda: len(upstream.requests) == 2, "two requests")
    (third,) = many(serving.port, 1)
    send(third, post("a", "x-forwarded-for: 203.0.113.5, 192.0.2.1, 127.0.0.1"))  # the end is the proxies' word
    assert error_code(third, 429) == "rate_limit_exceeded"
    upstream.always = None
    send(third, post("a", "x-forwarded-for: 192.0.2.2"))  # another client behind the same proxy, over its connection
    assert answer(third)[0] == 200
    first[0].close()
    eventually(lambda: upstream.left == 1, "who left")
    send(third, post("a", "x-forwarded-for: 192.0.2.1"))
    assert answer(third)[0] == 200
    first[1].close()
    third.close()
    eventually(lambda: not serving.gateway.connections._by_address, "an empty list")


def test_many_requests_at_once_on_one_connection_are_too_many(serve):
    serving = serve()
    with connected(serving.port) as client:
        send(client, GET * 5000)
        assert has_ended(client)
    assert refused(serving, "pipelined") == 1
    with connected(serving.port) as client:
        send(client, GET * 8)
        assert [answer(client)[0] for _ in range(1)] == [200]


# ---- what is not HTTP


@pytest.mark.parametrize(
    "raw",
    [
        b"nonsense\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", b"GET / HTTP/9.9\r\n\r\n",
        b"GET /livez HTTP/1.1\r\nno colon\r\n\r\n", b"GET /\xff HTTP/1.1\r\n\r\n", b"GET http://[ HTTP/1.1\r\n\r\n",
        b"CONNECT host:443 HTTP/1.1\r\nhost: h\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"POST /v1/embeddings HTTP/1.1\r\ncontent-length: -1\r\n\r\n",
        b"POST /v1/embeddings HTTP/1.1\r\ncontent-length: 1\r\ntransfer-encoding: chunked\r\n\r\n",
        b"POST /v1/embeddings HTTP/1.1\r\nhost: h\r\ntransfer-encoding: chunked\r\n\r\nzz\r\n",
        b"POST /v1/embeddings HTTP/1.1\r\ncontent-length: 99999999999999999999999\r\n\r\n",
    ],
)  # fmt: skip
def test_malformed_http_gets_the_one_shape(serve, raw):
    serving = serve()
    with connected(serving.port) as client:
        send(client, raw)
        assert error_code(client, 400) == "invalid_http"
        assert has_ended(client)
    assert refused(serving, "malformed") == 1


@pytest.mark.parametrize("protocol", ["websocket", "h2c"])
def test_an_upgrade_is_not_made_and_the_connection_ends(serve, protocol):
    serving = serve()
    with connected(serving.port) as client:
        send(client, GET.replace(b"\r\n\r\n", b"\r\nconnection: upgrade\r\nupgrade: %b\r\n\r\n" % protocol.encode()))
        status, headers, _ = answer(client)
        assert (status, headers["connection"]) == (200, "close")
        assert has_ended(client)


def test_a_length_with_thousands_of_zeros_is_a_length(serve):
    serving = serve()
    length = len(post("a").partition(b"\r\n\r\n")[2])
    with connected(serving.port) as client:
        send(client, post("a", length="0" * 5000 + str(length)))
        assert answer(client)[0] == 200


def test_half_an_answer_is_not_followed_by_an_error(serve, upstream, sentences):
    """What is wrong behind a request that is being answered ends the connection, and does not end up in the answer."""
    serving = serve()
    with connected(serving.port) as client:
        send(client, post(sentences[:500], encoding_format="base64") + b"nonsense\r\n\r\n")
        status, _, body = answer(client)
        assert status in (0, 400)
        if status:
            assert json.loads(body)["error"]["code"] == "invalid_http"
    eventually(serving.is_at_rest, "rest")


def test_who_leaves_with_several_requests_under_way_leaves_them_all(serve, upstream, log):
    """The one that is answered just then hears of it, too, and not only the one that came last."""

    async def never(stub, writer, question):
        await asyncio.sleep(3600)

    never.watched = True
    serving = serve()
    upstream.always = never
    with connected(serving.port) as client:
        send(client, post("a") + post("b"))
        eventually(lambda: len(upstream.requests) == 1, "the first request")
    eventually(lambda: upstream.left == 1, "the end of the upstream's request")
    eventually(serving.is_at_rest, "rest")
    with connected(serving.port) as client:
        send(client, post("a") + b"nonsense\r\n\r\n")
        assert has_ended(client)
    eventually(serving.is_at_rest, "rest")
    assert "internal error" not in log.getvalue()
