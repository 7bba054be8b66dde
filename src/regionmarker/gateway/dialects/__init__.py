"""How clients ask and are answered: a dialect reads requests, writes answers, and says so in the OpenAPI document.

A further dialect is a file beside ``openai``, a module that follows :class:`Dialect`, and an entry in
``openapi.DIALECTS``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from regionmarker.gateway.dialects.vector_formats import EncodedVector, VectorFormat
from regionmarker.gateway.errors import ApiError


@dataclass(frozen=True, slots=True, repr=False)
class EmbeddingRequest:
    """What a client asks, in one form whatever form it came in.

    Attributes
    ----------
    inputs
        Texts, or lists of tokens.
    in_tokens
        Whether they are lists of tokens.
    formats
        How the answer's vectors are written; one, unless the dialect can answer in several at once.
    input_type
        What the texts are for, in Cohere's words; upstreams that know no such thing are not told.
    """

    inputs: list[str] | list[list[int]]
    in_tokens: bool
    model: str
    formats: tuple[VectorFormat, ...]
    dimensions: int | None = None
    user: str | None = None
    input_type: str | None = None

    def __len__(self) -> int:
        return len(self.inputs)


class Dialect(Protocol):
    """One way to ask for embeddings over HTTP."""

    route: str
    """Where requests are posted."""
    name: str
    """What the OpenAPI document calls the operation."""
    structs: Sequence[type]
    """What the OpenAPI document lists as its schemas: a good answer first, then an error, then what else there is."""

    def read_request(self, body: bytes | bytearray) -> EmbeddingRequest:
        """Read and check a request's body; raise an ``ApiError`` that says what is wrong with it."""

    def answer(self, request: EmbeddingRequest, vectors: Sequence[EncodedVector], tokens: int) -> list[EncodedVector]:
        """Return the body of a good answer in parts, to be joined or sent one after the other."""

    def error_body(self, error: ApiError) -> bytes:
        """Return the body of any other answer, in the dialect's own shape."""

    def request_schema(self, models: Sequence[str], width: int) -> dict[str, Any]:
        """Return the JSON schema of a request's body, for these models and this width."""
