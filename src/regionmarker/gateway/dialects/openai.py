"""OpenAI's embeddings API: its requests read and checked, its answers written, exactly as OpenAI has them.

``[1, 2, 3]`` is one document in tokens, ``["a", "b"]`` are two in words, ``[[1], [2]]`` two in tokens; a mixed list is
an error, and so is a field that nobody knows: dropping it in silence would be worse.

Vectors are answered as shortest float32 numbers or as base64 of little-endian float32. They are encoded row by row as
they are marked, so that a large answer is ready as soon as its last row has come: nothing is ever held twice.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any, Literal

import msgspec
import orjson
from msgspec import Meta

from regionmarker.gateway.dialects import EmbeddingRequest
from regionmarker.gateway.dialects.decoding import check_inputs, decode_body
from regionmarker.gateway.dialects.vector_formats import OUTPUT_TYPES, VECTOR_FORMATS, EncodedVector, OutputType
from regionmarker.gateway.errors import ApiError, Error, bad_request
from regionmarker.gateway.settings import (
    EMBEDDINGS_ROUTE,
    MOST_INPUTS,
    MOST_TOKENS,
    MOST_TOKENS_IN_ALL,
    MOST_USER_LETTERS,
)

route = EMBEDDINGS_ROUTE
name = "createEmbedding"

Token = Annotated[int, Meta(ge=0, le=2**31 - 1)]
Count = Annotated[int, Meta(ge=0)]
_CHOICES = {"encoding_format": ("float", "base64"), "output_dtype": OUTPUT_TYPES}

# ---- the bodies, for the decoder and for the OpenAPI document, whose descriptions their docstrings are


class Request(msgspec.Struct, forbid_unknown_fields=True):
    """What to embed."""

    input: str | list[str | Token | list[Token]]  # which of them may stand together is checked once it is read
    model: str
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: Annotated[int, Meta(ge=1)] | msgspec.UnsetType = msgspec.UNSET
    user: Annotated[str, Meta(max_length=MOST_USER_LETTERS)] | msgspec.UnsetType = msgspec.UNSET
    output_dtype: OutputType = "float"  # as Mistral and Voyage have it


class Embedding(msgspec.Struct, forbid_unknown_fields=True):
    """One vector."""

    object: Literal["embedding"]
    index: Count
    embedding: (
        Annotated[list[float], Meta(min_length=1)]
        | Annotated[str, Meta(description="base64 of little-endian float32, or of the bytes of another output_dtype")]
    )


class Usage(msgspec.Struct, forbid_unknown_fields=True):
    """What the answer cost."""

    prompt_tokens: Count
    total_tokens: Count


class Answer(msgspec.Struct, forbid_unknown_fields=True):
    """One vector per input, in the order of the inputs."""

    object: Literal["list"]
    data: Annotated[list[Embedding], Meta(min_length=1)]
    model: str
    usage: Usage


class Model(msgspec.Struct, forbid_unknown_fields=True):
    """One model."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class Models(msgspec.Struct, forbid_unknown_fields=True):
    """All models."""

    object: Literal["list"]
    data: list[Model]


structs: Sequence[type] = (Answer, Error, Model, Models)
_Text = Annotated[str, Meta(min_length=1)]
_Tokens = Annotated[list[Token], Meta(min_length=1, max_length=MOST_TOKENS)]
_INPUTS = (
    _Text,
    Annotated[list[_Text], Meta(min_length=1, max_length=MOST_INPUTS)],
    _Tokens,
    Annotated[list[_Tokens], Meta(min_length=1, max_length=MOST_INPUTS)],
)
_decoder = msgspec.json.Decoder(Request)


def request_schema(models: Sequence[str], width: int) -> dict[str, Any]:
    """Return the JSON schema of a request's body: the decoder's, and what is checked besides.

    Examples
    --------
    >>> request_schema(["m"], 256)["properties"]["dimensions"]
    {'type': 'integer', 'minimum': 1, 'maximum': 256}
    """
    _, components = msgspec.json.schema_components([Request])
    schema: dict[str, Any] = components["Request"]
    properties = schema["properties"]
    properties["input"] = {
        "description": "One text, several texts, one text in tokens, or several texts in tokens.",
        "oneOf": [msgspec.json.schema(form) for form in _INPUTS],
    }
    properties["model"] = {"enum": list(models)}
    properties["dimensions"]["maximum"] = width
    return schema


# ---- requests


def read_request(body: bytes | bytearray) -> EmbeddingRequest:
    """Read and check a request's body.

    Examples
    --------
    >>> request = read_request(b'{"model": "m", "input": [1, 2, 3]}')
    >>> request.inputs, request.in_tokens
    ([[1, 2, 3]], True)
    >>> read_request(b'{"model": "m", "input": ["a", 1]}')
    Traceback (most recent call last):
    ...
    regionmarker.gateway.errors.ApiError: 'input' must be a string, or a list of strings, tokens or ...
    """
    asked = decode_body(_decoder, body, _CHOICES)
    inputs, in_tokens = _inputs(asked.input)
    return EmbeddingRequest(
        inputs=inputs,
        in_tokens=in_tokens,
        model=asked.model,
        formats=(VECTOR_FORMATS[asked.output_dtype, asked.encoding_format == "base64"],),
        dimensions=None if asked.dimensions is msgspec.UNSET else asked.dimensions,
        user=None if asked.user is msgspec.UNSET else asked.user,
    )


def _inputs(given: str | list[str | int | list[int]]) -> tuple[list[str] | list[list[int]], bool]:
    """Return the inputs as a list of texts or a list of token lists, and which of the two."""
    if isinstance(given, str):
        given = [given]
    kinds = set(map(type, given))
    if len(kinds) > 1:
        raise bad_request(
            "'input' must be a string, or a list of strings, tokens or lists of tokens; it mixes them", "input"
        )
    if kinds == {int}:
        given = [given]  # type: ignore[list-item]
    check_inputs(given)
    if kinds == {str}:
        return given, False  # type: ignore[return-value]
    _check_tokens(given)  # type: ignore[arg-type]
    return given, True  # type: ignore[return-value]


def _check_tokens(inputs: list[list[int]]) -> None:
    lengths = [len(tokens) for tokens in inputs]
    longest = max(lengths)
    if longest > MOST_TOKENS:
        where = lengths.index(longest)
        raise bad_request(f"'input[{where}]' must have at most {MOST_TOKENS} tokens, but has {longest}", "input")
    if sum(lengths) > MOST_TOKENS_IN_ALL:
        raise bad_request(
            f"'input' must have at most {MOST_TOKENS_IN_ALL} tokens in all, but has {sum(lengths)}", "input"
        )


# ---- answers


def answer(request: EmbeddingRequest, vectors: Sequence[EncodedVector], tokens: int) -> list[EncodedVector]:
    """Return the body in parts, to be joined or sent one after the other.

    Examples
    --------
    >>> request = read_request(b'{"model": "m", "input": "a text"}')
    >>> print(b"".join(answer(request, [b"[1.0]"], 3)).decode())
    {"object":"list","data":[{"object":"embedding","index":0,"embedding":[1.0]}],"model":"m","usage":{"prompt_tokens":3,...
    """
    quote = request.formats[0].quote
    befores = _befores(len(vectors).bit_length(), quote)
    parts: list[EncodedVector] = [part for pair in zip(befores, vectors, strict=False) for part in pair]
    end = b'%b}],"model":%b,"usage":{"prompt_tokens":%d,"total_tokens":%d}}'
    parts.append(end % (quote, orjson.dumps(request.model), tokens, tokens))
    return parts


def error_body(error: ApiError) -> bytes:
    """Return an error's body."""
    return error.body()


@cache
def _befores(magnitude: int, quote: bytes) -> list[bytes]:
    """Return what stands before each of 2 ** magnitude vectors."""
    begin = b'{"object":"list","data":[{"object":"embedding","index":0,"embedding":' + quote
    middle = quote + b'},{"object":"embedding","index":%d,"embedding":' + quote
    return [begin, *(middle % index for index in range(1, 1 << magnitude))]
