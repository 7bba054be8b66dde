"""Whatever an upstream does, the client gets marked vectors or an error of the one shape, and nothing is left over."""

from __future__ import annotations

import asyncio
import base64
import datetime
import gzip
import json
import ssl
import threading
from collections.abc import Iterator

import numpy as np
import pytest
from aiohttp.abc import AbstractResolver
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from tests.support.gateways import MODEL, StubUpstream, error_of, eventually, rows_of, vectors_of

TEXTS = ["the first", "the second", "the third"]


def says(status: int, body: bytes, **headers: str):
    """A reply with any status and body."""

    async def reply(stub, writer, question):
        stub.write(writer, status, body, **headers)

    return reply


def altered(change):
    """A good answer, changed."""

    async def reply(stub, writer, question):
        answer = stub.answer(question)
        changed = change(answer)
        stub.write(writer, 200, json.dumps(answer if changed is None else changed).encode())

    return reply


def raw(change):
    """A good answer whose bytes are changed."""

    async def reply(stub, writer, question):
        stub.write(writer, 200, change(json.dumps(stub.answer({**question, "encoding_format": "float"})).encode()))

    return reply


def embedding(position: int, value):
    """A good answer with one embedding replaced; ``value`` may be made from the true row."""

    def change(answer):
        row = np.frombuffer(base64.b64decode(answer["data"][position]["embedding"]), "<f4")
        answer["data"][position]["embedding"] = value(row) if callable(value) else value

    return altered(change)


def recoded(row, dtype):
    return base64.b64encode(row.astype(dtype).tobytes()).decode()


def without(key):
    return altered(lambda answer: {name: value for name, value in answer.items() if name != key})


def shuffle_indices(answer):
    for item in answer["data"]:
        item["index"] = (item["index"] + 1) % 5


def number(item, index):
    item["index"] = index


async def cut(stub, writer, question):
    body = json.dumps(stub.answer(question)).encode()
    stub.write(writer, 200, body[: len(body) // 2], content_length=str(len(body)))
    await writer.drain()
    writer.close()


async def drip(stub, writer, question):
    stub.write(writer, 200, b"", content_length="1000")
    while True:
        writer.write(b" ")
        await writer.drain()
        await asyncio.sleep(0.02)


async def silence(stub, writer, question):
    await asyncio.sleep(3600)


async def flood(stub, writer, question):
    stub.write(writer, 200, b"", content_length=str(1 << 30))
    for _ in range(1 << 14):
        writer.write(b" " * (1 << 16))
        await writer.drain()


cut.watched = drip.watched = silence.watched = flood.watched = True


async def bomb(stub, writer, question):
    stub.write(writer, 200, gzip.compress(b" " * (1 << 22)), content_encoding="gzip")


HTML = b"<html><head><title>502 Bad Gateway</title></head></html>"

FLAT = b'{"message": "backend died", "code": 424, "type": "backend"}'

# name: (reply, status for the client, code, what the metrics call it, times the upstream is asked)
FAULTS = {
    "500": (says(500, b'{"error": {"message": "boom"}}'), 502, "upstream_error", "500", 2),
    "502 HTML": (says(502, HTML, content_type="text/html"), 502, "upstream_error", "502", 2),
    "503": (says(503, b""), 503, "upstream_overloaded", "503", 2),
    "429": (says(429, b"{}"), 429, "upstream_rate_limited", "429", 2),
    "429 later": (says(429, b"{}", retry_after="60"), 429, "upstream_rate_limited", "429", 1),
    "429 no money": (says(429, b'{"error": {"code": "insufficient_quota"}}'), 429, "upstream_rate_limited", "429", 1),
    "TEI 424": (says(424, FLAT), 502, "upstream_error", "424", 2),
    "401": (says(401, b'{"message": "wrong key sk-upstream-canary-123456"}'), 502, "upstream_error", "401", 1),
    "404": (says(404, b'{"error": {"message": "no such model"}}'), 502, "upstream_error", "404", 1),
    "307": (says(307, b"", location="http://127.0.0.1:1/"), 502, "upstream_error", "307", 1),
    "400": (says(400, b'{"error": {"message": "input too long"}}'), 400, "upstream_refused", "400", 1),
    "422 FastAPI": (says(422, b'{"detail": [{"msg": "bad"}]}'), 400, "upstream_refused", "422", 1),
    "disconnect in the body": (cut, 502, "upstream_unreachable", "disconnected", 2),
    "a body without end": (flood, 502, "upstream_invalid_response", "too_large", 1),
    "gzip bomb": (bomb, 502, "upstream_invalid_response", "compressed", 1),
    "HTML": (says(200, HTML), 502, "upstream_invalid_response", "json", 1),
    "nothing": (says(200, b""), 502, "upstream_invalid_response", "json", 1),
    "truncated JSON": (raw(lambda body: body[:-1]), 502, "upstream_invalid_response", "json", 1),
    "truncated in a vector": (raw(lambda body: body[:500]), 502, "upstream_invalid_response", "structure", 1),
    "length too short": (
        raw(lambda body: body[: len(body) // 3]), 502, "upstream_invalid_response", "json", 1,
    ),
    "a list": (says(200, b"[]"), 502, "upstream_invalid_response", "structure", 1),
    "no data": (without("data"), 502, "upstream_invalid_response", "structure", 1),
    "empty data": (altered(lambda answer: {**answer, "data": []}), 502, "upstream_invalid_response", "count", 1),
    "fewer rows": (altered(lambda answer: answer["data"].pop()), 502, "upstream_invalid_response", "structure", 1),
    "more rows": (
        altered(lambda answer: answer["data"].append({**answer["data"][0], "index": 3})),
        502, "upstream_invalid_response", "count", 1,
    ),
    "index missing": (
        altered(lambda answer: answer["data"][1].pop("index") and None),
        502, "upstream_invalid_response", "structure", 1,
    ),
    "index twice": (
        altered(lambda answer: number(answer["data"][1], 0)), 502, "upstream_invalid_response", "index", 1,
    ),
    "index out of range": (altered(shuffle_indices), 502, "upstream_invalid_response", "index", 1),
    "index negative": (
        altered(lambda answer: number(answer["data"][1], -1)), 502, "upstream_invalid_response", "index", 1,
    ),
    "null for a vector": (embedding(1, None), 502, "upstream_invalid_response", "structure", 1),
    "a number for a vector": (embedding(1, 0), 502, "upstream_invalid_response", "structure", 1),
    "an object for a vector": (embedding(1, {}), 502, "upstream_invalid_response", "structure", 1),
    "an empty vector": (embedding(1, []), 502, "upstream_invalid_response", "width", 1),
    "null in a vector": (
        embedding(1, lambda row: [None, *row[1:].tolist()]), 502, "upstream_invalid_response", "numbers", 1,
    ),
    "text in a vector": (
        embedding(1, lambda row: ["x", *row[1:].tolist()]), 502, "upstream_invalid_response", "numbers", 1,
    ),
    "a nested vector": (embedding(1, lambda row: [row.tolist()]), 502, "upstream_invalid_response", "numbers", 1),
    "a NaN literal": (
        raw(lambda body: body.replace(b"[", b"[NaN, ", 2)), 502, "upstream_invalid_response", "numbers", 1,
    ),
    "an Infinity literal": (
        embedding(1, lambda row: [float("inf"), *row[1:].tolist()]), 502, "upstream_invalid_response", "numbers", 1,
    ),
    "a number beyond float32": (
        embedding(1, lambda row: [1e300, *row[1:].tolist()]), 502, "upstream_invalid_response", "not_finite", 1,
    ),
    "a number beyond float64": (
        raw(lambda body: body.replace(b'"embedding": [', b'"embedding": [1e999, ')),
        502, "upstream_invalid_response", None, 1,
    ),
    "NaN in base64": (
        embedding(1, lambda row: recoded(np.where(np.arange(len(row)) == 3, np.nan, row), "<f4")),
        502, "upstream_invalid_response", "not_finite", 1,
    ),
    "zeros": (embedding(1, lambda row: recoded(row * 0, "<f4")), 502, "upstream_invalid_response", "norm", 1),
    "a long vector": (embedding(1, lambda row: recoded(row * 3, "<f4")), 502, "upstream_invalid_response", "norm", 1),
    "wrong width": (embedding(1, lambda row: recoded(row[:-1], "<f4")), 502, "upstream_invalid_response", "width", 1),
    "wrong width in numbers": (
        embedding(1, lambda row: row[:-1].tolist()), 502, "upstream_invalid_response", "width", 1,
    ),
    "float64 in base64": (embedding(1, lambda row: recoded(row, "<f8")), 502, "upstream_invalid_response", "width", 1),
    "float16 in base64": (embedding(1, lambda row: recoded(row, "<f2")), 502, "upstream_invalid_response", "width", 1),
    "big-endian base64": (embedding(1, lambda row: recoded(row, ">f4")), 502, "upstream_invalid_response", None, 1),
    "int8": (
        embedding(1, lambda row: np.round(row * 127).astype(int).tolist()), 502, "upstream_invalid_response", "norm", 1,
    ),
    "binary": (embedding(1, lambda row: recoded(row > 0, "u1")), 502, "upstream_invalid_response", "width", 1),
    "bad base64": (embedding(1, "$$$$"), 502, "upstream_invalid_response", "base64", 1),
    "half a base64": (embedding(1, "AAA"), 502, "upstream_invalid_response", "base64", 1),
    "another model": (
        altered(lambda answer: {**answer, "model": "another"}), 502, "upstream_invalid_response", "model", 1,
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def shared(module_serving):
    """One gateway for all faults: what one of them breaks, the next one notices."""
    return module_serving(attempts=2, total=60.0)


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_an_error_and_nothing_else(shared, name):
    serving, upstream = shared
    reply, status, code, kind, times = FAULTS[name]
    invalid = {key: serving.metric("regionmarker_upstream_invalid_total", kind=key) for key in [kind] if kind}
    asked = serving.metric("regionmarker_upstream_duration_seconds_count", upstream="openai", outcome=str(kind))
    upstream.requests.clear()
    upstream.always = reply
    try:
        response = serving.post(TEXTS)
    finally:
        upstream.always = None
    error = error_of(response, status, code)
    assert "canary" not in response.text
    assert not any(text in response.text for text in TEXTS)
    assert len(upstream.requests) == times, error
    retry = response.headers.get("x-should-retry")
    assert retry == ("false" if status in (502, 504) or "no money" in name else None)
    if status in (429, 503) and retry is None:
        assert int(response.headers["retry-after-ms"]) == (60_000 if "later" in name else 1000)
    if kind:
        counted = serving.metric("regionmarker_upstream_duration_seconds_count", upstream="openai", outcome=kind)
        assert counted == asked + times
        if code == "upstream_invalid_response":
            assert serving.metric("regionmarker_upstream_invalid_total", kind=kind) == invalid[kind] + 1
    eventually(serving.is_at_rest, "rest")
    assert serving.post(TEXTS).status_code == 200


def test_shuffled_rows_are_put_in_order(serve, upstream, key_marker):
    serving = serve()
    upstream.always = altered(lambda answer: answer["data"].reverse())
    np.testing.assert_array_equal(rows_of(serving.post(TEXTS)), key_marker.transform(vectors_of(TEXTS)))


@pytest.mark.parametrize(
    "reply",
    [
        raw(lambda body: body),  # numbers where base64 was asked for
        altered(lambda answer: {**answer, "usage": None}),
        without("usage"),
        without("model"),
        altered(lambda answer: {**answer, "more": {"of": ["this"]}}),
        says(200, b""),  # replaced below
    ],
    ids=["numbers", "usage null", "no usage", "no model", "more fields", "escaped slashes"],
)
def test_unusual_but_right_answers_are_served(serve, upstream, key_marker, reply, request):
    if "escaped" in request.node.name:

        async def reply(stub, writer, question):
            stub.write(writer, 200, json.dumps(stub.answer(question)).replace("/", "\\/").encode())

    serving = serve()
    upstream.always = reply
    np.testing.assert_array_equal(rows_of(serving.post(TEXTS)), key_marker.transform(vectors_of(TEXTS)))


@pytest.mark.parametrize("number", [2**63, 2**64, 10**400, 2**31, -1])
def test_one_number_of_the_upstream_does_not_end_accounting(serve, upstream, key_marker, number):
    """What nobody can have counted is not counted; the vectors are good, and are served."""
    serving = serve()
    upstream.always = altered(lambda answer: {**answer, "usage": {"prompt_tokens": number, "total_tokens": number}})
    response = serving.post(TEXTS)
    np.testing.assert_array_equal(rows_of(response), key_marker.transform(vectors_of(TEXTS)))
    assert response.json()["usage"] == {"prompt_tokens": 0, "total_tokens": 0}
    assert serving.metric("regionmarker_upstream_invalid_total", kind="usage") == 1
    assert serving.post([[1, 2, 3], [4, 5]]).json()["usage"]["prompt_tokens"] == 5  # here they are known


def test_a_dripping_upstream_is_given_up_in_time(serve, upstream):
    serving = serve(total=1.0)
    upstream.always = drip
    error_of(serving.post(TEXTS), 504, "upstream_timeout")
    eventually(lambda: upstream.left == 1)
    eventually(serving.is_at_rest, "rest")


def test_a_silent_upstream_is_given_up_in_time(serve, upstream):
    serving = serve(read=0.5, attempts=2)
    upstream.always = silence
    error_of(serving.post(TEXTS), 504, "upstream_timeout")
    eventually(lambda: upstream.left == 2)
    asked = serving.metric("regionmarker_upstream_duration_seconds_count", upstream="openai", outcome="read_timeout")
    assert asked == 2
    eventually(serving.is_at_rest, "rest")


@pytest.fixture
def untrusted(tmp_path) -> Iterator[int]:
    """The port of a server whose certificate nobody has signed."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "127.0.0.1")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder(name, name, key.public_key(), 1, now, now + datetime.timedelta(days=1))
        .sign(key, hashes.SHA256())
    )  # fmt: skip
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    (tmp_path / "pem").write_bytes(pem + certificate.public_bytes(Encoding.PEM))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "pem")
    stub = StubUpstream(context)
    yield stub.port
    stub.stop()


@pytest.mark.parametrize(("scheme", "kind"), [("http", "refused"), ("https", "tls")])
def test_an_upstream_that_cannot_be_reached(serve, closed_port, untrusted, scheme, kind):
    port = closed_port if kind == "refused" else untrusted
    serving = serve(f"openai:{scheme}://127.0.0.1:{port}/v1#{MODEL}", attempts=1)
    error_of(serving.post(TEXTS), 502, "upstream_unreachable")
    assert serving.metric("regionmarker_upstream_duration_seconds_count", upstream="openai", outcome=kind) == 2
    assert str(port) not in serving.post(TEXTS).text
    eventually(serving.is_at_rest, "rest")
    error_of(serving.client.get("/readyz"), 503, "upstream_unreachable")
    assert serving.client.get("/livez").status_code == 200


def test_a_name_that_cannot_be_resolved(serve):
    class Nowhere(AbstractResolver):
        async def resolve(self, host, port=0, family=0):
            raise OSError(f"no such host: {host}")

        async def close(self):
            pass

    serving = serve(attempts=1)
    serving.gateway.upstream._session.connector._resolver = Nowhere()
    serving.gateway.upstream._endpoint = "http://upstream.invalid/v1/embeddings"
    assert "upstream.invalid" not in error_of(serving.post(TEXTS), 502, "upstream_unreachable")["message"]
    assert serving.metric("regionmarker_upstream_duration_seconds_count", upstream="openai", outcome="dns") == 1


def test_an_exhausted_pool_is_an_error_and_not_a_wait_for_ever(serve, upstream):
    serving = serve(connections=1, connect=2.0, attempts=1)
    release = asyncio.Event()

    async def hold(stub, writer, question):
        await release.wait()
        await stub.good(writer, question)

    upstream.script = [hold]
    first = []
    thread = threading.Thread(target=lambda: first.append(serving.post(TEXTS)))
    thread.start()
    eventually(lambda: upstream.requests, "the first request")
    error_of(serving.post(TEXTS), 503, "upstream_unreachable")
    upstream.loop.call_soon_threadsafe(release.set)
    thread.join(60)
    assert first[0].status_code == 200


def limited(most: int, status: int, message: str):
    """A server that takes so many inputs at once."""

    async def reply(stub, writer, question):
        if len(question["input"]) > most:
            stub.write(writer, status, json.dumps({"message": message, "code": status, "type": "x"}).encode())
        else:
            await stub.good(writer, question)

    return reply


def test_large_batches_are_split_and_joined_in_order(serve, upstream, key_marker, sentences):
    serving = serve(f"tei:{upstream.url}#{MODEL}")
    texts = sentences[:100]
    answer = serving.post(texts)
    np.testing.assert_array_equal(rows_of(answer), key_marker.transform(vectors_of(texts)))
    assert sorted(len(question["input"]) for question in upstream.requests) == [4, 32, 32, 32]
    assert answer.json()["usage"]["prompt_tokens"] == sum(map(len, texts))


@pytest.mark.parametrize(
    ("status", "message"), [(413, "too much"), (422, "batch size 100 > maximum allowed batch size 24")]
)
def test_a_servers_own_limit_is_learnt(serve, upstream, key_marker, sentences, status, message):
    serving = serve(f"http://127.0.0.1:{upstream.port}/v1#{MODEL}")
    upstream.always = limited(24, status, message)
    texts = sentences[:100]
    np.testing.assert_array_equal(rows_of(serving.post(texts)), key_marker.transform(vectors_of(texts)))
    upstream.requests.clear()
    assert serving.post(texts).status_code == 200
    assert max(len(question["input"]) for question in upstream.requests) <= 24  # asked right the second time


def asked(upstream) -> list[int]:
    """How many inputs the upstream was asked for, request by request since the last look."""
    counts = [len(question["input"]) for question in upstream.requests]
    upstream.requests.clear()
    return counts


BAD = "this one is bad"


@pytest.mark.parametrize(
    ("status", "said"),
    [(413, "no"), (400, "a batch of nonsense"), (422, "batch size 7 > 6"), (400, "see encoding_format"), (422, "bad")],
)
def test_one_refused_request_degrades_nobody(serve, upstream, sentences, status, said):
    """A client's bad text is that client's 400, whatever the upstream says about it; nobody else notices."""

    async def picky(stub, writer, question):
        if BAD in question["input"]:
            stub.write(writer, status, json.dumps({"message": said}).encode())
        else:
            await stub.good(writer, question)

    serving = serve()
    upstream.always = picky
    for place in (0, 1, 50, 99):
        texts = [BAD if number == place else text for number, text in enumerate(sentences[:100])]
        error_of(serving.post(texts), 400, "upstream_refused")
        eventually(serving.is_at_rest, "rest")
        assert len(asked(upstream)) <= 24  # it was looked for, not asked for over and over
    assert serving.post(sentences[:100]).status_code == 200
    assert asked(upstream) == [100]
    assert serving.post(sentences[:100]).status_code == 200
    assert all("encoding_format" in question for question in upstream.requests)


def test_a_limit_that_was_learnt_is_forgotten_when_the_server_is_mended(serve, upstream, sentences):
    serving = serve()
    now = [0.0]
    serving.gateway.upstream._limits._clock = lambda: now[0]
    upstream.always = limited(24, 422, "batch size 100 > maximum allowed batch size 24")
    assert serving.post(sentences[:100]).status_code == 200
    assert asked(upstream) == [100, 24, 24, 24, 24, 4]
    assert serving.post(sentences[:100]).status_code == 200
    assert max(asked(upstream)) == 24
    upstream.always = None
    now[0] += 299
    serving.post(sentences[:100])
    assert max(asked(upstream)) <= 24
    now[0] += 2
    serving.post(sentences[:100])
    assert asked(upstream) == [100]


def test_a_limit_of_bytes_is_no_limit_of_inputs(serve, upstream, sentences):
    async def small(stub, writer, question):
        if sum(map(len, question["input"])) > 130_000:
            stub.write(writer, 413, b"length limit exceeded")
        else:
            await stub.good(writer, question)

    serving = serve()
    upstream.always = small
    long = [f"{letter} " * 30_000 for letter in "abcd"]
    assert serving.post(long).status_code == 200
    assert asked(upstream) == [4, 2, 2]
    assert serving.post(sentences[:100]).status_code == 200
    assert asked(upstream) == [100]
    assert serving.post(long).status_code == 200
    assert asked(upstream) == [2, 2]


def test_the_health_probe_follows_no_redirect_to_another_host(serve):
    other = StubUpstream()
    try:
        serving = serve()

        async def redirect(reader, writer):
            await reader.readuntil(b"\r\n\r\n")
            seen.append(1)
            where = f"http://127.0.0.1:{other.port}/stolen"
            writer.write(f"HTTP/1.1 302 Found\r\nlocation: {where}\r\ncontent-length: 0\r\n\r\n".encode())
            writer.close()
            await writer.wait_closed()

        seen: list[int] = []
        probed = other.call(asyncio.start_server(redirect, "127.0.0.1", 0))
        port = probed.sockets[0].getsockname()[1]
        serving.gateway.upstream._endpoint = f"http://127.0.0.1:{port}/v1/embeddings"
        opened = other.open
        assert serving.call(serving.gateway.upstream.is_there())
        assert seen == [1]
        assert other.open == opened  # nobody came, and so no API key
        other.loop.call_soon_threadsafe(probed.close)
    finally:
        other.stop()


def test_one_failing_part_fails_the_whole(serve, upstream, sentences):
    serving = serve(f"tei:{upstream.url}#{MODEL}", attempts=1)
    upstream.script = [StubUpstream.good, says(500, b"")]
    error_of(serving.post(sentences[:100]), 502)
    eventually(serving.is_at_rest, "rest")


def test_a_server_that_knows_no_base64_is_asked_for_numbers(serve, upstream, key_marker):
    async def picky(stub, writer, question):
        if "encoding_format" in question:
            stub.write(writer, 400, b'{"error": {"message": "unknown field encoding_format"}}')
        else:
            await stub.good(writer, question)

    serving = serve()
    upstream.always = picky
    np.testing.assert_array_equal(rows_of(serving.post(TEXTS)), key_marker.transform(vectors_of(TEXTS)))
    upstream.requests.clear()
    assert serving.post(TEXTS).status_code == 200
    assert len(upstream.requests) == 1


def test_ollama_takes_no_tokens(serve, upstream):
    serving = serve(f"ollama:{upstream.url}#{MODEL}")
    assert error_of(serving.post([1, 2]), 400)["param"] == "input"
    assert upstream.requests == []
