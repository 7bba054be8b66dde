"""A proxy that does nothing: it forwards the bytes of a request and of its answer, on the gateway's own stack.

Starlette routes, uvicorn serves (uvloop, httptools), aiohttp asks. It reads no JSON, knows no tenants, marks nothing:
whoever puts a Python service before an upstream pays at least this.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import AsyncIterator

import aiohttp
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

ROUTE = "/v1/embeddings"


def proxy(upstream: int) -> Starlette:
    """Return the application before an upstream on a port of this machine."""
    sessions: list[aiohttp.ClientSession] = []

    @contextlib.asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        connector = aiohttp.TCPConnector(limit=256, keepalive_timeout=30.0)
        async with aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar()) as session:
            sessions.append(session)
            yield

    async def forward(request: Request) -> Response:
        body = await request.body()
        kept = {name: request.headers[name] for name in ("content-type", "authorization") if name in request.headers}
        async with sessions[0].post(f"http://127.0.0.1:{upstream}{ROUTE}", data=body, headers=kept) as answer:
            return Response(await answer.read(), answer.status, media_type=answer.content_type)

    return Starlette(routes=[Route(ROUTE, forward, methods=["POST"])], lifespan=lifespan)


def serve(upstream: int) -> None:
    """Print a port and serve there until ended."""
    listening = socket.create_server(("127.0.0.1", 0), backlog=2048)
    print(listening.getsockname()[1], flush=True)
    config = uvicorn.Config(
        proxy(upstream), access_log=False, log_config=None, server_header=False, ws="none", proxy_headers=False,
        backlog=2048,
    )  # fmt: skip
    uvicorn.Server(config).run(sockets=[listening])
