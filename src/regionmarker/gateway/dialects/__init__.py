"""How clients ask and are answered: a dialect reads requests, writes answers, and says so in the OpenAPI document.

A further dialect is a file beside ``openai``, a module that follows :class:`Dialect`, and an entry in
``openapi.DIALECTS``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from regionmarker.vectors import Floats

EncodedVector = bytes | memoryview
"""One vector as it is sent, without the quotes around it."""


@dataclass(frozen=True, slots=True, repr=False)
class EmbeddingRequest:
    """What a client asks, in one form whatever form it came in.

    Attributes
    ----------
    inputs
        Texts, or lists of tokens.
    in_tokens
        Whether they are lists of tokens.
    base64
        Whether the answer's vectors are base64.
    """

    inputs: list[str] | list[list[int]]
    in_tokens: bool
    model: str
    base64: bool
    dimensions: int | None
    user: str | None

    def __len__(self) -> int:
        return len(self.inputs)


class VectorFormat(NamedTuple):
    """How vectors are written."""

    encode: Callable[[Floats], list[EncodedVector]]
    quote: bytes  # what stands around each


class Dialect(Protocol):
    """One way to ask for embeddings over HTTP."""

    route: str
    """Where requests are posted."""
    structs: Sequence[type]
    """What the OpenAPI document lists as its schemas."""

    def read_request(self, body: bytes | bytearray) -> EmbeddingRequest:
        """Read and check a request's body; raise an ``ApiError`` that says what is wrong with it."""

    def format_of(self, request: EmbeddingRequest) -> VectorFormat:
        """Return how the vectors of the answer are written."""

    def answer(self, request: EmbeddingRequest, vectors: Sequence[EncodedVector], tokens: int) -> list[EncodedVector]:
        """Return the body of a good answer in parts, to be joined or sent one after the other."""

    def request_schema(self, models: Sequence[str], width: int) -> dict[str, Any]:
        """Return the JSON schema of a request's body, for these models and this width."""
