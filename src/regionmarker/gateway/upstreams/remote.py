"""A server that speaks OpenAI's embeddings API, over aiohttp, and what its refusals mean to our client."""

from __future__ import annotations

import asyncio
import io
import ssl
from collections.abc import Awaitable, Callable, Mapping, Sequence, Sized
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import orjson

from regionmarker.crypto.secret import Secret
from regionmarker.encoders.http_messages import endpoint_of, redact, seconds_to_wait, server_message
from regionmarker.encoders.learned_limits import Cause, LearnedLimits, cause_of, largest, part_size, parts_of
from regionmarker.errors import InputError
from regionmarker.gateway.dialects import EmbeddingRequest
from regionmarker.gateway.errors import ApiError, invalid_answer, retry_headers
from regionmarker.gateway.metrics import Metrics
from regionmarker.gateway.settings import UPSTREAM_KEY_VARIABLE, Settings
from regionmarker.gateway.upstreams import MarkBlock, ServerKind, UpstreamAnswer
from regionmarker.gateway.upstreams.answer_reader import AnswerReader
from regionmarker.gateway.upstreams.retries import Retrier, RetryableError, RetryBudget

_NO_RETRY = [(b"x-should-retry", b"false")]
_LONGEST_WAIT = 120.0  # seconds that a client may be asked to wait
_CLIENTS_FAULT = frozenset({400, 413, 422})
_REFUSAL_BYTES = 1 << 16
_READ_BYTES = 1 << 20
_LARGE_BODY = 1 << 20
_PARTS_AT_ONCE = 8
_AskPart = Callable[[int, int], Awaitable[UpstreamAnswer]]  # for the inputs from the first to behind the last


class RemoteUpstream:
    """Any OpenAI-compatible server.

    Parameters
    ----------
    url, model
        The base address, as for encoders, and the model's name there.
    kind
        What kind of server it is.
    settings
        Timeouts, attempts, connections; the API key, which is sent as a bearer token and nobody else sees; and the
        inputs per request, where that is not what the kind of server takes.
    metrics
        Counts questions and retries.
    """

    def __init__(self, url: str, model: str, kind: ServerKind, settings: Settings, metrics: Metrics) -> None:
        api_key = settings.upstream_key
        if not api_key.isascii() or not api_key.isprintable() or " " in api_key.strip():
            raise InputError("the upstream's API key holds characters that no key has")
        self.name = kind.name
        self.model = model
        self.takes_tokens = kind.tokens
        self._endpoint = endpoint_of(url)
        self._kind = kind
        self._settings = settings
        self._metrics = metrics
        self._key = Secret(api_key.strip().encode())
        self._limits = LearnedLimits(settings.batch or kind.batch, base64=kind.base64)
        self._retrier = Retrier(settings.attempts, RetryBudget(), metrics.upstream_retries.inc)
        self._session: aiohttp.ClientSession | None = None
        self._one_large = asyncio.Lock()

    async def start(self) -> None:
        headers = {"content-type": "application/json", "accept": "application/json", "accept-encoding": "identity"}
        if self._key.reveal():
            headers["authorization"] = f"Bearer {self._key.reveal().decode()}"
        connect = self._settings.connect
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=self._settings.connections, keepalive_timeout=30.0),
            timeout=aiohttp.ClientTimeout(
                total=None, connect=connect, sock_connect=connect, sock_read=self._settings.read
            ),
            headers=headers,
            auto_decompress=False,  # nothing compressed is asked for: what comes so all the same may be a bomb
            cookie_jar=aiohttp.DummyCookieJar(),
            read_bufsize=_READ_BYTES,
        )

    async def is_there(self) -> bool:
        """Ask for a page that costs nothing; any answer but a server's error will do."""
        parts = urlsplit(self._endpoint)
        try:
            page = f"{parts.scheme}://{parts.netloc}{self._kind.health}"
            # A redirect is an answer. Followed, it would take the API key to whatever host it names.
            async with self._opened().get(page, allow_redirects=False) as response:
                return response.status < 500
        except (aiohttp.ClientError, TimeoutError, OSError):
            return False

    async def embed(self, request: EmbeddingRequest, width: int, mark_block: MarkBlock) -> UpstreamAnswer:
        """Ask for all inputs, in as many requests as the server's limit makes necessary."""
        deadline = asyncio.get_running_loop().time() + self._settings.total

        async def ask(first: int, last: int) -> UpstreamAnswer:
            inputs, base64 = request.inputs[first:last], self._limits.base64
            try:
                return await self._retrier.run(
                    lambda: self._ask(request, inputs, width, mark_block, first, base64), deadline
                )
            except ApiError as error:
                if not (base64 and _cause(error, inputs, base64=True) == "base64"):
                    raise
            answer = await self._retrier.run(
                lambda: self._ask(request, inputs, width, mark_block, first, False), deadline
            )
            self._limits.learn("base64", 0, 0)
            return answer

        async def ask_fitting(first: int, last: int) -> UpstreamAnswer:
            return await self._fitting(ask, request.inputs, first, last)

        try:
            async with asyncio.timeout_at(deadline):
                bounds = self._limits.bounds(request.inputs)
                if len(bounds) == 1:
                    return await self._fitting(ask, request.inputs, 0, len(request))
                return await self._together(ask_fitting, bounds)
        except TimeoutError:
            raise ApiError(
                504, "upstream_timeout", f"the upstream took more than {self._settings.total:g} s", headers=_NO_RETRY,
                kind="total",
            ) from None  # fmt: skip

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    async def _together(self, ask: _AskPart, bounds: Sequence[tuple[int, int]]) -> UpstreamAnswer:
        """Ask for parts, a few at once, and join them in order; the first that fails ends the others."""
        turns = asyncio.Semaphore(_PARTS_AT_ONCE)

        async def part(first: int, last: int) -> UpstreamAnswer:
            async with turns:
                return await ask(first, last)

        tasks = [asyncio.ensure_future(part(*bound)) for bound in bounds]
        try:
            answers = await asyncio.gather(*tasks)
        except BaseException:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            raise
        vectors = [vector for answer in answers for vector in answer.vectors]
        return UpstreamAnswer(vectors, sum(answer.tokens for answer in answers))

    async def _fitting(self, ask: _AskPart, inputs: Sequence[Sized], first: int, last: int) -> UpstreamAnswer:
        """Ask for inputs that should fit one request; find out whether fewer would, where the server says no."""
        try:
            return await ask(first, last)
        except ApiError as error:
            cause, size = _cause(error, inputs[first:last]), part_size(error.message, last - first)
            if cause is None:
                raise
        while True:  # until the server takes the first part, or refuses an input for itself
            try:
                head = await ask(first, first + size)
                break
            except ApiError as error:
                cause = _cause(error, inputs[first : first + size])
                if cause is None:
                    raise
                size = part_size(error.message, size)
        bounds = parts_of(first, last, size)
        rest = await self._together(ask, bounds[1:])
        self._limits.learn(cause, size, largest(inputs, bounds))
        return UpstreamAnswer(head.vectors + rest.vectors, head.tokens + rest.tokens)

    async def _ask(
        self,
        request: EmbeddingRequest,
        inputs: Sequence[Sized],
        width: int,
        mark_block: MarkBlock,
        first: int,
        base64: bool,
    ) -> UpstreamAnswer:
        loop = asyncio.get_running_loop()
        started, outcome = loop.time(), "cancelled"
        reader = AnswerReader(len(inputs), width, lambda rows, row: mark_block(rows, first + row))
        try:
            await self._post(await self._body(request, inputs, base64), inputs, reader)
            vectors = reader.finish()
            if self._kind.names_model and reader.model not in (None, self.model):
                raise invalid_answer("model", "the upstream answered with another model than it was asked for")
            outcome = "ok"
        except ApiError as error:
            outcome = error.kind or "refused"
            raise
        finally:
            self._metrics.asked(self.name, outcome, loop.time() - started)
        tokens = reader.tokens
        if reader.miscounted:
            self._metrics.upstream_invalid.labels("usage").inc()
        if tokens is None:
            tokens = sum(map(len, inputs)) if request.in_tokens else 0
        return UpstreamAnswer(vectors, tokens)

    async def _post(self, body: bytes, inputs: Sequence[object], reader: AnswerReader) -> None:
        data: Any = io.BytesIO(body) if len(body) > _LARGE_BODY else body
        try:
            async with self._opened().post(self._endpoint, data=data, allow_redirects=False) as response:
                try:
                    await self._read(response, inputs, reader)
                except BaseException:
                    response.close()  # an answer that is not read to its end must not go back into the pool
                    raise
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            failed = _unreachable(error, self._settings)
        else:
            return
        raise failed  # down here it carries no context: the frames of the client hold the key and the texts

    async def _read(self, response: aiohttp.ClientResponse, inputs: Sequence[object], reader: AnswerReader) -> None:
        if response.status != 200:
            body = bytearray()
            async for chunk in response.content.iter_any():
                body += chunk
                if len(body) > _REFUSAL_BYTES:
                    response.close()
                    break
            raise refusal(response.status, response.headers, bytes(body), self._key.reveal().decode(), inputs)
        if response.headers.get("content-encoding", "identity").lower() != "identity":
            raise invalid_answer("compressed", "the upstream compressed its answer, which nobody asked for")
        async for chunk in response.content.iter_any():
            reader.feed(chunk)

    async def _body(self, request: EmbeddingRequest, inputs: Sequence[Sized], base64: bool) -> bytes:
        asked: dict[str, object] = {"model": self.model, "input": inputs}
        if base64:
            asked["encoding_format"] = "base64"
        if request.user is not None:
            asked["user"] = request.user
        if sum(map(len, inputs)) <= _LARGE_BODY:
            return orjson.dumps(asked)
        async with self._one_large:  # large ones that come at once are written in as many turns of the loop
            body = orjson.dumps(asked)
            await asyncio.sleep(0)
        return body

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            raise RuntimeError("the upstream was not started")
        return self._session


def refusal(status: int, headers: Mapping[str, str], body: bytes, api_key: str, inputs: Sequence[object]) -> ApiError:
    """Translate a response other than 200: OpenAI's shape, TEI's flat one, FastAPI's, or HTML.

    Nothing of the inputs and of the upstream's API key is passed on.

    Examples
    --------
    >>> error = refusal(400, {}, b'{"error": {"message": "input is too long"}}', "", ["a"])
    >>> error.status, error.message
    (400, 'the upstream refused the request: input is too long')
    >>> refusal(401, {}, b"", "", ["a"]).status
    502
    """
    if status in _CLIENTS_FAULT:
        texts = [one for one in inputs if isinstance(one, str)]
        said = redact(server_message(body), api_key, texts) or "no message"
        return ApiError(
            400, "upstream_refused", f"the upstream refused the request: {said}", param="input", kind=str(status)
        )
    if status == 429:
        return _overloaded(429, "upstream_rate_limited", "the upstream has reached its limit", headers, body)
    if status == 503:
        return _overloaded(503, "upstream_overloaded", "the upstream is overloaded", headers, body)
    if status in (408, 409, 424, 500, 502, 504):
        return RetryableError(
            502, "upstream_error", f"the upstream failed with {status}", headers=_NO_RETRY, kind=str(status)
        )
    what = f"the upstream answered {status}, which the operator of this gateway has to look at"
    if status in (401, 403):
        what += f": is the API key in {UPSTREAM_KEY_VARIABLE} right?"
    return ApiError(502, "upstream_error", what, headers=_NO_RETRY, kind=str(status))


def _overloaded(status: int, code: str, message: str, headers: Mapping[str, str], body: bytes) -> ApiError:
    wait = seconds_to_wait(headers)
    waiting = retry_headers(1.0 if wait is None else min(wait, _LONGEST_WAIT))
    if b"insufficient_quota" in body:  # waiting does not fill an account
        return ApiError(status, code, message, headers=_NO_RETRY, kind=str(status))
    error = RetryableError(status, code, message, headers=waiting, kind=str(status))
    error.wait = wait
    return error


def _cause(error: ApiError, inputs: Sequence[Sized], *, base64: bool = False) -> Cause | None:
    """Return what a refusal may be about, other than what the client sent."""
    if error.code != "upstream_refused":
        return None
    return cause_of(int(error.kind), error.message, inputs, base64=base64)


def _unreachable(error: Exception, settings: Settings) -> ApiError:
    """Translate what went wrong on the way; the error's own words name addresses and stay here."""
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        message = f"no connection to the upstream within {settings.connect:g} s"
        return RetryableError(503, "upstream_unreachable", message, headers=_NO_RETRY, kind="connect_timeout")
    if isinstance(error, TimeoutError):
        message = f"the upstream was silent for {settings.read:g} s"
        return RetryableError(504, "upstream_timeout", message, headers=_NO_RETRY, kind="read_timeout")
    if isinstance(error, aiohttp.ClientConnectorDNSError):
        kind, message = "dns", "the upstream's name cannot be resolved"
    elif isinstance(error, aiohttp.ClientSSLError | ssl.SSLError):
        kind, message = "tls", "the upstream's certificate or encryption is not acceptable"
    elif isinstance(error, aiohttp.ClientConnectorError):
        kind, message = "refused", "the upstream cannot be reached"
    else:
        kind, message = "disconnected", "the upstream broke off its answer"
    return RetryableError(502, "upstream_unreachable", message, headers=_NO_RETRY, kind=kind)
