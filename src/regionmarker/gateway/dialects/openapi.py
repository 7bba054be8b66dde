"""The gateway's contract as an OpenAPI document, made from the structs that read requests and write answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from regionmarker.gateway.dialects import Dialect, cohere, ollama, openai

DIALECTS: Sequence[Dialect] = (openai, cohere, ollama)
"""The ways in which clients may ask for embeddings; each has a route of its own."""
_BY_ROUTE = {dialect.route: dialect for dialect in DIALECTS}

_REFUSALS = {
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


class Status(msgspec.Struct):
    """How the process is."""

    status: str


def dialect_at(path: str) -> Dialect:
    """Return the dialect of a route; OpenAI's for every other page.

    Examples
    --------
    >>> dialect_at("/api/embed").name, dialect_at("/v1/models").name
    ('ollamaEmbed', 'createEmbedding')
    """
    return _BY_ROUTE.get(path, openai)


def document(models: Sequence[str], width: int) -> dict[str, Any]:
    """Return the document of a gateway that serves vectors of ``width`` under these names.

    Examples
    --------
    >>> sorted(document(["m"], 256)["paths"])
    ['/api/embed', '/livez', '/readyz', '/v1/embeddings', '/v1/models', '/v1/models/{model}', '/v2/embed']
    """
    structs = [Status, *(struct for dialect in DIALECTS for struct in dialect.structs)]
    _, schemas = msgspec.json.schema_components(structs, ref_template="#/components/schemas/{name}")
    name = {"name": "model", "in": "path", "required": True, "schema": {"type": "string"}, "example": models[0]}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Embeddings", "version": "1"},
        "security": [{"key": []}],
        "paths": {
            **{dialect.route: {"post": _embed(dialect, models, width)} for dialect in DIALECTS},
            "/v1/models": _get("List the models.", "Models", 401),
            "/v1/models/{model}": _get("Show a model.", "Model", 401, 404, parameters=[name]),
            "/livez": _get("Whether the process lives.", "Status", security=[]),
            "/readyz": _get("Whether to send requests here.", "Status", 503, security=[]),
        },
        "components": {"securitySchemes": {"key": {"type": "http", "scheme": "bearer"}}, "schemas": schemas},
    }


def _embed(dialect: Dialect, models: Sequence[str], width: int) -> dict[str, Any]:
    body = {"application/json": {"schema": dialect.request_schema(models, width)}}
    return {
        "summary": "Embed texts.",
        "operationId": dialect.name,
        "requestBody": {"required": True, "content": body},
        "responses": _responses(dialect.structs[0].__name__, *_REFUSALS, error=dialect.structs[1].__name__),
    }


def _get(summary: str, schema: str, *refusals: int, **more: Any) -> dict[str, Any]:
    return {"get": {"summary": summary, "responses": _responses(schema, *refusals), **more}}


def _responses(schema: str, *refusals: int, error: str = "Error") -> dict[str, Any]:
    good = {"description": "Done.", "content": _content(schema)}
    bad = {str(code): {"description": _REFUSALS[code], "content": _content(error)} for code in refusals}
    return {"200": good, **bad}


def _content(schema: str) -> dict[str, Any]:
    return {"application/json": {"schema": {"$ref": f"#/components/schemas/{schema}"}}}
