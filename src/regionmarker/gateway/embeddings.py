"""A request for embeddings, in any dialect, from its headers to the last byte of its answer.

What can be refused is refused before the body is read: who is asking, how often, and whether there is any room. A plain
ASGI application, because it reads the body and sends the answer in its own time.
"""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from types import TracebackType

from starlette.types import Receive, Scope, Send

from regionmarker.gateway.dialects import Dialect, EmbeddingRequest
from regionmarker.gateway.dialects.vector_formats import EncodedVector, encoder_of
from regionmarker.gateway.errors import ApiError, Headers, bad_request
from regionmarker.gateway.gateway import Gateway
from regionmarker.gateway.marking import Marking
from regionmarker.gateway.request_body import SMALL, ClientGoneError, decoded_bytes, find_header, read_body
from regionmarker.gateway.served_key import KeyVersion
from regionmarker.gateway.tenants import Tenant
from regionmarker.vectors import Floats

_HEAD_START = 0.005  # seconds
_GONE = 499  # what metrics count where nobody waited for the answer
_FEW = 64  # parts that are sent at once
_PIECE = 1 << 19  # bytes sent at once where there are more
_JSON = (b"content-type", b"application/json")
_NO_ROOM = ("busy", "pushed_out", "patience", "bytes")


@dataclass(slots=True)
class RequestContext:
    """What is known about one request so far."""

    id: str
    started: float
    tenant: str = ""
    status: int = _GONE
    sent: bool = False  # whether an answer has begun
    headers: Headers = field(default_factory=list)


class EmbeddingsEndpoint:
    """Answers requests for embeddings in one dialect."""

    def __init__(self, gateway: Gateway, dialect: Dialect) -> None:
        self._gateway = gateway
        self._dialect = dialect
        self._busy_body = dialect.error_body(gateway.admission.busy())  # of every such refusal: made once
        self._one_large = asyncio.Lock()  # large bodies that come at once are parsed in as many turns of the loop

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; whatever happens, the client gets an answer of the one shape, or none because it left."""
        gateway = self._gateway
        context = RequestContext(f"req_{secrets.token_hex(16)}", time.perf_counter())
        try:
            await self._serve(scope, receive, send, context)
        except ApiError as error:
            await self._fail(send, context, error)
        except ClientGoneError:
            pass
        except asyncio.CancelledError:
            if not gateway.draining or context.sent:
                raise
            # The grace is over. Nobody waits for this task any more but the server, which would answer 500 by itself.
            await self._fail(send, context, ApiError(503, "draining", "the gateway is about to stop", kind="draining"))
        except Exception:  # a bug has the one shape as well
            gateway.logger.error("internal error", request_id=context.id, exc_info=True)
            if context.sent:
                raise  # half an answer is out: the server breaks the connection off
            await self._fail(send, context, ApiError(500, "internal_error", "the server failed; its log says more"))
        finally:
            seconds = time.perf_counter() - context.started
            gateway.metrics.answered(self._dialect.route, context.status, context.tenant, seconds)
            gateway.logger.debug(
                "answered", request_id=context.id, tenant=context.tenant, status=context.status, seconds=seconds
            )

    async def _serve(self, scope: Scope, receive: Receive, send: Send, context: RequestContext) -> None:
        gateway = self._gateway
        key = gateway.served_key.current()  # once: the whole answer has one version
        tenant = await find_tenant(gateway, scope)
        context.tenant = tenant.name
        context.headers = gateway.quotas.spend(tenant)
        if gateway.admission.is_full_for(tenant):
            await self._turn_away(tenant)
        with gateway.admission.hold_bytes(tenant) as held:
            body = await read_body(scope, receive, gateway.settings, held)
            if len(body) <= SMALL:
                request = self._dialect.read_request(body)
            else:
                async with self._one_large:
                    request = self._dialect.read_request(body)
                    held.grow_to(decoded_bytes(request))
                    await asyncio.sleep(0)  # others want their turn
            del body
            self._check(request, key, tenant)
            with DisconnectWatch(receive) as watch:
                # Its places are held until the answer is sent: what a slow reader has not read yet is memory, too.
                async with gateway.admission.enter(tenant, len(request)):
                    parts = await self._answer(request, key, tenant)
                    watch.end()
                    await self._send(send, context, 200, parts)

    async def _answer(self, request: EmbeddingRequest, key: KeyVersion, tenant: Tenant) -> list[EncodedVector]:
        gateway = self._gateway
        marking = Marking(key, tenant, gateway.rollout, request.dimensions)
        encode = encoder_of(request.formats)

        def mark_block(rows: Floats, first: int) -> list[EncodedVector]:
            return encode(marking.serve(rows, first))

        answer = await gateway.upstream.embed(request, key.width, mark_block)
        gateway.upstream_seen = True
        gateway.metrics.served(tenant.name, len(request), answer.tokens, marking.seconds)
        gateway.tenants.record(tenant.name, requests=1, inputs=len(request), tokens=answer.tokens)
        return self._dialect.answer(request, answer.vectors, answer.tokens)

    def _check(self, request: EmbeddingRequest, key: KeyVersion, tenant: Tenant) -> None:
        gateway = self._gateway
        if request.model not in gateway.models:
            message = f"the model does not exist here: ask for {gateway.model}"
            raise ApiError(404, "model_not_found", message, param="model")
        if request.in_tokens and not gateway.upstream.takes_tokens:
            raise bad_request("'input' must be text: this model takes no lists of tokens", "input")
        if request.dimensions is not None and request.dimensions > key.width:
            raise bad_request(f"'dimensions' must be at most {key.width}", "dimensions")
        multiple, width = max(one.multiple_of for one in request.formats), request.dimensions or key.width
        if width % multiple:
            message = f"'output_dtype' binary and ubinary need a multiple of {multiple} dimensions, not {width}"
            raise bad_request(message, "output_dtype")
        if tenant.label and tenant.label not in key.labels:
            # Served with the default mark, its vectors could not be traced: better none than those.
            gateway.logger.error("tenant is not in the key", tenant=tenant.name, place=tenant.label, key_id=key.key_id)
            raise ApiError(503, "account_not_ready", "this account is not ready yet", kind="tenant")

    async def _turn_away(self, tenant: Tenant) -> None:
        """Refuse for want of room, sooner or later; or let in after all, if there is room by then."""
        admission = self._gateway.admission
        await self._gateway.held_refusals.hold(tenant.name, admission.seconds_to_wait())
        if admission.is_full_for(tenant):
            raise admission.busy()

    async def _fail(self, send: Send, context: RequestContext, error: ApiError) -> None:
        metrics = self._gateway.metrics
        if error.code == "upstream_invalid_response":
            metrics.upstream_invalid.labels(error.kind).inc()
        if error.status == 429 and error.code == "rate_limit_exceeded":
            metrics.refused(error.kind)
        if error.status >= 500:
            log = self._gateway.logger.warning if error.kind == "draining" else self._gateway.logger.error
            log(
                "request failed", request_id=context.id, tenant=context.tenant, status=error.status,
                code=error.code, kind=error.kind,
            )  # fmt: skip
        ours = {name for name, _ in error.headers}
        context.headers = [pair for pair in context.headers if pair[0] not in ours] + error.headers
        busy = error.kind in _NO_ROOM
        await self._send(send, context, error.status, [self._busy_body if busy else self._dialect.error_body(error)])

    async def _send(self, send: Send, context: RequestContext, status: int, parts: Sequence[EncodedVector]) -> None:
        gateway = self._gateway
        headers = [_JSON, (b"content-length", b"%d" % sum(map(len, parts))), (b"x-request-id", context.id.encode())]
        headers += context.headers
        if gateway.draining:
            headers.append((b"connection", b"close"))
        context.sent, context.status = True, status
        await send({"type": "http.response.start", "status": status, "headers": headers})
        if len(parts) <= _FEW:
            await send({"type": "http.response.body", "body": b"".join(parts)})
            return
        try:
            async with asyncio.timeout(gateway.settings.total):  # who stops reading holds its places no longer
                for piece in pieces(parts):
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
                await send({"type": "http.response.body", "body": b""})
        except TimeoutError:
            raise ClientGoneError from None


class DisconnectWatch:
    """Cancels the block when the client leaves; what comes out of it then is :class:`ClientGoneError`.

    Cancelling closes the upstream's connection, so that a server which can stop working stops as well. The watch begins
    after a few milliseconds: most requests are done by then, and never pay for it.
    """

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._gone = False

    def __enter__(self) -> DisconnectWatch:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("not inside a task")
        self._task: asyncio.Task[object] = task
        self._watch: asyncio.Task[None] | None = None
        self._timer = asyncio.get_running_loop().call_later(_HEAD_START, self._begin)
        return self

    def _begin(self) -> None:
        self._watch = asyncio.get_running_loop().create_task(self._listen())

    async def _listen(self) -> None:
        while (await self._receive())["type"] != "http.disconnect":
            pass
        self._gone = True
        self._task.cancel()

    def end(self) -> None:
        self._timer.cancel()
        if self._watch is not None:
            self._watch.cancel()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()
        if self._gone and kind is asyncio.CancelledError and self._task.uncancel() == 0:
            raise ClientGoneError from None


async def find_tenant(gateway: Gateway, scope: Scope) -> Tenant:
    """Return who is asking, or refuse."""
    scheme, _, key = find_header(scope, b"authorization").partition(b" ")
    api_key = key.strip().decode("latin-1") if scheme.lower() == b"bearer" else ""
    tenant = await gateway.tenants.find(api_key)
    if tenant is None:
        what = "incorrect API key provided" if api_key else "you did not provide an API key: send it as a bearer token"
        raise ApiError(401, "invalid_api_key", what)
    return tenant


def pieces(parts: Sequence[EncodedVector], size: int = _PIECE) -> Iterator[bytes]:
    """Join parts into pieces of about ``size`` bytes.

    Examples
    --------
    >>> list(pieces([b"ab", b"cd", b"ef"], size=4))
    [b'abcd', b'ef']
    """
    first = total = 0
    for place, part in enumerate(parts):
        total += len(part)
        if total >= size:
            yield b"".join(parts[first : place + 1])
            first, total = place + 1, 0
    if first < len(parts):
        yield b"".join(parts[first:])
