"""Cohere's requests, answers and errors, over a real socket: the same marked vectors, in every type."""

from __future__ import annotations

import base64
import json

import msgspec
import numpy as np
import pytest
from tests.support.gateways import MODEL, WIDTH, vectors_of

from regionmarker.gateway.dialects.cohere import CohereAnswer, CohereError, answer, read_request
from regionmarker.gateway.dialects.vector_formats import encoder_of, quantised
from regionmarker.gateway.errors import ApiError
from regionmarker.gateway.tenants import OpenLookup, Tenant

TEXTS = ["a first text", "a second one", "und ein dritter"]
TYPES = ["float", "int8", "uint8", "binary", "ubinary", "base64"]


@pytest.fixture(scope="module")
def serving(module_serving):
    return module_serving()[0]


def ask(serving, **fields):
    return serving.client.post("/v2/embed", json={"model": MODEL, "texts": TEXTS, **fields})


def test_every_type_is_quantised_from_the_marked_vectors(serving, key_marker, sentences):
    texts = sentences[:60]
    response = ask(serving, texts=texts, embedding_types=TYPES, input_type="search_document")
    assert response.status_code == 200
    answer = msgspec.json.decode(response.content, type=CohereAnswer)
    marked = key_marker.transform(vectors_of(texts))
    assert (marked != vectors_of(texts)).any()
    np.testing.assert_array_equal(np.float32(answer.embeddings.float), marked)
    decoded = [np.frombuffer(base64.b64decode(code), "<f4") for code in answer.embeddings.base64]
    np.testing.assert_array_equal(decoded, marked)
    for kind in TYPES[1:5]:
        np.testing.assert_array_equal(getattr(answer.embeddings, kind), quantised(marked, kind))
    assert answer.texts == texts
    assert answer.meta.billed_units.input_tokens == sum(map(len, texts))


def test_numbers_are_the_default_and_dimensions_are_cut_after_marking(serving):
    assert list(ask(serving).json()["embeddings"]) == ["float"]
    cut = np.float32(ask(serving, output_dimension=64).json()["embeddings"]["float"])
    assert cut.shape == (3, 64)
    np.testing.assert_allclose(np.linalg.norm(cut, axis=1), 1.0, atol=2e-3)


@pytest.mark.parametrize(
    ("fields", "status", "said"),
    [
        ({"texts": []}, 400, "'texts' must not be empty"),
        ({"texts": ["a", ""]}, 400, "'texts[1]' must not be empty"),
        ({"texts": "a"}, 400, "'texts' cannot be used: expected 'array', got 'str'"),
        ({"texts": [["canary"]]}, 400, "'texts' cannot be used: expected 'str', got 'array'"),
        ({"embedding_types": []}, 400, "'embedding_types' must not be empty"),
        ({"embedding_types": ["canary"]}, 400, "'embedding_types' must be 'float', 'int8'"),
        ({"input_type": "canary"}, 400, "'input_type' must be 'search_document'"),
        ({"truncate": "NONE"}, 400, "'truncate' must be 'END'"),
        ({"images": ["canary"]}, 400, "unrecognised request argument supplied: images"),
        ({"output_dimension": WIDTH + 1}, 400, f"'output_dimension' must be at most {WIDTH}"),
        ({"output_dimension": 12, "embedding_types": ["binary"]}, 400, "'embedding_types' binary and ubinary need"),
        ({"model": "another"}, 404, "the model does not exist here"),
    ],
)
def test_errors_have_coheres_shape_and_names(serving, fields, status, said):
    response = ask(serving, **fields)
    assert response.status_code == status
    message = msgspec.json.decode(response.content, type=CohereError).message
    assert said in message
    assert "canary" not in message


def test_other_methods_and_wrong_keys_have_the_same_shape(serving, serve):
    assert list(serving.client.get("/v2/embed").json()) == ["message"]

    class Lookup(OpenLookup):
        async def find(self, api_key):
            return Tenant("", requests_per_minute=1) if api_key == "k" else None

    other = serve(lookup=Lookup())  # asks once by itself
    refused = ask(other)
    assert (refused.status_code, list(refused.json())) == (429, ["message"])
    assert "retry-after" in refused.headers
    other.client.headers["authorization"] = "Bearer wrong"
    assert (ask(other).status_code, list(ask(other).json())) == (401, ["message"])


def test_types_are_asked_for_once():
    assert len(read_request(b'{"model":"m","texts":["a"],"embedding_types":["int8","int8"]}').formats) == 1


@pytest.mark.parametrize(
    "raw", [b"", b"\0", b"[" * 9999, b'{"texts":' * 999, b'{"texts":["\\ud800"],"model":"m"}', b"nul"]
)
def test_hostile_bytes_are_refused(raw):
    try:
        read_request(raw)
    except ApiError as failure:
        assert failure.status == 400  # noqa: PT017
    else:
        assert raw.startswith(b'{"texts":["')


def test_no_seconds_of_work_in_the_event_loop_for_an_answer_in_six_types():
    """80 MB in six types were taken apart by copying: 0.1 s in which nobody else was served."""
    request = read_request(json.dumps({"model": "m", "texts": ["a", "b"], "embedding_types": TYPES}).encode())
    vectors = encoder_of(request.formats)(np.float32([[1.0] + [0.0] * 15] * 2))
    parts = answer(request, vectors, 3)
    views = [part for part in parts if isinstance(part, memoryview)]
    assert len(views) == len(TYPES) * len(vectors)
    assert {id(view.obj) for view in views} == {id(vector) for vector in vectors}
    json.loads(b"".join(parts))
