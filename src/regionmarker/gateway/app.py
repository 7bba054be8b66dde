"""The ASGI application: all routes, one shape for every error, and the small pages beside the embeddings."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec
import orjson
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from regionmarker.gateway.console import Console, address_of
from regionmarker.gateway.dialects import openai
from regionmarker.gateway.dialects.openapi import DIALECTS, Status, dialect_at, document
from regionmarker.gateway.embeddings import EmbeddingsEndpoint, find_tenant
from regionmarker.gateway.errors import ApiError
from regionmarker.gateway.gateway import Gateway

_METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
_CODES = {404: "not_found", 405: "method_not_allowed"}


def make_app(gateway: Gateway) -> Starlette:
    """Return the application of ``gateway``; ``app.state.gateway`` is the gateway."""

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        await gateway.start()
        try:
            yield
        finally:
            await gateway.stop()

    app = Starlette(
        routes=_routes(gateway),
        middleware=[] if gateway.telemetry is None else [gateway.telemetry.middleware()],
        exception_handlers={ApiError: _refused, HTTPException: _not_routed, Exception: _refused},
        lifespan=lifespan,
    )
    app.state.gateway = gateway
    return app


def _routes(gateway: Gateway) -> list[BaseRoute]:
    pages = Pages(gateway)
    routes: list[BaseRoute] = [
        *(Route(dialect.route, EmbeddingsEndpoint(gateway, dialect), methods=["POST"]) for dialect in DIALECTS),
        Route("/v1/models", pages.models),
        Route("/v1/models/{model:path}", pages.model),
        Route("/livez", pages.livez),
        Route("/readyz", pages.readyz),
        Route("/metrics", pages.metrics),
        Route("/openapi.json", pages.openapi),
    ]
    if gateway.settings.admin_token:
        console = Console(gateway)
        routes += [
            Route("/console", console.show, methods=["GET"]),
            Route("/console/style.css", console.style, methods=["GET"]),
            Route("/console/login", console.log_in, methods=["POST"]),
            Route("/console/logout", console.log_out, methods=["POST"]),
            Route("/console/reload", console.reload, methods=["POST"]),
        ]
    return routes


async def _refused(_request: Request, error: Exception) -> Response:
    if not isinstance(error, ApiError):
        error = ApiError(500, "internal_error", "the server failed")
    headers = {name.decode(): value.decode() for name, value in error.headers}
    return Response(error.body(), error.status, headers, media_type="application/json")


async def _not_routed(request: Request, error: Exception) -> Response:
    """Answer where Starlette itself says no: 404 and 405."""
    status = error.status_code if isinstance(error, HTTPException) else 500
    headers = dict(getattr(error, "headers", None) or {})
    message = "there is no such page here" if status == 404 else "this page does not take that method"
    body = dialect_at(request.url.path).error_body(ApiError(status, _CODES.get(status, "internal_error"), message))
    return Response(body, status, headers, media_type="application/json")


class Pages:
    """The small pages: ``/livez``, ``/readyz``, ``/metrics``, ``/v1/models``, ``/openapi.json``."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._document = orjson.dumps(document(gateway.models, gateway.served_key.current().width))

    async def livez(self, request: Request) -> Response:  # noqa: ARG002
        """Say that the process lives; depends on nothing."""
        return _json(Status("alive"))

    async def readyz(self, request: Request) -> Response:  # noqa: ARG002
        """Say whether to send requests here; asks the upstream nothing."""
        if self._gateway.draining:
            raise ApiError(503, "draining", "the gateway is about to stop")
        if not self._gateway.upstream_seen:
            raise ApiError(503, "upstream_unreachable", "the upstream has not been reached yet")
        return _json(Status("ready"))

    async def metrics(self, request: Request) -> Response:
        require_operator(self._gateway, request)
        return Response(self._gateway.metrics_text(), media_type=_METRICS_TYPE)

    async def models(self, request: Request) -> Response:
        await find_tenant(self._gateway, request.scope)
        return _json(openai.Models("list", [_model(name) for name in self._gateway.models]))

    async def model(self, request: Request) -> Response:
        await find_tenant(self._gateway, request.scope)
        name = request.path_params["model"]
        if name not in self._gateway.models:
            raise ApiError(404, "model_not_found", "the model does not exist here", param="model")
        return _json(_model(name))

    async def openapi(self, request: Request) -> Response:  # noqa: ARG002
        return Response(self._document, media_type="application/json")


def require_operator(gateway: Gateway, request: Request) -> None:
    """Let only the operator pass: by the admin token, or, where none is set, from this machine alone."""
    if gateway.operator is None:
        if gateway.settings.on_loopback:
            return
        raise ApiError(404, "not_found", "there is no such page here")
    given = request.headers.get("authorization", "").partition(" ")[2].strip()
    gateway.operator.admit(given, address_of(request), request.url.path)


def _model(name: str) -> openai.Model:
    return openai.Model(name, "model", 0, "system")


def _json(content: msgspec.Struct) -> Response:
    return Response(msgspec.json.encode(content), media_type="application/json")
