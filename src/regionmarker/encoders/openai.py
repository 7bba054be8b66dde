"""Any server that speaks OpenAI's embeddings API: OpenAI, TEI, vLLM, Ollama, LiteLLM, Infinity, our own gateway.

What is asked here may be paid for and may end up in court, so every answer is checked, and its bytes can be seen before
they are read.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, ClassVar

import httpx2

from regionmarker.encoders.base import CheckedEncoder
from regionmarker.encoders.http_client import Endpoint, EndpointError
from regionmarker.encoders.http_messages import KEY_VARIABLE, base_of, decode_answer, endpoint_of, parse_spec
from regionmarker.encoders.learned_limits import Cause, LearnedLimits, cause_of, largest, part_size, parts_of
from regionmarker.errors import InputError, OutsideError, RegionMarkerError
from regionmarker.vectors import AnyArray

_MOST_TEXTS = 2048  # OpenAI's limit for one request


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
        Texts per request. Where the server refuses so many and takes all of them in smaller parts, parts of that size
        are asked for during the next minutes.
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
    clock
        Seconds that only go forward.
    key_variable
        Where the API key is looked for in the environment, and what errors name.
    called
        What errors call the server; its name when not given.

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
        clock: Callable[[], float] = time.monotonic,
        key_variable: str = KEY_VARIABLE,
        called: str = "",
    ) -> None:
        if batch_size > _MOST_TEXTS:
            raise InputError(f"batch_size must be at most {_MOST_TEXTS}, but is {batch_size}")
        self.endpoint = endpoint_of(url, key_variable=key_variable)
        self.model = model
        self.on_response = on_response
        self._limits = LearnedLimits(batch_size, clock=clock)
        name = f"openai:{base_of(self.endpoint)}#{model}"
        self._server = Endpoint(
            self.endpoint,
            called or name,
            api_key=api_key,
            timeout=timeout,
            attempts=attempts,
            backoff=backoff,
            transport=transport,
            key_variable=key_variable,
        )
        super().__init__(name, batch_size=batch_size)
        self.called = called or name

    @classmethod
    def from_spec(cls, rest: str, **options: Any) -> OpenAIEncoder:
        return cls(*parse_spec(rest), **options)

    def close(self) -> None:
        """Close the connections; the garbage collector does it as well."""
        self._server.close()

    def __enter__(self) -> OpenAIEncoder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _embed(self, texts: list[str], positions: Sequence[int]) -> list[AnyArray]:
        vectors: list[AnyArray] = []
        for first, last in self._limits.bounds(texts):
            vectors += self._embed_part(texts[first:last], positions[first:last])
        return vectors

    def _embed_part(self, texts: list[str], positions: Sequence[int]) -> list[AnyArray]:
        """Embed texts that should fit one request; find out whether fewer would, where the server says no."""
        try:
            return self._answered(texts, positions)
        except EndpointError as error:
            cause, size = self._cause(error, texts), part_size(error.said, len(texts))
            if cause is None:
                raise
        while True:  # until the server takes the first part, or refuses a text for itself
            try:
                vectors = self._answered(texts[:size], positions[:size])
                break
            except EndpointError as error:
                cause = self._cause(error, texts[:size])
                if cause is None:
                    raise
                size = part_size(error.said, size)
        bounds = parts_of(0, len(texts), size)
        for first, last in bounds[1:]:
            vectors += self._answered(texts[first:last], positions[first:last])
        self._limits.learn(cause, size, largest(texts, bounds))
        return vectors

    def _cause(self, error: EndpointError, texts: list[str]) -> Cause | None:
        return cause_of(error.status or 0, error.said, texts, base64=False)

    def _answered(self, texts: list[str], positions: Sequence[int]) -> list[AnyArray]:
        """Ask once; and once more without base64, where the server complains about it."""
        base64 = self._limits.base64
        try:
            body = self._ask(texts, base64=base64)
        except EndpointError as error:
            if cause_of(error.status or 0, error.said, texts, base64=base64) != "base64":
                raise
            body = self._ask(texts, base64=False)
            self._limits.learn("base64", 0, 0)
        return decode_answer(body, positions, self.called)

    def _ask(self, texts: list[str], *, base64: bool) -> bytes:
        question: dict[str, object] = {"model": self.model, "input": texts}
        if base64:
            question["encoding_format"] = "base64"
        body = self._server.ask(question, texts)
        if self.on_response is not None:
            self.on_response(texts, body)
        return body
