"""How the servers that speak OpenAI's embeddings API differ from each other."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Dialect:
    """One kind of server.

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


DIALECTS = {
    dialect.name: dialect
    for dialect in (
        Dialect("openai", names_model=True),
        Dialect("vllm", names_model=True, health="/health"),
        Dialect("tei", batch=32, health="/health"),
        Dialect("ollama", tokens=False, names_model=True, health="/"),
        Dialect("litellm", health="/health/liveliness"),
        Dialect("compatible"),
    )
}
"""By name; ``compatible`` is any other server, of which nothing is assumed."""
