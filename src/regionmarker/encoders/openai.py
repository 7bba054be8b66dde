"""Any server that speaks OpenAI's embeddings API: OpenAI, TEI, vLLM, Ollama, LiteLLM, Infinity, our own gateway.

The official client checks almost nothing, retries without telling and never retries TEI's 424; what is asked here may
be paid for and may end up in court, so every answer is checked, and its bytes can be seen before they are read.
"""

from __future__ import annotations

import json
import os
import time
import weakref
from collections.abc import Callable, Generator, Sequence
from types import TracebackType
from typing import Any, ClassVar, NoReturn

import httpx2
import stamina

from regionmarker.encoders.checked import CheckedEncoder
from regionmarker.encoders.wire import (
    base_of,
    decode_answer,
    endpoint_of,
    parse_spec,
    redact,
    seconds_to_wait,
    server_message,
)
from regionmarker.errors import InputError, OutsideError, RegionMarkerError, SecretLeakError
from regionmarker.protocols import AnyArray

_MOST_TEXTS = 2048  # OpenAI's limit for one request
_MOST_BYTES = 1 << 28  # of one response: 2048 vectors of width 3072 as decimal numbers are half of it
_LONGEST_WAIT = 120.0  # seconds; a server that asks for more is out of service
_RETRIED = frozenset({408, 409, 424, 429})  # and 500 to 599


class EndpointError(OutsideError):
    """A server could not be reached, or refused.

    Attributes
    ----------
    status
        The HTTP status, or None where there was no answer.
    said
        The server's message, shortened, without the texts and the key.

    Examples
    --------
    >>> EndpointError("it answered 404: no such model", status=404, said="no such model").status
    404
    """

    def __init__(self, message: str, *, status: int | None = None, said: str = "", again: bool | float = False) -> None:
        super().__init__(message)
        self.status = status
        self.said = said
        self.again = again  # whether to ask again; a number is the seconds to wait before


class OpenAIEncoder(CheckedEncoder):
    """A model behind an OpenAI-compatible endpoint.

    Parameters
    ----------
    url
        The base address, with ``/v1`` (or another version) or without it; or the full address, which ends in
        ``/embeddings``.
    model
        The model's name on that server.
    api_key
        Sent as a bearer token. None takes it from the environment's ``OPENAI_API_KEY``; ``""`` sends none, as is right
        for a server that is not to be trusted with it. It is in no repr, error, log or cache.
    batch_size
        Texts a request. It shrinks by itself where the server says that a batch is too large.
    timeout
        Seconds for one request, from its start to the last byte of its answer.
    attempts
        How often one batch is asked for at the most.
    backoff
        Seconds before the second attempt; doubles each time up to 30, with as much jitter as this. What a server
        asks for by ``Retry-After`` comes first.
    transport
        Another way to the server than the network: ``httpx2.MockTransport`` in a test.
    on_response
        Called with the texts and the body of each successful response, before it is read or checked: the
        place to take a digest for a transcript.

    Examples
    --------
    >>> def serve(request):
    ...     return httpx2.Response(200, json={"data": [{"index": 0, "embedding": [3.0, 4.0]}]})
    >>> with OpenAIEncoder("http://localhost", "small", transport=httpx2.MockTransport(serve)) as encoder:
    ...     encoder.name, encoder.encode(["a text"])
    ('openai:http://localhost/v1#small', array([[0.6, 0.8]], dtype=float32))
    """

    blame: ClassVar[type[RegionMarkerError]] = OutsideError

    def __init__(
        self,
        url: str,
        model: str,
        *,
        api_key: str | None = None,
        batch_size: int = 128,
        timeout: float = 60.0,
        attempts: int = 6,
        backoff: float = 0.5,
        transport: httpx2.BaseTransport | None = None,
        on_response: Callable[[list[str], bytes], None] | None = None,
    ) -> None:
        if batch_size > _MOST_TEXTS:
            raise InputError(f"batch_size must be at most {_MOST_TEXTS}, but is {batch_size}")
        if attempts < 1 or timeout <= 0 or backoff < 0:
            raise InputError("attempts must be at least 1, timeout above 0 and backoff not below 0")
        self.endpoint = endpoint_of(url)
        self.model = model
        self.on_response = on_response
        self._timeout, self._attempts, self._backoff = timeout, attempts, backoff
        self._asks_base64 = True
        self._key = _Key(os.environ.get("OPENAI_API_KEY", "") if api_key is None else api_key)
        limits = httpx2.Timeout(timeout, connect=min(timeout, 10.0))
        self._client = httpx2.Client(auth=self._key, timeout=limits, transport=transport)
        self._close = weakref.finalize(self, self._client.close)
        super().__init__(f"openai:{base_of(self.endpoint)}#{model}", batch_size=batch_size)

    @classmethod
    def from_spec(cls, rest: str, **options: Any) -> OpenAIEncoder:
        """Load ``openai:URL#MODEL``."""
        return cls(*parse_spec(rest), **options)

    def close(self) -> None:
        """Close the connections; the garbage collector does it as well."""
        self._close()

    def __enter__(self) -> OpenAIEncoder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _embed(self, texts: list[str], positions: Sequence[int]) -> list[AnyArray]:
        try:
            body = self._ask(texts)
        except EndpointError as error:
            if self._asks_base64 and error.status in (400, 422) and "encoding_format" in error.said:
                self._asks_base64 = False  # this server knows only numbers, or not even the field: leave it out
            elif len(texts) > 1 and _is_too_large(error):
                half = (len(texts) + 1) // 2
                self.batch_size = min(self.batch_size or half, half)
                return [*self._embed(texts[:half], positions[:half]), *self._embed(texts[half:], positions[half:])]
            else:
                raise
            return self._embed(texts, positions)
        return decode_answer(body, positions, self.name)

    def _ask(self, texts: list[str]) -> bytes:
        """Ask for one batch, again and again as the failures allow."""
        for attempt in stamina.retry_context(
            on=_again,
            attempts=self._attempts,
            timeout=None,  # attempts and waits are bounded, and so is their sum
            wait_initial=self._backoff,
            wait_jitter=self._backoff,
            wait_max=30.0,
        ):
            with attempt:
                return self._post(texts)
        raise AssertionError("unreachable")

    def _post(self, texts: list[str]) -> bytes:
        """Ask once."""
        question: dict[str, object] = {"model": self.model, "input": texts}
        if self._asks_base64:
            question["encoding_format"] = "base64"
        headers = {"content-type": "application/json"}
        deadline = time.monotonic() + self._timeout
        try:
            with self._client.stream("POST", self.endpoint, content=json.dumps(question), headers=headers) as response:
                body = self._read(response, deadline)
        except httpx2.TimeoutException:
            failure = f"did not answer within {self._timeout:g} s"
        except httpx2.RequestError as error:
            failure = f"cannot be reached: {redact(str(error) or type(error).__name__, self._key.value, texts)}"
        else:
            if response.status_code != 200:
                self._refuse(response, body, texts)
            if self.on_response is not None:
                self.on_response(texts, body)
            return body
        # Raised down here so that it carries no context: the frames of the client hold the key and the texts.
        raise EndpointError(f"{self.name} {failure}", again=True)

    @staticmethod
    def _read(response: httpx2.Response, deadline: float) -> bytes:
        """Read a body that may drip for ever or never end."""
        body = bytearray()
        for piece in response.iter_bytes():
            body += piece
            if len(body) > _MOST_BYTES:
                raise httpx2.RemoteProtocolError(f"its answer is larger than {_MOST_BYTES >> 20} MiB")
            if time.monotonic() > deadline:
                raise httpx2.ReadTimeout("the answer takes too long")
        return bytes(body)

    def _refuse(self, response: httpx2.Response, body: bytes, texts: list[str]) -> NoReturn:
        status, message = response.status_code, server_message(body)
        again: bool | float = status in _RETRIED or status >= 500
        hint = response.headers.get("x-should-retry", "")
        if hint in ("true", "false"):
            again = hint == "true"
        if status == 429 and b"insufficient_quota" in body:
            again = False  # waiting does not fill an account
        wait = seconds_to_wait(response.headers)
        if again and wait and status in (429, 503):
            again = wait if wait <= _LONGEST_WAIT else False
        later = f" (it asks to wait {wait:.0f} s)" if wait and wait > _LONGEST_WAIT else ""
        said = redact(message, self._key.value, texts) or "no message"
        raise EndpointError(f"{self.name} answered {status}: {said}{later}", status=status, said=said, again=again)


def _again(error: Exception) -> bool | float:
    return error.again if isinstance(error, EndpointError) else False


def _is_too_large(error: EndpointError) -> bool:
    """Tell whether the server would take fewer texts at a time: TEI takes 32, and says so with 413 or 422."""
    return error.status == 413 or (error.status in (400, 422) and "batch" in error.said.lower())


class _Key(httpx2.Auth):
    """An API key that goes nowhere but into the header."""

    __slots__ = ("value",)

    def __init__(self, value: str) -> None:
        self.value = value.strip()
        if not self.value.isascii() or not self.value.isprintable() or " " in self.value:
            raise InputError("the API key holds characters that no key has: check OPENAI_API_KEY")

    def __repr__(self) -> str:
        return "<API key>" if self.value else "<no API key>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise SecretLeakError("an encoder with an API key cannot be copied or pickled: load it again by its spec")

    def auth_flow(self, request: httpx2.Request) -> Generator[httpx2.Request, httpx2.Response, None]:
        if self.value:
            request.headers["Authorization"] = f"Bearer {self.value}"
        yield request
