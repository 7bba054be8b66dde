"""OpenAI's embeddings API: its requests read and checked, its answers written, exactly as OpenAI has them.

``[1, 2, 3]`` is one document in tokens, ``["a", "b"]`` are two in words, ``[[1], [2]]`` two in tokens; a mixed list is
an error, and so is a field that nobody knows: dropping it in silence would be worse.

Vectors are answered as shortest float32 numbers or as base64 of little-endian float32. They are encoded row by row as
they are marked, so that a large answer is ready as soon as its last row has come: nothing is ever held twice.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Annotated, Any, Literal

import msgspec
import numpy as np
import orjson
import pybase64
from msgspec import Meta

from regionmarker.gateway.dialects import EmbeddingRequest, EncodedVector, VectorFormat
from regionmarker.gateway.errors import ApiError, bad_request
from regionmarker.gateway.settings import (
    EMBEDDINGS_ROUTE,
    MOST_INPUTS,
    MOST_TOKENS,
    MOST_TOKENS_IN_ALL,
    MOST_USER_LETTERS,
)
from regionmarker.vectors import Floats

route = EMBEDDINGS_ROUTE

Token = Annotated[int, Meta(ge=0, le=2**31 - 1)]
Count = Annotated[int, Meta(ge=0)]
_PARAM = re.compile(r"at `\$\.?(\w+)")
_UNKNOWN = re.compile(r"unknown field `(.*)`", re.DOTALL)
_MISSING = re.compile(r"missing required field `(\w+)`")

# ---- the bodies, for the decoder and for the OpenAPI document, whose descriptions their docstrings are


class Request(msgspec.Struct, forbid_unknown_fields=True):
    """What to embed."""

    input: str | list[str | Token | list[Token]]  # which of them may stand together is checked once it is read
    model: str
    encoding_format: Literal["float", "base64"] = "float"
    dimensions: Annotated[int, Meta(ge=1)] | msgspec.UnsetType = msgspec.UNSET
    user: Annotated[str, Meta(max_length=MOST_USER_LETTERS)] | msgspec.UnsetType = msgspec.UNSET


class Embedding(msgspec.Struct, forbid_unknown_fields=True):
    """One vector."""

    object: Literal["embedding"]
    index: Count
    embedding: (
        Annotated[list[float], Meta(min_length=1)] | Annotated[str, Meta(description="base64 of little-endian float32")]
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


structs: Sequence[type] = (Answer, Model, Models)
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
    >>> request.inputs, request.in_tokens, request.base64
    ([[1, 2, 3]], True, False)
    >>> read_request(b'{"model": "m", "input": ["a", 1]}')
    Traceback (most recent call last):
    ...
    regionmarker.gateway.errors.ApiError: 'input' must be a string, or a list of strings, tokens or ...
    """
    try:
        asked = _decoder.decode(body)
    except msgspec.ValidationError as error:
        raise _explain(str(error)) from None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        raise bad_request("the body of the request is not valid JSON", code="invalid_json") from None
    inputs, in_tokens = _inputs(asked.input)
    return EmbeddingRequest(
        inputs=inputs,
        in_tokens=in_tokens,
        model=asked.model,
        base64=asked.encoding_format == "base64",
        dimensions=None if asked.dimensions is msgspec.UNSET else asked.dimensions,
        user=None if asked.user is msgspec.UNSET else asked.user,
    )


def _inputs(given: str | list[str | int | list[int]]) -> tuple[list[str] | list[list[int]], bool]:
    """Return the inputs as a list of texts or a list of token lists, and which of the two."""
    if isinstance(given, str):
        given = [given]
    kinds = set(map(type, given))
    if len(kinds) != 1:
        if kinds:
            raise bad_request(
                "'input' must be a string, or a list of strings, tokens or lists of tokens; it mixes them", "input"
            )
        raise bad_request("'input' must not be empty", "input")
    if kinds == {int}:
        given = [given]  # type: ignore[list-item]
    if len(given) > MOST_INPUTS:
        raise bad_request(f"'input' must hold at most {MOST_INPUTS} inputs, but holds {len(given)}", "input")
    if not all(given):
        raise bad_request(f"'input[{[bool(one) for one in given].index(False)}]' must not be empty", "input")
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


def _explain(complaint: str) -> ApiError:
    """Put a complaint of the decoder into OpenAI's words; it names places and types, never values."""
    if missing := _MISSING.search(complaint):
        return bad_request(
            f"you must provide the parameter '{missing[1]}'", missing[1], code="missing_required_parameter"
        )
    if unknown := _UNKNOWN.search(complaint):
        name = unknown[1][:64]
        return bad_request(f"unrecognised request argument supplied: {name}", name, code="unknown_parameter")
    param = _PARAM.search(complaint)
    if param is None:
        return bad_request("the body of the request must be a JSON object", code="invalid_json")
    if param[1] == "encoding_format":
        return bad_request("'encoding_format' must be 'float' or 'base64'", param[1])
    plain = complaint.partition(" - at ")[0].replace("`", "'")
    return bad_request(f"'{param[1]}' cannot be used: {plain[:1].lower()}{plain[1:]}", param[1], code="invalid_type")


# ---- answers


def as_base64(rows: Floats) -> list[EncodedVector]:
    """Return each row (n, D) in base64.

    Examples
    --------
    >>> as_base64(np.float32([[1.0, 0.0]]))
    [b'AACAPwAAAAA=']
    """
    rows = np.ascontiguousarray(rows, dtype="<f4")
    if rows.shape[1] % 3:
        return [pybase64.b64encode(row.data) for row in rows]
    coded = memoryview(pybase64.b64encode(rows.data))  # three numbers are sixteen letters: no padding between rows
    size = rows.shape[1] // 3 * 16
    return [coded[start : start + size] for start in range(0, len(coded), size)]


def as_numbers(rows: Floats) -> list[EncodedVector]:
    """Return each row (n, D) as a JSON list of the shortest numbers that read back as the same float32.

    Examples
    --------
    >>> as_numbers(np.float32([[0.1, 1.0]]))
    [b'[0.1,1.0]']
    """
    return [orjson.dumps(row, option=orjson.OPT_SERIALIZE_NUMPY) for row in np.ascontiguousarray(rows)]


BASE64 = VectorFormat(as_base64, b'"')
NUMBERS = VectorFormat(as_numbers, b"")


def format_of(request: EmbeddingRequest) -> VectorFormat:
    """Return how the vectors of the answer are written."""
    return BASE64 if request.base64 else NUMBERS


def answer(request: EmbeddingRequest, vectors: Sequence[EncodedVector], tokens: int) -> list[EncodedVector]:
    """Return the body in parts, to be joined or sent one after the other.

    Examples
    --------
    >>> request = read_request(b'{"model": "m", "input": "a text"}')
    >>> print(b"".join(answer(request, [b"[1.0]"], 3)).decode())
    {"object":"list","data":[{"object":"embedding","index":0,"embedding":[1.0]}],"model":"m","usage":{"prompt_tokens":3,...
    """
    quote = format_of(request).quote
    befores = _befores(len(vectors).bit_length(), quote)
    parts: list[EncodedVector] = [part for pair in zip(befores, vectors, strict=False) for part in pair]
    end = b'%b}],"model":%b,"usage":{"prompt_tokens":%d,"total_tokens":%d}}'
    parts.append(end % (quote, orjson.dumps(request.model), tokens, tokens))
    return parts


@cache
def _befores(magnitude: int, quote: bytes) -> list[bytes]:
    """Return what stands before each of 2 ** magnitude vectors."""
    begin = b'{"object":"list","data":[{"object":"embedding","index":0,"embedding":' + quote
    middle = quote + b'},{"object":"embedding","index":%d,"embedding":' + quote
    return [begin, *(middle % index for index in range(1, 1 << magnitude))]
