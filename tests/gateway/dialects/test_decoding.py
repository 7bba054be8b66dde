"""Complaints name fields and types, never what a client sent."""

from __future__ import annotations

from typing import Literal

import msgspec
import pytest

from regionmarker.gateway.dialects import cohere, decoding, openai
from regionmarker.gateway.dialects.decoding import check_inputs, decode_body
from regionmarker.gateway.errors import ApiError


class Request(msgspec.Struct, forbid_unknown_fields=True):
    kind: Literal["one", "two"]
    size: int = 0


@pytest.mark.parametrize(
    ("body", "code", "said"),
    [
        (b"{", "invalid_json", "not valid JSON"),
        (b"\xff", "invalid_json", "not valid JSON"),
        (b"[]", "invalid_json", "must be a JSON object"),
        (b"{}", "missing_required_parameter", "'kind'"),
        (b'{"kind": "one", "x": 1}', "unknown_parameter", "x"),
        (b'{"kind": "canary"}', "invalid_value", "'kind' must be 'one' or 'two'"),
        (b'{"kind": "one", "size": "canary"}', "invalid_type", "'size' cannot be used: expected 'int', got 'str'"),
    ],
)
def test_complaints(body, code, said):
    with pytest.raises(ApiError) as refused:
        decode_body(msgspec.json.Decoder(Request), body, {"kind": ("one", "two")})
    assert (refused.value.status, refused.value.code) == (400, code)
    assert said in refused.value.message
    assert "canary" not in refused.value.message


def test_a_choice_that_nobody_listed_is_not_repeated_either():
    with pytest.raises(ApiError) as refused:
        decode_body(msgspec.json.Decoder(Request), b'{"kind": "canary"}')
    assert "canary" not in refused.value.message


@pytest.mark.parametrize("inputs", [[], [""], ["a"] * 2049])
def test_wrong_inputs(inputs):
    with pytest.raises(ApiError) as refused:
        check_inputs(inputs, "texts")
    assert refused.value.param == "texts"


def test_no_seconds_of_work_in_the_event_loop_for_a_long_complaint(monkeypatch):
    """The decoder quotes and repeats a word of 15 MB, and three patterns then looked through it: 0.1 s."""
    seen = []
    explain = decoding._explain
    monkeypatch.setattr(decoding, "_explain", lambda told, choices: (seen.append(len(told)), explain(told, choices))[1])
    word = b"int8" * (1 << 20)
    for read, texts, field in (
        (openai.read_request, b"input", b"output_dtype"),
        (cohere.read_request, b"texts", b"input_type"),
        (cohere.read_request, b"texts", b"truncate"),
    ):
        for value in (b'"%b"' % word, b"[" * 100_000):
            body = b'{"model": "m", "%b": ["a"], "%b": %b}' % (texts, field, value)
            with pytest.raises(ApiError, match=rf"'{field.decode()}' must be '|not valid JSON"):
                read(body)
    assert seen == []  # the decoder never saw it
    for name in (word, b"at `$.model`" * (1 << 17)):
        with pytest.raises(ApiError, match="unrecognised request argument supplied: "):
            openai.read_request(b'{"model": "m", "input": "a", "%b": 1}' % name)
    assert 0 < max(seen) <= 1024
