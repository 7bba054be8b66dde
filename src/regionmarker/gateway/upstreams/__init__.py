"""Where clean vectors come from: a spec becomes an upstream.

wordllama, sentence-transformers:NAME     an encoder in the gateway's own process
openai:URL#MODEL, vllm:, tei:, ollama:, litellm:     a server of that kind
https://HOST/v1#MODEL                     any other compatible server
"""

from __future__ import annotations

from regionmarker.encoders.http_messages import parse_spec
from regionmarker.errors import InputError
from regionmarker.gateway.metrics import Metrics
from regionmarker.gateway.settings import Settings
from regionmarker.gateway.upstreams.dialects import DIALECTS
from regionmarker.gateway.upstreams.protocol import Upstream


def load_upstream(
    spec: str, settings: Settings, metrics: Metrics | None = None, *, api_key: str = "", batch: int | None = None
) -> Upstream:
    """Load an upstream by its spec.

    Examples
    --------
    >>> load_upstream("tei:http://127.0.0.1:8080#bge-m3", Settings()).name
    'tei'
    >>> load_upstream("http://127.0.0.1:8080", Settings())
    Traceback (most recent call last):
    ...
    regionmarker.errors.InputError: name the upstream's model behind its URL: https://HOST/v1#MODEL
    """
    head, _, rest = spec.partition(":")
    if head in ("http", "https"):
        if "#" not in spec:
            raise InputError("name the upstream's model behind its URL: https://HOST/v1#MODEL")
        head, rest = "compatible", spec
    if head in DIALECTS:
        from regionmarker.gateway.upstreams.remote import RemoteUpstream

        url, model = parse_spec(rest)
        return RemoteUpstream(url, model, DIALECTS[head], settings, metrics, api_key=api_key, batch=batch)
    from regionmarker.encoders import load_encoder
    from regionmarker.gateway.upstreams.encoder import EncoderUpstream

    return EncoderUpstream(load_encoder(spec), metrics)
