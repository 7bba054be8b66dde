"""When an upstream is asked again, and when not."""

from __future__ import annotations

import json

import numpy as np
from tests.support.gateways import error_of, rows_of, vectors_of

TEXTS = ["the first", "the second", "the third"]


def says(status: int, body: bytes, **headers: str):
    """A reply with any status and body."""

    async def reply(stub, writer, question):
        stub.write(writer, status, body, **headers)

    return reply


async def cut(stub, writer, question):
    body = json.dumps(stub.answer(question)).encode()
    stub.write(writer, 200, body[: len(body) // 2], content_length=str(len(body)))
    await writer.drain()
    writer.close()


cut.watched = True


def test_one_failure_is_mended_by_asking_again(serve, upstream, key_marker):
    serving = serve()
    upstream.script = [says(503, b"", retry_after_ms="1"), cut]
    np.testing.assert_array_equal(rows_of(serving.post(TEXTS)), key_marker.transform(vectors_of(TEXTS)))
    assert len(upstream.requests) == 3
    assert serving.metric("regionmarker_upstream_retries_total") == 2


def test_retries_stop_when_the_budget_is_spent(serve, upstream):
    serving = serve(attempts=3)
    upstream.always = says(500, b"")
    for _ in range(15):
        error_of(serving.post("a text"), 502)
    assert serving.metric("regionmarker_upstream_retries_total") == 20  # not 30
    assert len(upstream.requests) == 15 + 20
