"""Where clean vectors come from: a spec becomes an upstream.

wordllama, sentence-transformers:NAME     an encoder in the gateway's own process
openai:URL#MODEL, vllm:, tei:, ollama:, litellm:     a server of that kind
https://HOST/v1#MODEL                     any other compatible server
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from regionmarker.encoders.http_messages import parse_spec
from regionmarker.errors import InputError
from regionmarker.gateway.dialects import EmbeddingRequest
from regionmarker.gateway.dialects.vector_formats import EncodedVector
from regionmarker.gateway.metrics import Metrics
from regionmarker.gateway.settings import Settings
from regionmarker.vectors import Floats

MarkBlock = Callable[[Floats, int], list[EncodedVector]]
"""Marks and encodes a block of clean rows (n, D), given the number of its first; the only way into a response.

The block may be used again for the next rows.
"""


MOST_COUNTED = 2**31 - 1
"""Tokens that one answer may have cost: what is beyond is a mistake, and must not reach anyone's account."""


class UpstreamAnswer(NamedTuple):
    """An upstream's whole answer, marked and encoded."""

    vectors: list[EncodedVector]  # in the order of the inputs
    tokens: int


class Upstream(Protocol):
    """Where clean vectors come from."""

    name: str
    """What metrics and logs call it; no address."""
    model: str
    """The model's name."""
    takes_tokens: bool
    """Whether inputs may be lists of tokens."""

    async def start(self) -> None:
        """Open what it needs; called once, in the gateway's event loop."""

    async def is_there(self) -> bool:
        """Say whether it can be reached, without asking the model anything."""

    async def embed(self, request: EmbeddingRequest, width: int, mark_block: MarkBlock) -> UpstreamAnswer:
        """Embed the inputs, handing every block of rows to ``mark_block``; raise an ``ApiError`` for the client."""

    async def close(self) -> None:
        """Close what is open."""


@dataclass(frozen=True)
class ServerKind:
    """How one kind of server that speaks OpenAI's embeddings API differs from the others.

    Attributes
    ----------
    batch
        Inputs that it takes in one request by default; a refusal of larger ones makes it smaller.
    base64
        Whether to ask it for base64, which is a quarter of the bytes and read ten times as fast.
    tokens
        Whether it takes lists of tokens.
    names_model
        Whether its answers name the model that was asked for: another name is then another model.
    health
        A path that answers without asking the model, from the root of the server.
    """

    name: str
    batch: int = 2048
    base64: bool = True
    tokens: bool = True
    names_model: bool = False
    health: str = "/v1/models"


SERVER_KINDS = {
    kind.name: kind
    for kind in (
        ServerKind("openai", names_model=True),
        ServerKind("vllm", names_model=True, health="/health"),
        ServerKind("tei", batch=32, health="/health"),
        ServerKind("ollama", tokens=False, names_model=True, health="/"),
        ServerKind("litellm", health="/health/liveliness"),
        ServerKind("compatible"),
    )
}
"""By name; ``compatible`` is any other server, of which nothing is assumed."""


def load_upstream(settings: Settings, metrics: Metrics | None = None) -> Upstream:
    """Load the upstream that the settings name.

    Examples
    --------
    >>> from pathlib import Path
    >>> key = Path("serving.rmkey")
    >>> load_upstream(Settings(key, upstream="tei:http://127.0.0.1:8080#bge-m3")).name
    'tei'
    >>> load_upstream(Settings(key, upstream="http://127.0.0.1:8080"))
    Traceback (most recent call last):
    ...
    regionmarker.errors.InputError: name the upstream's model behind its URL: https://HOST/v1#MODEL
    """
    metrics = metrics or Metrics()
    head, _, rest = settings.upstream.partition(":")
    if head in ("http", "https"):
        if "#" not in settings.upstream:
            raise InputError("name the upstream's model behind its URL: https://HOST/v1#MODEL")
        head, rest = "compatible", settings.upstream
    if head in SERVER_KINDS:
        from regionmarker.gateway.upstreams.remote import RemoteUpstream

        url, model = parse_spec(rest)
        return RemoteUpstream(url, model, SERVER_KINDS[head], settings, metrics)
    from regionmarker.encoders import load_encoder
    from regionmarker.gateway.upstreams.encoder import EncoderUpstream

    return EncoderUpstream(load_encoder(settings.upstream), metrics)
