"""Ollama's requests, answers and errors, over a real socket."""

from __future__ import annotations

import msgspec
import numpy as np
import pytest
from tests.support.gateways import MODEL, WIDTH, vectors_of

from regionmarker.gateway.dialects.ollama import OllamaAnswer, OllamaError, read_request

TEXTS = ["a first text", "a second one", "und ein dritter"]


@pytest.fixture(scope="module")
def serving(module_serving):
    return module_serving()[0]


def ask(serving, **fields):
    return serving.client.post("/api/embed", json={"model": MODEL, "input": TEXTS, **fields})


@pytest.mark.parametrize("one", [False, True], ids=["texts", "text"])
def test_the_vectors_are_the_marked_ones(serving, key_marker, sentences, one):
    clean = vectors_of(sentences[:60])
    changed = np.flatnonzero((key_marker.transform(clean) != clean).any(axis=1))
    assert len(changed)  # otherwise the equality below would prove nothing
    given = sentences[changed[0]] if one else sentences[:60]
    response = ask(serving, input=given, keep_alive="5m", truncate=True, options={})
    assert response.status_code == 200
    answer = msgspec.json.decode(response.content, type=OllamaAnswer)
    listed = [given] if isinstance(given, str) else given
    np.testing.assert_array_equal(np.float32(answer.embeddings), key_marker.transform(vectors_of(listed)))
    assert (answer.model, answer.prompt_eval_count) == (MODEL, sum(map(len, listed)))


def test_dimensions_are_cut_after_marking(serving):
    assert np.shape(ask(serving, dimensions=16).json()["embeddings"]) == (3, 16)


@pytest.mark.parametrize(
    ("fields", "status", "said"),
    [
        ({"input": ""}, 400, "'input[0]' must not be empty"),
        ({"input": []}, 400, "'input' must not be empty"),
        ({"input": [1]}, 400, "'input' cannot be used"),
        ({"input": {"canary": 1}}, 400, "'input' cannot be used"),
        ({"options": {"canary": 1}}, 400, "'options' must be empty"),
        ({"truncate": False}, 400, "'truncate' must be true"),
        ({"prompt": "canary"}, 400, "unrecognised request argument supplied: prompt"),
        ({"dimensions": WIDTH + 1}, 400, f"'dimensions' must be at most {WIDTH}"),
        ({"model": "another"}, 404, "the model does not exist here"),
    ],
)
def test_errors_have_ollamas_shape(serving, fields, status, said):
    response = ask(serving, **fields)
    assert response.status_code == status
    message = msgspec.json.decode(response.content, type=OllamaError).error
    assert said in message
    assert "canary" not in message


def test_other_methods_have_the_same_shape(serving):
    assert list(serving.client.get("/api/embed").json()) == ["error"]


def test_a_single_text_is_one_input():
    assert read_request(b'{"model": "m", "input": "a"}').inputs == ["a"]
