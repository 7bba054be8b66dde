"""Ollama's ``/api/embed``: one text or several in, vectors out.

``keep_alive`` is taken and means nothing here: whether a model stays loaded is the upstream's affair. ``options`` and
``truncate: false`` change vectors or promise an error, so they are refused: nobody here could keep that.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import msgspec
import orjson
from msgspec import Meta

from regionmarker.gateway.dialects import EmbeddingRequest
from regionmarker.gateway.dialects.decoding import check_inputs, decode_body
from regionmarker.gateway.dialects.vector_formats import VECTOR_FORMATS, EncodedVector
from regionmarker.gateway.errors import ApiError, bad_request
from regionmarker.gateway.settings import MOST_INPUTS

route = "/api/embed"
name = "ollamaEmbed"

_NUMBERS = (VECTOR_FORMATS["float", False],)
_Text = Annotated[str, Meta(min_length=1)]


class OllamaRequest(msgspec.Struct, forbid_unknown_fields=True):
    """What to embed."""

    model: str
    input: str | list[str]
    truncate: bool | None = None
    dimensions: Annotated[int, Meta(ge=1)] | None = None
    keep_alive: str | float | None = None
    options: dict[str, msgspec.Raw] | None = None


class OllamaAnswer(msgspec.Struct, forbid_unknown_fields=True):
    """One vector per input, in the order of the inputs."""

    model: str
    embeddings: Annotated[list[list[float]], Meta(min_length=1)]
    prompt_eval_count: Annotated[int, Meta(ge=0)]


class OllamaError(msgspec.Struct, forbid_unknown_fields=True):
    """The body of every answer but 200."""

    error: str


structs: Sequence[type] = (OllamaAnswer, OllamaError)
_decoder = msgspec.json.Decoder(OllamaRequest)


def request_schema(models: Sequence[str], width: int) -> dict[str, Any]:
    """Return the JSON schema of a request's body.

    Examples
    --------
    >>> request_schema(["m"], 256)["properties"]["options"]
    {'type': ['object', 'null'], 'maxProperties': 0}
    """
    texts = Annotated[list[_Text], Meta(min_length=1, max_length=MOST_INPUTS)]
    return {
        "title": "OllamaRequest",
        "description": "What to embed.",
        "type": "object",
        "properties": {
            "model": {"enum": list(models)},
            "input": {"oneOf": [msgspec.json.schema(_Text), msgspec.json.schema(texts)]},
            "truncate": {"enum": [True, None]},
            "dimensions": {"type": ["integer", "null"], "minimum": 1, "maximum": width},
            "keep_alive": {"type": ["string", "number", "null"]},
            "options": {"type": ["object", "null"], "maxProperties": 0},
        },
        "required": ["model", "input"],
        "additionalProperties": False,
    }


def read_request(body: bytes | bytearray) -> EmbeddingRequest:
    """Read and check a request's body.

    Examples
    --------
    >>> read_request(b'{"model": "m", "input": "a text", "keep_alive": "5m"}').inputs
    ['a text']
    >>> read_request(b'{"model": "m", "input": "a text", "options": {"num_ctx": 512}}')
    Traceback (most recent call last):
    ...
    regionmarker.gateway.errors.ApiError: 'options' must be empty: options of the model are the upstream's affair
    """
    asked = decode_body(_decoder, body)
    inputs = [asked.input] if isinstance(asked.input, str) else asked.input
    check_inputs(inputs)
    if asked.options:
        raise bad_request("'options' must be empty: options of the model are the upstream's affair", "options")
    if asked.truncate is False:
        raise bad_request("'truncate' must be true: what becomes of long texts is the upstream's affair", "truncate")
    return EmbeddingRequest(inputs, False, asked.model, _NUMBERS, asked.dimensions)


def answer(request: EmbeddingRequest, vectors: Sequence[EncodedVector], tokens: int) -> list[EncodedVector]:
    """Return the body in parts, to be joined or sent one after the other.

    Examples
    --------
    >>> request = read_request(b'{"model": "m", "input": ["a", "b"]}')
    >>> print(b"".join(answer(request, [b"[1.0]", b"[2.0]"], 3)).decode())
    {"model":"m","embeddings":[[1.0],[2.0]],"prompt_eval_count":3}
    """
    parts: list[EncodedVector] = [b'{"model":%b,"embeddings":[' % orjson.dumps(request.model)]
    for row, vector in enumerate(vectors):
        parts += (b",", vector) if row else (vector,)
    parts.append(b'],"prompt_eval_count":%d}' % tokens)
    return parts


def error_body(error: ApiError) -> bytes:
    """Return an error's body.

    Examples
    --------
    >>> print(error_body(bad_request("'input' must not be empty", "input")).decode())
    {"error":"'input' must not be empty"}
    """
    return msgspec.json.encode(OllamaError(error.message))
