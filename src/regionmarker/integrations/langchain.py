"""LangChain: an ``Embeddings`` that marks what another one returns, documents and queries alike."""

from __future__ import annotations

from langchain_core.embeddings import Embeddings

from regionmarker.crypto.secret import Sealed
from regionmarker.marking.marker import RegionMarker


class MarkedEmbeddings(Sealed, Embeddings):
    """Embeddings that are marked before anyone sees them.

    Parameters
    ----------
    embeddings : langchain_core.embeddings.Embeddings
        Whose vectors are marked; of unit length, unless the key normalises.
    marker : RegionMarker
        A marker with a key or a serving key.
    tenant : str
        Whose vectors these are.

    Examples
    --------
    >>> import numpy as np
    >>> from langchain_core.embeddings import DeterministicFakeEmbedding
    >>> texts = [f"text {number}" for number in range(600)]
    >>> inner = DeterministicFakeEmbedding(size=64)
    >>> marker = RegionMarker(seed=1, normalise=True).fit(texts, embeddings=np.float32(inner.embed_documents(texts)))
    >>> marked = MarkedEmbeddings(inner, marker, tenant="acme")
    >>> len(marked.embed_query("a question"))
    64
    >>> marked
    <MarkedEmbeddings: sealed>
    """

    _instead = "load the key where it is needed and wrap the embeddings there"

    def __init__(self, embeddings: Embeddings, marker: RegionMarker, *, tenant: str = "") -> None:
        self._inner, self._marker, self._tenant = embeddings, marker, tenant

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return self._marked(self._inner.embed_documents(texts))

    def embed_query(self, text: str) -> list[float]:
        return self._marked([self._inner.embed_query(text)])[0]

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        return self._marked(await self._inner.aembed_documents(texts))

    async def aembed_query(self, text: str) -> list[float]:
        return self._marked([await self._inner.aembed_query(text)])[0]

    def _marked(self, rows: list[list[float]]) -> list[list[float]]:
        marked: list[list[float]] = self._marker.transform(rows, self._tenant).tolist() if rows else []
        return marked
