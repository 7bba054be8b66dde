"""Any server that speaks OpenAI's embeddings API: OpenAI, TEI, vLLM, Ollama, LiteLLM, Infinity, our own gateway.

What is asked here may be paid for and may end up in court, so every answer is checked, and its bytes can be seen before
they are read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, ClassVar

import httpx2

from regionmarker.encoders.base import CheckedEncoder
from regionmarker.encoders.http_client import Endpoint, EndpointError
from regionmarker.encoders.http_messages import base_of, decode_answer, endpoint_of, parse_spec
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
        Texts per request. It shrinks by itself where the server says that a batch is too large.
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
        self.endpoint = endpoint_of(url)
        self.model = model
        self.on_response = on_response
        self._asks_base64 = True
        name = f"openai:{base_of(self.endpoint)}#{model}"
        self._server = Endpoint(
            self.endpoint,
            name,
            api_key=api_key,
            timeout=timeout,
            attempts=attempts,
            backoff=backoff,
            transport=transport,
        )
        super().__init__(name, batch_size=batch_size)

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
        question: dict[str, object] = {"model": self.model, "input": texts}
        if self._asks_base64:
            question["encoding_format"] = "base64"
        body = self._server.ask(question, texts)
        if self.on_response is not None:
            self.on_response(texts, body)
        return body


def _is_too_large(error: EndpointError) -> bool:
    """Tell whether the server would take fewer texts at a time: TEI takes 32, and says so with 413 or 422."""
    return error.status == 413 or (error.status in (400, 422) and "batch" in error.said.lower())
