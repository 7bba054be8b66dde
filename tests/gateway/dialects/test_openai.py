"""Requests: what is understood, what is refused, and what is said about it; answers: what their struct says."""

from __future__ import annotations

import base64
import json

import msgspec
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.gateways import error_of, vectors_of

from regionmarker.gateway.dialects import openai
from regionmarker.gateway.dialects.openai import read_request
from regionmarker.gateway.dialects.vector_formats import quantised
from regionmarker.gateway.errors import ApiError

STEADY = settings(derandomize=True, deadline=None, max_examples=100, suppress_health_check=list(HealthCheck))


def body(**fields) -> bytes:
    return json.dumps({"model": "m", "input": "a text", **fields}).encode()


@pytest.mark.parametrize(
    ("given", "inputs", "in_tokens"),
    [
        ("a", ["a"], False),
        (["a", "b"], ["a", "b"], False),
        ([1, 2, 3], [[1, 2, 3]], True),
        ([[1], [2, 3]], [[1], [2, 3]], True),
        (["a"] * 2048, ["a"] * 2048, False),
        ([5] * 8192, [[5] * 8192], True),
        ([[0] * 1000] * 300, [[0] * 1000] * 300, True),
        ([2**31 - 1], [[2**31 - 1]], True),
    ],
)
def test_four_kinds_of_input_have_one_form(given, inputs, in_tokens):
    question = read_request(body(input=given))
    assert (question.inputs, question.in_tokens, len(question)) == (inputs, in_tokens, len(inputs))


@pytest.mark.parametrize(
    "wrong",
    [
        *("", [], [""], ["a", ""], [[]], [[1], []], ["a", 1], [1, "a"], [[1], 2], [["a"]], [[[1]]], None, 1, 1.5, {}),
        *([1.5], [-1], [True], [2**31], ["a"] * 2049, [[1]] * 2049, [5] * 8193, [[1] * 8193], [[0] * 1001] * 300),
    ],
    ids=lambda wrong: str(wrong)[:20],
)
def test_a_wrong_input_is_refused_by_name(wrong):
    with pytest.raises(ApiError) as refused:
        read_request(body(input=wrong))
    assert (refused.value.status, refused.value.param) == (400, "input")


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("dimensions", wrong) for wrong in (0, -1, 1.5, "64", None, True)),
        *(("encoding_format", wrong) for wrong in ("int8", "", None, 1, "Float")),
        *(("user", wrong) for wrong in (1, None, [])),
        *(("model", wrong) for wrong in (1, None, [])),
    ],
)
def test_a_wrong_field_is_refused_by_name(field, value):
    with pytest.raises(ApiError) as refused:
        read_request(body(**{field: value}))
    assert (refused.value.status, refused.value.param) == (400, field)
    assert "$" not in refused.value.message
    assert "`" not in refused.value.message


def test_an_unknown_field_is_refused_and_not_dropped():
    with pytest.raises(ApiError, match="truncate_prompt_tokens") as refused:
        read_request(body(truncate_prompt_tokens=5))
    assert refused.value.param == "truncate_prompt_tokens"


def test_texts_are_not_repeated_in_complaints():
    with pytest.raises(ApiError) as refused:
        read_request(body(input=["canary", 1], user="canary"))
    assert "canary" not in refused.value.message


@STEADY
@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(raw):
    try:
        read_request(raw)
    except ApiError as failure:
        assert failure.status == 400  # noqa: PT017


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


@STEADY
@given(st.dictionaries(st.sampled_from(["input", "model", "dimensions", "user", "encoding_format", "x"]), json_values))
def test_any_json_is_read_or_refused(fields):
    try:
        question = read_request(json.dumps(fields).encode())
    except ApiError as failure:
        assert failure.status == 400  # noqa: PT017
    else:
        assert 1 <= len(question) <= 2048


@pytest.mark.parametrize("output_type", ["int8", "uint8", "binary", "ubinary"])
@pytest.mark.parametrize("encoding", ["float", "base64"])
def test_other_types_are_quantised_from_the_marked_vectors(serve, key_marker, sentences, encoding, output_type):
    texts = sentences[:60]
    response = serve().post(texts, output_dtype=output_type, encoding_format=encoding)
    kind = np.int8 if output_type in ("int8", "binary") else np.uint8
    found = [item["embedding"] for item in response.json()["data"]]
    if encoding == "base64":
        found = [np.frombuffer(base64.b64decode(one), kind) for one in found]
    marked = key_marker.transform(vectors_of(texts))
    assert (quantised(marked, output_type) != quantised(vectors_of(texts), output_type)).any()
    np.testing.assert_array_equal(found, quantised(marked, output_type))


def test_bits_need_whole_bytes(serve, upstream):
    serving = serve()
    response = serving.post("a text", output_dtype="binary", dimensions=12)
    assert error_of(response, 400, "invalid_value")["param"] == "output_dtype"
    assert upstream.requests == []


@pytest.mark.parametrize("encoding", ["float", "base64"])
@pytest.mark.parametrize("count", [1, 2, 300])
def test_answers_are_what_their_struct_says(encoding, count):
    """The OpenAPI document is made from the struct, the answer is written without it."""
    request = openai.read_request(body(encoding_format=encoding))
    rows = np.random.default_rng(count).standard_normal((count, 5)).astype(np.float32)
    parts = openai.answer(request, request.formats[0].encode(rows), 7)
    answer = msgspec.json.decode(b"".join(parts), type=openai.Answer)
    assert (answer.model, answer.usage) == ("m", openai.Usage(7, 7))
    assert [item.index for item in answer.data] == list(range(count))
    for item, row in zip(answer.data, rows, strict=True):
        found = np.frombuffer(base64.b64decode(item.embedding), "<f4") if encoding == "base64" else item.embedding
        np.testing.assert_array_equal(np.float32(found), row)
