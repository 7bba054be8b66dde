"""One request, from its headers to the last byte of its answer."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests.support.gateways import MODEL, WIDTH, error_of, eventually, rows_of, vectors_of

from regionmarker.gateway.tenants import Tenant
from regionmarker.marks.number_format import NumberFormat, in_format

TEXTS = ["a first text", "a second one", "und ein dritter", "\u65e5\u672c\u8a9e", "a" * 5000]

TOKENS = [[1, 2, 3], [4], [5, 6, 7, 8]]


@pytest.mark.parametrize("encoding", [None, "float", "base64"])
@pytest.mark.parametrize(
    ("asked", "inputs"),
    [("one text", ["one text"]), (TEXTS, TEXTS), ([7, 8, 9], [[7, 8, 9]]), (TOKENS, TOKENS)],
    ids=["text", "texts", "tokens", "nested"],
)
def test_the_vectors_are_the_marked_vectors_of_the_upstream(serve, key_marker, encoding, asked, inputs):
    serving = serve()
    fields = {} if encoding is None else {"encoding_format": encoding}
    response = serving.post(asked, **fields)
    np.testing.assert_array_equal(rows_of(response), key_marker.transform(vectors_of(inputs)))
    assert isinstance(response.json()["data"][0]["embedding"], str) is (encoding == "base64")
    tokens = sum(map(len, inputs))
    assert response.json()["usage"] == {"prompt_tokens": tokens, "total_tokens": tokens}
    assert response.json()["object"] == "list"
    assert response.json()["model"] == MODEL


def test_some_of_them_are_marked_and_some_are_not(serve, key_marker, sentences):
    """Otherwise the equality above would prove nothing."""
    clean = vectors_of(sentences[:200])
    served = rows_of(serve().post(sentences[:200]))
    changed = (served != clean).any(axis=1)
    np.testing.assert_array_equal(changed, np.isin(key_marker.regions(clean), key_marker.key_.mark.regions))
    assert 10 < changed.sum() < 190


def test_the_upstream_is_asked_for_base64_whatever_the_client_wants(serve, upstream):
    serving = serve()
    serving.post("a text", encoding_format="float", user="someone")
    assert upstream.requests == [{"model": MODEL, "input": ["a text"], "encoding_format": "base64", "user": "someone"}]
    assert upstream.headers[0]["authorization"] == "bearer sk-upstream-canary-123456"


@pytest.mark.parametrize("encoding", ["float", "base64"])
@pytest.mark.parametrize("dimensions", [1, 64, WIDTH])
def test_dimensions_are_cut_after_marking_and_stay_on_the_grid(serve, upstream, key_marker, dimensions, encoding):
    served = rows_of(serve().post(TEXTS, dimensions=dimensions, encoding_format=encoding))
    assert served.shape == (len(TEXTS), dimensions)
    assert "dimensions" not in upstream.requests[0]
    assert in_format(served, NumberFormat.float16).all()
    full = key_marker.transform(vectors_of(TEXTS))[:, :dimensions].astype(np.float64)
    full /= np.linalg.norm(full, axis=1, keepdims=True)
    np.testing.assert_allclose(served, full, atol=2.0**-11)
    np.testing.assert_allclose(np.linalg.norm(served, axis=1), 1.0, atol=2e-3)


def test_all_of_2048_inputs_come_back_in_order(serve, key_marker, sentences):
    texts = sentences[:2048]
    np.testing.assert_array_equal(
        rows_of(serve().post(texts, encoding_format="base64")), key_marker.transform(vectors_of(texts))
    )


def test_a_tenant_gets_its_own_mark(serve, key_marker, sentences):
    class Lookup:
        async def find(self, api_key):
            return Tenant(api_key) if api_key in ("acme", "other", "new") else None

        def record(self, tenant, **usage):
            self.usage = (tenant, usage)

        async def close(self):
            pass

    lookup = Lookup()
    serving = serve(lookup=lookup, tenants=["acme", "other"])
    clean = vectors_of(sentences[:100])
    for tenant in ("acme", "other"):
        serving.client.headers["authorization"] = f"Bearer {tenant}"
        np.testing.assert_array_equal(
            rows_of(serving.post(sentences[:100])), key_marker.transform(clean, tenant=tenant)
        )
        assert lookup.usage == (tenant, {"requests": 1, "inputs": 100, "tokens": sum(map(len, sentences[:100]))})
    serving.client.headers["authorization"] = "Bearer new"  # known, but its mark is not in the key: nothing is served
    error_of(serving.post("a text"), 503, "account_not_ready")
    serving.client.headers["authorization"] = "Bearer wrong"
    assert "wrong" not in error_of(serving.post("a text"), 401, "invalid_api_key")["message"]
    del serving.client.headers["authorization"]
    error_of(serving.post("a text"), 401, "invalid_api_key")
    error_of(serving.client.get("/v1/models"), 401, "invalid_api_key")


def test_the_rate_limit_is_told_and_kept(serve):
    class Lookup:
        async def find(self, api_key):
            return Tenant("", requests_per_minute=3)

        def record(self, tenant, **usage):
            pass

        async def close(self):
            pass

    serving = serve(lookup=Lookup())  # asks once by itself
    left = []
    for _ in range(2):
        headers = serving.post("a text").headers
        assert headers["x-ratelimit-limit-requests"] == "3"
        assert headers["x-ratelimit-reset-requests"].endswith("s")
        left.append(headers["x-ratelimit-remaining-requests"])
    assert left == ["1", "0"]
    refused = serving.post("a text")
    error_of(refused, 429, "rate_limit_exceeded")
    assert 0 < int(refused.headers["retry-after-ms"]) <= 20_000
    assert int(refused.headers["retry-after"]) == -(-int(refused.headers["retry-after-ms"]) // 1000)
    assert refused.headers["x-ratelimit-remaining-requests"] == "0"
    assert serving.metric("regionmarker_rejected_total", reason="rate") == 1


@pytest.mark.parametrize(
    ("body", "status", "code", "param"),
    [
        (b"{", 400, "invalid_json", None),
        (b"\xff", 400, "invalid_json", None),
        (b"[]", 400, "invalid_json", None),
        (b'{"input": "a"}', 400, "missing_required_parameter", "model"),
        (b'{"model": "stub-embedding"}', 400, "missing_required_parameter", "input"),
        (b'{"model": "stub-embedding", "input": "a", "modality": "x"}', 400, "unknown_parameter", "modality"),
        (b'{"model": "stub-embedding", "input": ""}', 400, "invalid_value", "input"),
        (b'{"model": "stub-embedding", "input": "a", "dimensions": 257}', 400, "invalid_value", "dimensions"),
        (b'{"model": "another", "input": "a"}', 404, "model_not_found", "model"),
    ],
)
def test_bad_requests_are_told_what_is_wrong(serve, upstream, body, status, code, param):
    serving = serve()
    response = serving.client.post("/v1/embeddings", content=body, headers={"content-type": "application/json"})
    assert error_of(response, status, code)["param"] == param
    assert upstream.requests == []
    assert serving.metric("regionmarker_requests_total", route="/v1/embeddings", code=str(status), tenant="") == 1


def test_bodies_of_the_wrong_kind_or_size(serve):
    serving = serve(body_bytes=2000)
    post = serving.client.post
    error_of(post("/v1/embeddings", data={"input": "a"}), 415)
    gzip = {"content-type": "application/json", "content-encoding": "gzip"}
    error_of(post("/v1/embeddings", content=b"{}", headers=gzip), 415)
    error_of(serving.post("a" * 2000), 413, "request_too_large")
    body = json.dumps({"model": MODEL, "input": "a" * 2000}).encode()
    parts = (body[start : start + 100] for start in range(0, len(body), 100))  # no length is told beforehand
    error_of(post("/v1/embeddings", content=parts, headers={"content-type": "application/json"}), 413)
    parts = (piece for piece in (b'{"model": "stub-embedding", ', b'"input": "a text"}'))
    assert post("/v1/embeddings", content=parts, headers={"content-type": "application/json"}).status_code == 200


def test_every_answer_has_an_id_of_its_own(serve):
    serving = serve()
    ids = {serving.post(text).headers["x-request-id"] for text in ("a", "b", "")}
    assert len(ids) == 3
    assert all(name.startswith("req_") for name in ids)


def test_a_client_that_leaves_stops_the_upstream(serve, upstream):
    import asyncio
    import socket

    async def never(stub, writer, question):
        await asyncio.sleep(3600)

    never.watched = True
    serving = serve()
    upstream.always = never
    body = json.dumps({"model": MODEL, "input": ["a text"]}).encode()
    with socket.create_connection(("127.0.0.1", serving.port)) as client:
        client.sendall(b"POST /v1/embeddings HTTP/1.1\r\nhost: h\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
        eventually(lambda: upstream.requests, "the upstream's request")
        assert upstream.left == 0
    eventually(lambda: upstream.left == 1, "the end of the upstream's request")
    eventually(serving.is_at_rest, "rest")
    eventually(
        lambda: serving.metric("regionmarker_requests_total", route="/v1/embeddings", code="499", tenant="") == 1
    )


def test_a_slow_reader_holds_its_places_until_it_has_read(serve, sentences):
    import socket

    serving = serve()
    body = json.dumps({"model": MODEL, "input": sentences[:2048]}).encode()
    with socket.create_connection(("127.0.0.1", serving.port)) as client:
        client.sendall(b"POST /v1/embeddings HTTP/1.1\r\nhost: h\r\ncontent-length: %d\r\n\r\n" % len(body) + body)
        served = lambda: serving.metric("regionmarker_embeddings_total", tenant="") >= 2048  # noqa: E731
        eventually(served, "the answer")
        assert serving.gateway.admission.in_flight == 2048
        received = 0
        while received < 2_000_000:
            received += len(client.recv(1 << 16))
    eventually(serving.is_at_rest, "rest")
