"""What the gateway expects of an upstream."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

from regionmarker.gateway.dialects.openai import EmbeddingRequest, EncodedVector
from regionmarker.vectors import Floats

MarkBlock = Callable[[Floats, int], list[EncodedVector]]
"""Marks and encodes a block of clean rows (n, D), given the number of its first; the only way into a response."""


class UpstreamAnswer(NamedTuple):
    """An upstream's whole answer, marked and encoded."""

    vectors: list[EncodedVector]  # in the order of the inputs
    tokens: int


class Upstream(Protocol):
    """Where clean vectors come from."""

    @property
    def name(self) -> str:
        """What metrics and logs call it; no address."""
        ...

    @property
    def model(self) -> str:
        """The model's name."""
        ...

    @property
    def takes_tokens(self) -> bool:
        """Whether inputs may be lists of tokens."""
        ...

    async def start(self) -> None:
        """Open what it needs; called once, in the gateway's event loop."""
        ...

    async def is_there(self) -> bool:
        """Tell whether it can be reached, without asking the model anything."""
        ...

    async def embed(self, request: EmbeddingRequest, width: int, mark_block: MarkBlock) -> UpstreamAnswer:
        """Embed the inputs, handing every block of rows to ``mark_block``; raise an ``ApiError``."""
        ...

    async def close(self) -> None:
        """Close what is open."""
        ...
