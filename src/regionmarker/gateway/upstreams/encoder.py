"""An encoder inside the gateway's own process, in a thread of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from regionmarker.errors import InputError, RegionMarkerError
from regionmarker.gateway.dialects import EmbeddingRequest
from regionmarker.gateway.dialects.vector_formats import EncodedVector
from regionmarker.gateway.errors import ApiError, bad_request, invalid_answer
from regionmarker.gateway.metrics import Metrics
from regionmarker.gateway.upstreams import MOST_COUNTED, MarkBlock, UpstreamAnswer
from regionmarker.gateway.upstreams.answer_reader import BLOCK
from regionmarker.vectors import Encoder, Floats


class EncoderUpstream:
    """Serves the vectors of any :class:`~regionmarker.vectors.Encoder`.

    Tokens are counted by the encoder's ``count_tokens(texts)`` where it has one, and as words where it has none.
    """

    takes_tokens = False

    def __init__(self, encoder: Encoder, metrics: Metrics | None = None) -> None:
        self.name = "encoder"
        self.model = encoder.name
        self._encoder = encoder
        self._metrics = metrics or Metrics()
        self._thread = ThreadPoolExecutor(1, "encoder")
        self._count: Callable[[list[str]], int] = getattr(encoder, "count_tokens", _words)

    async def start(self) -> None:
        await asyncio.get_running_loop().run_in_executor(self._thread, self._encoder.encode, ["one text"])

    async def is_there(self) -> bool:
        return True

    async def embed(self, request: EmbeddingRequest, width: int, mark_block: MarkBlock) -> UpstreamAnswer:
        loop = asyncio.get_running_loop()
        started, outcome = loop.time(), "failed"
        try:
            rows, tokens = await loop.run_in_executor(self._thread, self._encode, request.inputs)
            outcome = "ok"
        except InputError as error:
            raise bad_request(f"'input' cannot be embedded: {error}", "input") from None
        except RegionMarkerError:
            raise ApiError(502, "upstream_error", "the encoder failed", kind="encoder") from None
        finally:
            self._metrics.asked(self.name, outcome, loop.time() - started)
        if rows.shape != (len(request), width):
            what = f"the encoder gave vectors of width {rows.shape[-1]}, where {width} is expected"
            raise invalid_answer("width", what)
        vectors: list[EncodedVector] = []
        for first in range(0, len(rows), BLOCK):
            vectors += mark_block(rows[first : first + BLOCK], first)
            if first:
                await asyncio.sleep(0)  # others want their turn
        return UpstreamAnswer(vectors, tokens)

    def _encode(self, texts: Any) -> tuple[Floats, int]:
        rows, tokens = self._encoder.encode(texts), int(self._count(texts))
        if not 0 <= tokens <= MOST_COUNTED:
            self._metrics.upstream_invalid.labels("usage").inc()
            tokens = 0
        return rows, tokens

    async def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)


def _words(texts: list[str]) -> int:
    return sum(max(1, len(text.split())) for text in texts)
