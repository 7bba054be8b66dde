"""API keys, texts and key material are in no log, no error and no metric, whatever goes wrong."""

from __future__ import annotations

import asyncio
import json
import logging
from pathlib import Path

import pytest
from tests.support.gateways import WIDTH

API_KEY = "sk-canary-client-0f1e2d3c4b5a"

TEXT = "canary text that nobody may see 8c7b6a59"

USER = "canary-user-55aa"


def says(status: int, body: bytes):
    async def reply(stub, writer, question):
        stub.write(writer, status, body)

    return reply


async def echo(stub, writer, question):
    """An upstream that repeats everything in its complaint."""
    complaint = f"bad: {json.dumps(question)} with {stub.headers[-1]}"
    stub.write(writer, 400, json.dumps({"error": {"message": complaint}}).encode())


async def vanish(stub, writer, question):
    writer.transport.abort()


async def not_finite(stub, writer, question):
    answer = stub.answer({**question, "encoding_format": "float"})
    answer["data"][0]["embedding"][0] = 1e300
    stub.write(writer, 200, json.dumps(answer).encode())


@pytest.mark.parametrize(
    "fault", [None, echo, vanish, not_finite, says(500, TEXT.encode()), says(200, TEXT.encode())],
    ids=["none", "echo", "vanish", "not finite", "500", "garbage"],
)  # fmt: skip
def test_no_canary_is_found(serve, upstream, log, caplog, key_marker, fault):
    caplog.set_level(logging.DEBUG)
    serving = serve(attempts=2)
    upstream.always = fault
    serving.client.headers["authorization"] = f"Bearer {API_KEY}"
    answers = [
        serving.post([TEXT], user=USER),
        serving.post([TEXT, 1], user=USER),
        serving.post(TEXT, model=USER),
        serving.post(TEXT, encoding_format=5),
        serving.client.post(f"/v1/{API_KEY}", content=TEXT),
        serving.client.get("/metrics"),
        serving.client.get("/openapi.json"),
    ]
    heard = [record.getMessage() for record in caplog.records if not record.name.startswith(("httpx2", "httpcore2"))]
    seen = log.getvalue() + "".join(heard) + "".join(answer.text + str(answer.headers) for answer in answers)
    for secret in (API_KEY, TEXT, USER, "sk-upstream-canary-123456", key_marker.key_.master.reveal().hex()):
        assert secret not in seen
        assert secret[-12:] not in seen
    assert '"event":"answered"' in log.getvalue()


def test_a_bug_tells_the_client_nothing_and_the_log_where_it_is(serve, log):
    class Buggy:
        name, model, takes_tokens = "buggy", "stub-embedding", True

        async def start(self):
            pass

        async def is_there(self):
            return True

        async def embed(self, question, width, take):
            raise KeyError(f"cannot embed {question.inputs}")

        async def close(self):
            pass

    serving = serve(source=Buggy())
    response = serving.post(TEXT)
    assert response.status_code == 500
    assert response.json()["error"]["code"] == "internal_error"
    assert "canary" not in response.text + log.getvalue()
    assert "KeyError at " in log.getvalue()
    assert "embed:" in log.getvalue()


def test_metrics_tell_nothing_of_regions(serve, sentences):
    """Many texts, marked or not, differ in no metric but their number."""
    serving = serve()
    serving.post(sentences[:200])
    text = serving.client.get("/metrics").text
    names = {line.split("{")[0].split(" ")[0] for line in text.splitlines() if not line.startswith("#")}
    assert serving.metric("regionmarker_serving_unmarked") == 0
    names.remove("regionmarker_serving_unmarked")  # what the operator has set: the same for every row
    assert not [name for name in names if "region" in name.removeprefix("regionmarker") or "marked" in name]
    assert serving.metric("regionmarker_key_info", key_id=serving.gateway.served_key.current().key_id, version="1") == 1


def test_a_repr_of_the_settings_hides_the_token():
    from regionmarker.gateway.settings import Settings

    assert API_KEY not in repr(Settings(Path("key"), admin_token=API_KEY, upstream_key=API_KEY, passphrase=API_KEY))


def test_the_width_of_the_tests_is_the_keys(key_marker):
    assert key_marker.n_features_in_ == WIDTH


def test_nothing_is_left_of_a_request_that_vanished(serve, upstream):
    """The task that served it is gone, and with it the texts."""
    serving = serve(attempts=1)
    upstream.always = vanish
    serving.post(TEXT)

    async def texts() -> list[str]:
        return [repr(task.get_stack()) for task in asyncio.all_tasks()]

    assert not [one for one in serving.call(texts()) if "reception" in one]
