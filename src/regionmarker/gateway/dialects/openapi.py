"""The gateway's contract as an OpenAPI document, written by hand: it is OpenAI's for embeddings, with its limits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from regionmarker.gateway.settings import MOST_INPUTS, MOST_TOKENS

_TOKEN = {"type": "integer", "minimum": 0, "maximum": 2**31 - 1}
_TOKENS = {"type": "array", "minItems": 1, "maxItems": MOST_TOKENS, "items": _TOKEN}
_STRING = {"type": "string", "minLength": 1}
_INPUT = {
    "description": "One text, several texts, one text in tokens, or several texts in tokens.",
    "oneOf": [
        _STRING,
        {"type": "array", "minItems": 1, "maxItems": MOST_INPUTS, "items": _STRING},
        _TOKENS,
        {"type": "array", "minItems": 1, "maxItems": MOST_INPUTS, "items": _TOKENS},
    ],
}
_ERROR = {
    "type": "object",
    "additionalProperties": False,
    "required": ["error"],
    "properties": {
        "error": {
            "type": "object",
            "additionalProperties": False,
            "required": ["message", "type", "param", "code"],
            "properties": {
                "message": {"type": "string"},
                "type": {"type": "string"},
                "param": {"type": ["string", "null"]},
                "code": {"type": ["string", "null"]},
            },
        }
    },
}
_EMBEDDING = {
    "type": "object",
    "additionalProperties": False,
    "required": ["object", "index", "embedding"],
    "properties": {
        "object": {"const": "embedding"},
        "index": {"type": "integer", "minimum": 0},
        "embedding": {
            "oneOf": [
                {"type": "array", "minItems": 1, "items": {"type": "number"}},
                {"type": "string", "description": "base64 of little-endian float32"},
            ]
        },
    },
}
_ANSWER = {
    "type": "object",
    "additionalProperties": False,
    "required": ["object", "data", "model", "usage"],
    "properties": {
        "object": {"const": "list"},
        "data": {"type": "array", "minItems": 1, "items": {"$ref": "#/components/schemas/Embedding"}},
        "model": {"type": "string"},
        "usage": {
            "type": "object",
            "additionalProperties": False,
            "required": ["prompt_tokens", "total_tokens"],
            "properties": {
                "prompt_tokens": {"type": "integer", "minimum": 0},
                "total_tokens": {"type": "integer", "minimum": 0},
            },
        },
    },
}
_MODEL = {
    "type": "object",
    "additionalProperties": False,
    "required": ["id", "object", "created", "owned_by"],
    "properties": {
        "id": {"type": "string"},
        "object": {"const": "model"},
        "created": {"type": "integer"},
        "owned_by": {"type": "string"},
    },
}
_STATUS = {"type": "object", "required": ["status"], "properties": {"status": {"type": "string"}}}
_FAILURES = {
    400: "The request cannot be used; `param` says which part of it.",
    401: "No API key, or a wrong one.",
    404: "No such model.",
    408: "The body took too long to arrive.",
    413: "The body is too large.",
    415: "The body is not JSON, or compressed.",
    429: "Too much at once; `retry-after-ms` says when to come back.",
    500: "The gateway failed.",
    502: "The upstream failed, or its answer cannot be served.",
    503: "The upstream is overloaded or cannot be reached.",
    504: "The upstream took too long.",
}


def _responses(schema: str, *failures: int) -> dict[str, Any]:
    good = {"description": "Done.", "content": _content(schema)}
    bad = {str(code): {"description": _FAILURES[code], "content": _content("Error")} for code in failures}
    return {"200": good, **bad}


def _content(schema: str) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}


def _get(summary: str, schema: str, *failures: int, **more: Any) -> dict[str, Any]:
    return {"get": {"summary": summary, "responses": _responses(schema, *failures), **more}}


def document(models: Sequence[str], width: int) -> dict[str, Any]:
    """Return the document of a gateway that serves vectors of ``width`` under these names.

    Examples
    --------
    >>> sorted(document(["m"], 256)["paths"])
    ['/livez', '/readyz', '/v1/embeddings', '/v1/models', '/v1/models/{model}']
    """
    request = {
        "type": "object",
        "additionalProperties": False,
        "required": ["input", "model"],
        "properties": {
            "input": _INPUT,
            "model": {"enum": list(models)},
            "encoding_format": {"enum": ["float", "base64"], "default": "float"},
            "dimensions": {"type": "integer", "minimum": 1, "maximum": width},
            "user": {"type": "string"},
        },
    }
    embeddings = {
        "summary": "Embed texts.",
        "operationId": "createEmbedding",
        "requestBody": {"required": True, "content": {"application/json": {"schema": request}}},
        "responses": _responses("Answer", *_FAILURES),
    }
    name = {"name": "model", "in": "path", "required": True, "schema": {"type": "string"}, "example": models[0]}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Embeddings", "version": "1"},
        "security": [{"key": []}],
        "paths": {
            "/v1/embeddings": {"post": embeddings},
            "/v1/models": _get("List the models.", "Models", 401),
            "/v1/models/{model}": _get("Show a model.", "Model", 401, 404, parameters=[name]),
            "/livez": _get("Whether the process lives.", "Status", security=[]),
            "/readyz": _get("Whether to send requests here.", "Status", 503, security=[]),
        },
        "components": {
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "schemas": {
                "Answer": _ANSWER,
                "Embedding": _EMBEDDING,
                "Error": _ERROR,
                "Model": _MODEL,
                "Models": {
                    "type": "object",
                    "required": ["object", "data"],
                    "properties": {
                        "object": {"const": "list"},
                        "data": {"type": "array", "items": {"$ref": "#/components/schemas/Model"}},
                    },
                },
                "Status": _STATUS,
            },
        },
    }
