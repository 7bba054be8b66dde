"""The ASGI application: routes, and one shape for every error."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route

from regionmarker.gateway.failures import Failure, error_body
from regionmarker.gateway.health import Pages
from regionmarker.gateway.reception import ROUTE, Reception
from regionmarker.gateway.state import Gateway

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
            Route(ROUTE, Reception(gateway), methods=["POST"]),
            Route("/v1/models", pages.models),
            Route("/v1/models/{model:path}", pages.model),
            Route("/livez", pages.livez),
            Route("/readyz", pages.readyz),
            Route("/metrics", pages.metrics),
            Route("/openapi.json", pages.openapi),
            *routes,
        ],
        middleware=gateway.middleware,
        exception_handlers={Failure: _failed, HTTPException: _not_routed},
        lifespan=lifespan,
    )
    app.state.gateway = gateway
    return app


async def _failed(_request: Request, error: Exception) -> Response:
    failure = error if isinstance(error, Failure) else Failure(500, "internal_error", "the server failed")
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
