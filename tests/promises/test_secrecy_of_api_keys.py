"""The API key goes into one header; the texts go into the body; neither goes anywhere else."""

from __future__ import annotations

import copy
import logging
import pickle
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from regionmarker.encoders import CachedEncoder
from regionmarker.encoders.openai import OpenAIEncoder
from regionmarker.errors import InputError, OutsideError

pytestmark = pytest.mark.usefixtures("no_key_of_the_developer")

Remote = Callable[..., OpenAIEncoder]


def test_the_key_goes_into_the_header_and_nowhere_else(
    server: Any, remote: Remote, api_key: str, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    caplog.set_level(logging.DEBUG)
    secret = "the patient Ann Miller has a rare disease"
    encoder = remote(attempts=2)
    cached = CachedEncoder(encoder, tmp_path / "c.sqlite")
    leaks = [
        repr(encoder),
        str(encoder),
        repr(cached),
        encoder.name,
        repr(vars(encoder)),
        f"{encoder._server._client.auth!r}",
    ]
    echo = f"bad request: header Bearer {api_key} with input {secret}"
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
    assert [leak for leak in leaks if api_key in leak or "Ann Miller" in leak] == []


@pytest.mark.parametrize("failure", ["refusal", "hang up", "garbage", "slow"])
def test_a_traceback_with_locals_shows_no_key(server: Any, remote: Remote, api_key: str, failure: str) -> None:
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
                assert api_key not in repr(frame.f_locals)
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
            copier(encoder._server.key)
    for copier in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError):
            copier(encoder)
