"""An encoder inside the gateway's own process."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.support.gateways import error_of, rows_of

from regionmarker import load_encoder
from regionmarker.errors import InputError, OutsideError
from regionmarker.gateway.settings import Settings
from regionmarker.gateway.upstreams import load_upstream
from regionmarker.gateway.upstreams.encoder import EncoderUpstream

KEY = Path("no file: the key is given")


def test_the_embedded_encoder_is_served_marked(serve, key_marker, sentences, embeddings):
    serving = serve(source=load_upstream(Settings(KEY)))
    response = serving.post(sentences[:200], model="wordllama")
    np.testing.assert_array_equal(rows_of(response), key_marker.transform(embeddings[:200]))
    assert response.json()["usage"]["prompt_tokens"] == sum(len(text.split()) for text in sentences[:200])
    assert serving.client.get("/readyz").status_code == 200


def test_what_an_encoder_cannot_embed_is_the_clients_mistake(serve, upstream):
    serving = serve(source=load_upstream(Settings(KEY)))
    assert error_of(serving.post(["a", "  "], model="wordllama"), 400)["param"] == "input"
    assert error_of(serving.post([1, 2], model="wordllama"), 400)["param"] == "input"


class Encoder:
    name = "mine"

    def __init__(self, answer):
        self.answer = answer
        self.asked = 0

    def encode(self, texts):
        self.asked += 1
        if self.asked == 1:  # the gateway loads it before it serves
            return np.eye(256, dtype=np.float32)[:1]
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    ("answer", "status", "code"),
    [
        (OutsideError("its server is down at http://secret"), 502, "upstream_error"),
        (np.eye(128, dtype=np.float32)[:1], 502, "upstream_invalid_response"),
        (np.full((1, 256), np.nan, dtype=np.float32), 502, "upstream_invalid_response"),
        (np.eye(256, dtype=np.float32)[:2], 502, "upstream_invalid_response"),
        (RuntimeError("a bug"), 500, "internal_error"),
    ],
    ids=["outside", "width", "nan", "count", "bug"],
)
def test_a_failing_encoder_is_an_error(serve, answer, status, code):
    serving = serve(source=EncoderUpstream(Encoder(answer)))
    response = serving.post("a", model="mine")
    error_of(response, status, code)
    assert "secret" not in response.text


def test_an_encoder_may_count_its_own_tokens(serve):
    class Counting(Encoder):
        def count_tokens(self, texts):
            return 42

    serving = serve(source=EncoderUpstream(Counting(np.eye(256, dtype=np.float32)[:1])))
    assert serving.post("a", model="mine").json()["usage"]["total_tokens"] == 42


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("https://127.0.0.1/v1", "MODEL"),
        ("tei:http://127.0.0.1", "URL#MODEL"),
        ("vllm:ftp://127.0.0.1#m", "http"),
        ("openai:http://user:password@127.0.0.1/v1#m", "password"),
        ("word2vec", "unknown encoder"),
    ],
)
def test_a_bad_spec_is_explained(spec, message):
    with pytest.raises(InputError, match=message) as refused:
        load_upstream(Settings(KEY, upstream=spec))
    assert "user:" not in str(refused.value)


def test_any_encoder_object_will_do():
    assert EncoderUpstream(load_encoder("wordllama")).model == "wordllama"


@pytest.mark.parametrize("number", [2**63, -1, np.int64(7)])
def test_one_number_of_an_encoder_does_not_end_accounting(serve, wordllama, number):
    class Counting:
        name = "mine"
        encode = staticmethod(wordllama.encode)

        def count_tokens(self, texts):
            return number

    serving = serve(source=EncoderUpstream(Counting()))
    expected = 7 if number == 7 else 0
    assert serving.post("a text", model="mine").json()["usage"]["prompt_tokens"] == expected
