"""Whether the process lives, whether it should get traffic, and the pages beside the embeddings."""

from __future__ import annotations

import hmac
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from regionmarker.gateway.dialects.openapi import document
from regionmarker.gateway.embeddings import ROUTE, EmbeddingsEndpoint, find_tenant
from regionmarker.gateway.errors import ApiError, error_body
from regionmarker.gateway.gateway import Gateway

_METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Pages:
    """The small pages: ``/livez``, ``/readyz``, ``/metrics``, ``/v1/models``, ``/openapi.json``."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._document = orjson.dumps(document(gateway.models, gateway.served_key.current().width))

    async def livez(self, request: Request) -> Response:  # noqa: ARG002
        """Say that the process lives; depends on nothing."""
        return _json({"status": "alive"})

    async def readyz(self, request: Request) -> Response:  # noqa: ARG002
        """Say whether to send requests here; asks the upstream nothing."""
        if self._gateway.draining:
            raise ApiError(503, "draining", "the gateway is about to stop")
        if not self._gateway.upstream_seen:
            raise ApiError(503, "upstream_unreachable", "the upstream has not been reached yet")
        return _json({"status": "ready"})

    async def metrics(self, request: Request) -> Response:
        """Show Prometheus's metrics to the operator."""
        require_operator(self._gateway, request)
        return Response(self._gateway.metrics.text(), media_type=_METRICS_TYPE)

    async def models(self, request: Request) -> Response:
        """List the models, as OpenAI does."""
        await find_tenant(self._gateway, request.scope)
        return _json({"object": "list", "data": [_model(name) for name in self._gateway.models]})

    async def model(self, request: Request) -> Response:
        """Show one model, as OpenAI does."""
        await find_tenant(self._gateway, request.scope)
        name = request.path_params["model"]
        if name not in self._gateway.models:
            raise ApiError(404, "model_not_found", "the model does not exist here", param="model")
        return _json(_model(name))

    async def openapi(self, request: Request) -> Response:  # noqa: ARG002
        """Show the OpenAPI document."""
        return Response(self._document, media_type="application/json")


def require_operator(gateway: Gateway, request: Request) -> None:
    """Let only the operator pass: by the admin token, or, where none is set, from this machine alone."""
    token = gateway.settings.admin_token
    if not token:
        if gateway.settings.on_loopback:
            return
        raise ApiError(404, "not_found", "there is no such page here")
    given = request.headers.get("authorization", "").partition(" ")[2].strip()
    if not hmac.compare_digest(given.encode(), token.encode()):
        raise ApiError(401, "invalid_api_key", "the admin token is needed, as a bearer token")


def _model(name: str) -> dict[str, object]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "system"}


def _json(content: object) -> Response:
    return Response(orjson.dumps(content), media_type="application/json")


# The ASGI application: routes, and one shape for every error.

_CODES = {404: "not_found", 405: "method_not_allowed"}


def make_app(gateway: Gateway, routes: Sequence[BaseRoute] = ()) -> Starlette:
    """Return the application of ``gateway``; ``routes`` are added to its own, such as the console's.

    ``app.state.gateway`` is the gateway.
    """
    pages = Pages(gateway)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        await gateway.start()
        try:
            yield
        finally:
            await gateway.stop()

    app = Starlette(
        routes=[
            Route(ROUTE, EmbeddingsEndpoint(gateway), methods=["POST"]),
            Route("/v1/models", pages.models),
            Route("/v1/models/{model:path}", pages.model),
            Route("/livez", pages.livez),
            Route("/readyz", pages.readyz),
            Route("/metrics", pages.metrics),
            Route("/openapi.json", pages.openapi),
            *routes,
        ],
        middleware=gateway.middleware,
        exception_handlers={ApiError: _failed, HTTPException: _not_routed},
        lifespan=lifespan,
    )
    app.state.gateway = gateway
    return app


async def _failed(_request: Request, error: Exception) -> Response:
    failure = error if isinstance(error, ApiError) else ApiError(500, "internal_error", "the server failed")
    headers = {name.decode(): value.decode() for name, value in failure.headers}
    return Response(failure.body(), failure.status, headers, media_type="application/json")


async def _not_routed(_request: Request, error: Exception) -> Response:
    """Answer where Starlette itself says no: 404 and 405."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    headers = dict(getattr(error, "headers", None) or {})
    message = "there is no such page here" if status == 404 else "this page does not take that method"
    return Response(
        error_body(message, status=status, code=_CODES.get(status)), status, headers, media_type="application/json"
    )
