"""Cohere's ``/v2/embed``: texts in, vectors out by type, several types at once.

``images``, ``inputs``, ``max_tokens`` and ``priority`` are refused by name: nobody here could keep what they promise.
``truncate`` may be ``END``, Cohere's default: what becomes of a text that is too long is the upstream's decision.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated, Any, Literal, get_args
from uuid import uuid4

import msgspec
import orjson
from msgspec import Meta

from regionmarker.gateway.dialects import EmbeddingRequest
from regionmarker.gateway.dialects.decoding import check_inputs, decode_body
from regionmarker.gateway.dialects.vector_formats import VECTOR_FORMATS, EncodedVector, VectorFormat, split_formats
from regionmarker.gateway.errors import ApiError, bad_request
from regionmarker.gateway.settings import MOST_INPUTS

route = "/v2/embed"
name = "cohereEmbed"

InputType = Literal["search_document", "search_query", "classification", "clustering"]
EmbeddingType = Literal["float", "int8", "uint8", "binary", "ubinary", "base64"]
_TYPES: tuple[str, ...] = get_args(EmbeddingType)
_CHOICES = {"input_type": get_args(InputType), "embedding_types": _TYPES, "truncate": ("END",)}
_OUR_NAMES = re.compile(r"'(input|dimensions|output_dtype)(?=['\[])")
_NAMES = {"input": "texts", "dimensions": "output_dimension", "output_dtype": "embedding_types"}
_Text = Annotated[str, Meta(min_length=1)]
_Count = Annotated[int, Meta(ge=0)]


class CohereRequest(msgspec.Struct, forbid_unknown_fields=True):
    """What to embed."""

    texts: list[str]
    model: str
    input_type: InputType | None = None
    embedding_types: list[EmbeddingType] | None = None
    output_dimension: Annotated[int, Meta(ge=1)] | None = None
    truncate: Literal["END"] | None = None


_Numbers = list[list[float]] | msgspec.UnsetType  # outside the struct, in which "float" is a field
_Integers = list[list[int]] | msgspec.UnsetType


class CohereEmbeddings(msgspec.Struct, forbid_unknown_fields=True, omit_defaults=True):
    """One vector per text, in every type that was asked for."""

    float: _Numbers = msgspec.UNSET
    int8: _Integers = msgspec.UNSET
    uint8: _Integers = msgspec.UNSET
    binary: _Integers = msgspec.UNSET
    ubinary: _Integers = msgspec.UNSET
    base64: list[str] | msgspec.UnsetType = msgspec.UNSET


class CohereVersion(msgspec.Struct, forbid_unknown_fields=True):
    """The version of the API."""

    version: Literal["2"]


class CohereUnits(msgspec.Struct, forbid_unknown_fields=True):
    """What the answer cost."""

    input_tokens: _Count


class CohereMeta(msgspec.Struct, forbid_unknown_fields=True):
    """What is known about the answer."""

    api_version: CohereVersion
    billed_units: CohereUnits


class CohereAnswer(msgspec.Struct, forbid_unknown_fields=True):
    """The vectors by type."""

    id: str
    embeddings: CohereEmbeddings
    texts: list[str]
    meta: CohereMeta
    response_type: Literal["embeddings_by_type"]


class CohereError(msgspec.Struct, forbid_unknown_fields=True):
    """The body of every answer but 200."""

    message: str


structs: Sequence[type] = (CohereAnswer, CohereError)
_decoder = msgspec.json.Decoder(CohereRequest)


def request_schema(models: Sequence[str], width: int) -> dict[str, Any]:
    """Return the JSON schema of a request's body.

    Examples
    --------
    >>> request_schema(["m"], 256)["required"]
    ['texts', 'model']
    """
    _, components = msgspec.json.schema_components([CohereRequest])
    schema: dict[str, Any] = components["CohereRequest"]
    texts = Annotated[list[_Text], Meta(min_length=1, max_length=MOST_INPUTS)]
    schema["properties"] |= {
        "texts": msgspec.json.schema(texts),
        "model": {"enum": list(models)},
        "embedding_types": {"type": ["array", "null"], "items": {"enum": list(_TYPES)}, "minItems": 1},
        "output_dimension": {"type": ["integer", "null"], "minimum": 1, "maximum": width},
    }
    return schema


def read_request(body: bytes | bytearray) -> EmbeddingRequest:
    """Read and check a request's body.

    Examples
    --------
    >>> request = read_request(b'{"model": "m", "texts": ["a"], "embedding_types": ["int8", "base64", "int8"]}')
    >>> request.inputs, len(request.formats)
    (['a'], 2)
    >>> read_request(b'{"model": "m", "texts": ["a"], "images": ["data:image/png"]}')
    Traceback (most recent call last):
    ...
    regionmarker.gateway.errors.ApiError: unrecognised request argument supplied: images
    """
    asked = decode_body(_decoder, body, _CHOICES)
    check_inputs(asked.texts, "texts")
    types = ["float"] if asked.embedding_types is None else list(dict.fromkeys(asked.embedding_types))
    if not types:
        raise bad_request("'embedding_types' must not be empty", "embedding_types")
    return EmbeddingRequest(
        inputs=asked.texts,
        in_tokens=False,
        model=asked.model,
        formats=tuple(_FORMATS[one] for one in types),
        dimensions=asked.output_dimension,
        input_type=asked.input_type,
    )


_FORMATS: dict[str, VectorFormat] = {
    one: VECTOR_FORMATS["float" if one == "base64" else one, one == "base64"] for one in _TYPES
}
_TYPE_OF = {written: one for one, written in _FORMATS.items()}


def answer(request: EmbeddingRequest, vectors: Sequence[EncodedVector], tokens: int) -> list[EncodedVector]:
    r"""Return the body in parts, to be joined or sent one after the other.

    Examples
    --------
    >>> request = read_request(b'{"model": "m", "texts": ["a text"], "embedding_types": ["int8", "base64"]}')
    >>> print(b"".join(answer(request, [b"[127]\nAACAPw=="], 3)[1:]).decode())
    "int8":[[127]],"base64":["AACAPw=="]},"texts":["a text"],"meta":{"api_version":{"version":"2"},"billed_units":{...
    """
    columns: list[Sequence[EncodedVector]] = [vectors]
    if len(request.formats) > 1:
        columns = list(zip(*map(split_formats, vectors), strict=True))
    parts: list[EncodedVector] = [b'{"id":"%b","embeddings":{' % str(uuid4()).encode()]
    for place, (written, column) in enumerate(zip(request.formats, columns, strict=True)):
        quote = written.quote
        parts.append(b'%b"%b":[%b' % (b"," if place else b"", _TYPE_OF[written].encode(), quote))
        for row, vector in enumerate(column):
            parts += (quote + b"," + quote, vector) if row else (vector,)
        parts.append(quote + b"]")
    end = b'},"texts":%b,"meta":{"api_version":{"version":"2"},"billed_units":{"input_tokens":%d}},"response_type":%b}'
    parts.append(end % (orjson.dumps(request.inputs), tokens, b'"embeddings_by_type"'))
    return parts


def error_body(error: ApiError) -> bytes:
    """Return an error's body; fields have Cohere's names.

    Examples
    --------
    >>> print(error_body(bad_request("'dimensions' must be at most 256", "dimensions")).decode())
    {"message":"'output_dimension' must be at most 256"}
    """
    message = _OUR_NAMES.sub(lambda found: "'" + _NAMES[found[1]], error.message)
    return msgspec.json.encode(CohereError(message))
