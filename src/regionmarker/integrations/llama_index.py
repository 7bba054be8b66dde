"""LlamaIndex: a ``BaseEmbedding`` that marks what another one returns, documents and queries alike."""

from __future__ import annotations

from typing import Any, ClassVar

from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import PrivateAttr

from regionmarker.crypto.secret import Sealed
from regionmarker.marking.marker import RegionMarker

_TAKEN_OVER = ("model_name", "embed_batch_size", "num_workers", "rate_limiter", "callback_manager")


class MarkedEmbedding(Sealed, BaseEmbedding):
    """An embedding model whose vectors are marked before anyone sees them.

    Parameters
    ----------
    embedding : BaseEmbedding
        Whose vectors are marked; of unit length, unless the key normalises.
    marker : RegionMarker
        A marker with a key or a serving key.
    tenant : str
        Whose vectors these are.
    **settings
        What every LlamaIndex embedding takes, such as ``embeddings_cache``; unless given, name, batch size, workers,
        rate limiter and callbacks are those of ``embedding``.

    Notes
    -----
    The other one is asked by its inner methods: its public ones would show the clean vectors to every observer, and
    keep them in its cache.

    Examples
    --------
    >>> import numpy as np
    >>> from llama_index.core import MockEmbedding
    >>> texts = [f"text {number}" for number in range(600)]
    >>> rows = np.random.default_rng(0).standard_normal((600, 64)).astype(np.float32)
    >>> marker = RegionMarker(seed=1, normalise=True).fit(texts, embeddings=rows)
    >>> marked = MarkedEmbedding(MockEmbedding(embed_dim=64), marker, tenant="acme")
    >>> len(marked.get_query_embedding("a question"))
    64
    """

    _instead: ClassVar[str] = "load the key where it is needed and wrap the embedding there"
    _inner: BaseEmbedding = PrivateAttr()
    _marker: RegionMarker = PrivateAttr()
    _tenant: str = PrivateAttr()

    def __init__(self, embedding: BaseEmbedding, marker: RegionMarker, *, tenant: str = "", **settings: Any) -> None:
        super().__init__(**{**{name: getattr(embedding, name) for name in _TAKEN_OVER}, **settings})
        self._inner, self._marker, self._tenant = embedding, marker, tenant

    @classmethod
    def class_name(cls) -> str:
        return "MarkedEmbedding"

    def _get_query_embedding(self, query: str) -> list[float]:
        return self._marked([self._inner._get_query_embedding(query)])[0]

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return self._marked([await self._inner._aget_query_embedding(query)])[0]

    def _get_text_embedding(self, text: str) -> list[float]:
        return self._get_text_embeddings([text])[0]

    async def _aget_text_embedding(self, text: str) -> list[float]:
        return (await self._aget_text_embeddings([text]))[0]

    def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return self._marked(self._inner._get_text_embeddings(texts))

    async def _aget_text_embeddings(self, texts: list[str]) -> list[list[float]]:
        return self._marked(await self._inner._aget_text_embeddings(texts))

    def _marked(self, rows: list[list[float]]) -> list[list[float]]:
        marked: list[list[float]] = self._marker.transform(rows, self._tenant).tolist() if rows else []
        return marked
