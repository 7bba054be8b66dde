"""One address of an OpenAI-compatible server: asks, waits, asks again, and tells no secret.

The official client checks almost nothing, retries without telling and never retries TEI's 424; what is asked here may
be paid for and may end up in court.
"""

from __future__ import annotations

import json
import os
import time
import weakref
from collections.abc import Generator, Mapping, Sequence
from typing import NoReturn

import httpx2
import stamina

from regionmarker.encoders.http_messages import KEY_VARIABLE, redact, seconds_to_wait, server_message
from regionmarker.errors import InputError, OutsideError, SecretLeakError

_NOT_ALLOWED = frozenset({401, 403})
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


class Endpoint:
    """An address that takes JSON by POST.

    Parameters
    ----------
    address
        The full address.
    name
        What errors call it.
    api_key, timeout, attempts, backoff, transport, key_variable
        As for :class:`~regionmarker.encoders.openai.OpenAIEncoder`.

    Examples
    --------
    >>> echo = httpx2.MockTransport(lambda request: httpx2.Response(200, content=request.content))
    >>> endpoint = Endpoint("http://localhost/v1/embeddings", "local", transport=echo)
    >>> endpoint.ask({"input": ["a text"]}, ["a text"])
    b'{"input": ["a text"]}'
    >>> endpoint.close()
    """

    def __init__(
        self,
        address: str,
        name: str,
        *,
        api_key: str | None = None,
        timeout: float = 60.0,
        attempts: int = 6,
        backoff: float = 0.5,
        transport: httpx2.BaseTransport | None = None,
        key_variable: str = KEY_VARIABLE,
    ) -> None:
        if attempts < 1 or timeout <= 0 or backoff < 0:
            raise InputError("attempts must be at least 1, timeout above 0 and backoff not below 0")
        self.address, self.name = address, name
        self._timeout, self._attempts, self._backoff = timeout, attempts, backoff
        self.key = ApiKey(os.environ.get(key_variable, "") if api_key is None else api_key, key_variable)
        limits = httpx2.Timeout(timeout, connect=min(timeout, 10.0))
        self._client = httpx2.Client(auth=self.key, timeout=limits, transport=transport)
        self.close = weakref.finalize(self, self._client.close)
        """Close the connections; the garbage collector does it as well."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.address!r})"

    def ask(self, question: Mapping[str, object], texts: Sequence[str]) -> bytes:
        """Ask once, and again as the failures allow; ``texts`` are what no error message may repeat."""
        for attempt in stamina.retry_context(
            on=_again,
            attempts=self._attempts,
            timeout=None,  # attempts and waits are bounded, and so is their sum
            wait_initial=self._backoff,
            wait_jitter=self._backoff,
            wait_max=30.0,
        ):
            with attempt:
                return self._post(question, texts)
        raise AssertionError("unreachable")

    def _post(self, question: Mapping[str, object], texts: Sequence[str]) -> bytes:
        headers = {"content-type": "application/json"}
        deadline = time.monotonic() + self._timeout
        try:
            with self._client.stream("POST", self.address, content=json.dumps(question), headers=headers) as response:
                body = self._read(response, deadline)
        except httpx2.TimeoutException:
            failure = f"did not answer within {self._timeout:g} s"
        except httpx2.RequestError as error:
            failure = f"cannot be reached: {redact(str(error) or type(error).__name__, self.key.value, texts)}"
        else:
            if response.status_code != 200:
                self._refuse(response, body, texts)
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

    def _refuse(self, response: httpx2.Response, body: bytes, texts: Sequence[str]) -> NoReturn:
        status, message = response.status_code, server_message(body)
        again: bool | float = status in _RETRIED or status >= 500
        retry = response.headers.get("x-should-retry", "")
        if retry in ("true", "false"):
            again = retry == "true"
        if status == 429 and b"insufficient_quota" in body:
            again = False  # waiting does not fill an account
        wait = seconds_to_wait(response.headers)
        if again and wait and status in (429, 503):
            again = wait if wait <= _LONGEST_WAIT else False
        later = f" (it asks to wait {wait:.0f} s)" if wait and wait > _LONGEST_WAIT else ""
        said = redact(message, self.key.value, texts) or "no message"
        hint = f"; {self.key.hint}" if status in _NOT_ALLOWED else ""
        raise EndpointError(
            f"{self.name} answered {status}: {said}{later}{hint}", status=status, said=said, again=again
        )


def _again(error: Exception) -> bool | float:
    return error.again if isinstance(error, EndpointError) else False


class ApiKey(httpx2.Auth):
    """An API key that goes nowhere but into the header."""

    __slots__ = ("value", "variable")

    def __init__(self, value: str, variable: str = KEY_VARIABLE) -> None:
        self.value, self.variable = value.strip(), variable
        if not self.value.isascii() or not self.value.isprintable() or " " in self.value:
            raise InputError(f"the API key holds characters that no key has: check {variable}")

    @property
    def hint(self) -> str:
        """What to do where a server does not let us in."""
        if self.value:
            return f"check the API key in {self.variable}"
        return f"no API key was sent: set {self.variable}"

    def __repr__(self) -> str:
        return "<API key>" if self.value else "<no API key>"

    def __reduce_ex__(self, protocol: object) -> NoReturn:
        raise SecretLeakError("an encoder with an API key cannot be copied or pickled: load it again by its spec")

    def auth_flow(self, request: httpx2.Request) -> Generator[httpx2.Request, httpx2.Response, None]:
        if self.value:
            request.headers["Authorization"] = f"Bearer {self.value}"
        yield request
