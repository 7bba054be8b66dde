"""Notices that a client has left, and stops working for it."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from types import TracebackType

from starlette.types import Message, Receive, Scope, Send

from regionmarker.gateway.admission import BUSY_BODY
from regionmarker.gateway.dialects.openai import BASE64, NUMBERS, Coded, Question, body_of, pieces, read_question
from regionmarker.gateway.errors import Failure, Headers, bad_request
from regionmarker.gateway.gateway import Gateway
from regionmarker.gateway.marking import Marking
from regionmarker.gateway.served_key import Snapshot
from regionmarker.gateway.tenants import Tenant
from regionmarker.vectors import Floats

_HEAD_START = 0.005  # seconds


class ClientGoneError(Exception):
    """Nobody is there to answer to."""


class Attendance:
    """Cancels the block when the client leaves; what comes out of it then is :class:`ClientGoneError`.

    Cancelling closes the upstream's connection, so that a server which can stop working stops as well. The watch begins
    after a few milliseconds: most requests are done by then, and never pay for it.
    """

    def __init__(self, receive: Receive) -> None:
        self._receive = receive
        self._gone = False

    def __enter__(self) -> Attendance:
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
        """Stop watching: the answer is about to be sent."""
        self._timer.cancel()
        if self._watch is not None:
            self._watch.cancel()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()
        if self._gone and kind is asyncio.CancelledError and self._task.uncancel() == 0:
            raise ClientGoneError from None


# ``POST /v1/embeddings``, from its headers to the last byte of its answer.  What can be refused is refused before the
# body is read: who is asking, how often, and whether there is any room. A plain ASGI application, because it reads
# the body and sends the answer in its own time.

ROUTE = "/v1/embeddings"
_GONE = 499  # what metrics count where nobody waited for the answer
_FEW = 64  # parts that are sent at once
_JSON = (b"content-type", b"application/json")


@dataclass(slots=True)
class Visit:
    """What is known about one request so far."""

    id: str
    started: float
    tenant: str = ""
    status: int = _GONE
    sent: bool = False  # whether an answer has begun
    headers: Headers = field(default_factory=list)


def find_header(scope: Scope, name: bytes) -> bytes:
    """Return a header's value, b"" without one.

    Examples
    --------
    >>> find_header({"headers": [(b"host", b"here")]}, b"host")
    b'here'
    """
    for key, value in scope["headers"]:
        if key == name:
            found: bytes = value
            return found
    return b""


async def find_tenant(gateway: Gateway, scope: Scope) -> Tenant:
    """Return who is asking, or refuse."""
    scheme, _, key = find_header(scope, b"authorization").partition(b" ")
    api_key = key.strip().decode("latin-1") if scheme.lower() == b"bearer" else ""
    tenant = await gateway.directory.find(api_key)
    if tenant is None:
        what = "incorrect API key provided" if api_key else "you did not provide an API key: send it as a bearer token"
        raise Failure(401, "invalid_api_key", what)
    return tenant


class Reception:
    """Answers requests for embeddings."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request; whatever happens, the client gets an answer of the one shape, or none because it left."""
        gateway = self._gateway
        visit = Visit(f"req_{secrets.token_hex(16)}", time.perf_counter())
        try:
            await self._serve(scope, receive, send, visit)
        except Failure as failure:
            await self._fail(send, visit, failure)
        except ClientGoneError:
            pass
        except Exception:  # a bug has the one shape as well
            gateway.logger.error("internal error", request_id=visit.id, exc_info=True)
            if visit.sent:
                raise  # half an answer is out: the server breaks the connection off
            await self._fail(send, visit, Failure(500, "internal_error", "the server failed; the operator was told"))
        finally:
            seconds = time.perf_counter() - visit.started
            gateway.metrics.answered(ROUTE, visit.status, visit.tenant, seconds)
            gateway.logger.debug(
                "answered", request_id=visit.id, tenant=visit.tenant, status=visit.status, seconds=seconds
            )

    async def _serve(self, scope: Scope, receive: Receive, send: Send, visit: Visit) -> None:
        gateway = self._gateway
        snapshot = gateway.keyhold.current()  # once: the whole answer has one version
        tenant = await find_tenant(gateway, scope)
        visit.tenant = tenant.name
        visit.headers = gateway.quotas.spend(tenant)
        if gateway.admission.is_full_for(tenant):
            await self._turn_away(tenant)
        question = read_question(await self._body(scope, receive))
        self._check(question, snapshot, tenant)
        with Attendance(receive) as attendance:
            # Its places are held until the answer is sent: what a slow reader has not read yet is memory, too.
            async with gateway.admission.enter(tenant, len(question)):
                parts = await self._answer(question, snapshot, tenant)
                attendance.end()
                await self._send(send, visit, 200, parts)

    async def _answer(self, question: Question, snapshot: Snapshot, tenant: Tenant) -> list[Coded]:
        gateway = self._gateway
        marking = Marking(snapshot, tenant, gateway.rollout, question.dimensions)
        form = BASE64 if question.base64 else NUMBERS

        def take(rows: Floats, first: int) -> list[Coded]:
            return form.encode(marking.serve(rows, first))

        answer = await gateway.upstream.embed(question, snapshot.width, take)
        gateway.upstream_seen = True
        gateway.metrics.served(tenant.name, len(question), answer.tokens, marking.seconds)
        gateway.directory.record(tenant.name, requests=1, inputs=len(question), tokens=answer.tokens)
        return body_of(answer.vectors, question.model, answer.tokens, form.quote)

    def _check(self, question: Question, snapshot: Snapshot, tenant: Tenant) -> None:
        """Check what the body alone cannot tell."""
        gateway = self._gateway
        if question.model not in gateway.models:
            message = f"the model does not exist here: ask for {gateway.model}"
            raise Failure(404, "model_not_found", message, param="model")
        if question.in_tokens and not gateway.upstream.takes_tokens:
            raise bad_request("'input' must be text: this model takes no lists of tokens", "input")
        if question.dimensions is not None and question.dimensions > snapshot.width:
            raise bad_request(f"'dimensions' must be at most {snapshot.width}", "dimensions")
        if tenant.name and tenant.name not in snapshot.tenants:
            # Served with the default mark, its vectors could not be traced: better none than those.
            gateway.logger.error("tenant is not in the key", tenant=tenant.name, key_id=snapshot.key_id)
            raise Failure(503, "account_not_ready", "this account is not ready yet", kind="tenant")

    async def _turn_away(self, tenant: Tenant) -> None:
        """Refuse for want of room, sooner or later; or let in after all, if there is room by then."""
        admission = self._gateway.admission
        await self._gateway.doorway.linger(tenant.name, admission.seconds_to_wait())
        if admission.is_full_for(tenant):
            raise admission.busy()

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        """Read the body, no further than it may be long and last."""
        settings = self._gateway.settings
        kind = find_header(scope, b"content-type").partition(b";")[0].strip().lower()
        if kind not in (b"application/json", b""):
            raise Failure(415, "unsupported_media_type", "send the request as application/json")
        if find_header(scope, b"content-encoding").lower() not in (b"", b"identity"):
            raise Failure(415, "unsupported_media_type", "send the request without compression")
        length = find_header(scope, b"content-length")
        if length.isdigit() and int(length) > settings.body_bytes:
            raise self._too_large()
        message = await receive()
        if message["type"] == "http.request" and not message.get("more_body"):
            chunks = [message.get("body", b"")]
        else:
            try:
                async with asyncio.timeout(settings.read):
                    chunks = await self._chunks(message, receive)
            except TimeoutError:
                raise Failure(408, "request_timeout", "the body of the request took too long") from None
        body = b"".join(chunks)
        if len(body) > settings.body_bytes:
            raise self._too_large()
        return body

    async def _chunks(self, message: Message, receive: Receive) -> list[bytes]:
        chunks: list[bytes] = []
        size = 0
        while True:
            if message["type"] != "http.request":
                raise ClientGoneError
            chunks.append(message.get("body", b""))
            size += len(chunks[-1])
            if size > self._gateway.settings.body_bytes:
                raise self._too_large()
            if not message.get("more_body"):
                return chunks
            message = await receive()

    def _too_large(self) -> Failure:
        limit = self._gateway.settings.body_bytes
        return Failure(413, "request_too_large", f"the body of the request must have at most {limit} bytes")

    async def _fail(self, send: Send, visit: Visit, failure: Failure) -> None:
        metrics = self._gateway.metrics
        if failure.code == "upstream_invalid_response":
            metrics.upstream_invalid.labels(failure.kind).inc()
        if failure.status == 429 and failure.code == "rate_limit_exceeded":
            metrics.refused(failure.kind)
        if failure.status >= 500:
            self._gateway.logger.warning(
                "request failed", request_id=visit.id, tenant=visit.tenant, status=failure.status,
                code=failure.code, kind=failure.kind,
            )  # fmt: skip
        ours = {name for name, _ in failure.headers}
        visit.headers = [pair for pair in visit.headers if pair[0] not in ours] + failure.headers
        busy = failure.kind in ("busy", "pushed_out", "patience")
        await self._send(send, visit, failure.status, [BUSY_BODY if busy else failure.body()])

    async def _send(self, send: Send, visit: Visit, status: int, parts: Sequence[Coded]) -> None:
        gateway = self._gateway
        headers = [_JSON, (b"content-length", b"%d" % sum(map(len, parts))), (b"x-request-id", visit.id.encode())]
        headers += visit.headers
        if gateway.draining:
            headers.append((b"connection", b"close"))
        visit.sent, visit.status = True, status
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
