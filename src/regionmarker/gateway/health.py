"""Whether the process lives, whether it should get traffic, and the pages beside the embeddings."""

from __future__ import annotations

import hmac

import orjson
from starlette.requests import Request
from starlette.responses import Response

from regionmarker.gateway.failures import Failure
from regionmarker.gateway.openapi import document
from regionmarker.gateway.reception import find_tenant
from regionmarker.gateway.state import Gateway

_METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Pages:
    """The small pages: ``/livez``, ``/readyz``, ``/metrics``, ``/v1/models``, ``/openapi.json``."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway
        self._document = orjson.dumps(document(gateway.models, gateway.keyhold.current().width))

    async def livez(self, request: Request) -> Response:  # noqa: ARG002
        """Say that the process lives; depends on nothing."""
        return _json({"status": "alive"})

    async def readyz(self, request: Request) -> Response:  # noqa: ARG002
        """Say whether to send requests here; asks the upstream nothing."""
        if self._gateway.draining:
            raise Failure(503, "draining", "the gateway is about to stop")
        if not self._gateway.upstream_seen:
            raise Failure(503, "upstream_unreachable", "the upstream has not been reached yet")
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
            raise Failure(404, "model_not_found", "the model does not exist here", param="model")
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
        raise Failure(404, "not_found", "there is no such page here")
    given = request.headers.get("authorization", "").partition(" ")[2].strip()
    if not hmac.compare_digest(given.encode(), token.encode()):
        raise Failure(401, "invalid_api_key", "the admin token is needed, as a bearer token")


def _model(name: str) -> dict[str, object]:
    return {"id": name, "object": "model", "created": 0, "owned_by": "system"}


def _json(content: object) -> Response:
    return Response(orjson.dumps(content), media_type="application/json")
