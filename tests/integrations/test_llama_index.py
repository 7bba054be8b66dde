"""LlamaIndex's embeddings: an index, a pipeline, observers."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

pytest.importorskip("llama_index.core", reason="llama-index-core is not installed: make test-integrations")

from llama_index.core import VectorStoreIndex
from llama_index.core.base.embeddings.base import BaseEmbedding
from llama_index.core.bridge.pydantic import PrivateAttr
from llama_index.core.callbacks import CallbackManager
from llama_index.core.callbacks.base_handler import BaseCallbackHandler
from llama_index.core.ingestion import IngestionPipeline
from llama_index.core.schema import TextNode

from regionmarker.integrations.llama_index import MarkedEmbedding


class Table(BaseEmbedding):
    """Embeddings that are known, with an asynchronous side of its own."""

    _rows: dict = PrivateAttr()
    _waited: int = PrivateAttr(default=0)

    def __init__(self, texts, rows, **settings):
        super().__init__(**settings)
        self._rows = dict(zip(texts, rows.tolist(), strict=True))

    def _get_text_embedding(self, text):
        return self._rows[text]

    _get_query_embedding = _get_text_embedding

    async def _aget_query_embedding(self, query):
        self._waited += 1
        return self._rows[query]

    async def _aget_text_embeddings(self, texts):
        self._waited += 1
        return [self._rows[text] for text in texts]


class Observer(BaseCallbackHandler):
    """Keeps every vector that a callback shows."""

    def __init__(self):
        super().__init__([], [])
        self.seen = []

    def on_event_start(self, *_, **__):
        return ""

    def on_event_end(self, _type, payload=None, **_):
        self.seen += (payload or {}).get("embeddings", [])

    def start_trace(self, trace_id=None): ...

    def end_trace(self, trace_id=None, trace_map=None): ...


@pytest.fixture
def observer():
    return Observer()


@pytest.fixture
def inner(texts, clean, observer):
    return Table(texts, clean, model_name="table", embed_batch_size=7, callback_manager=CallbackManager([observer]))


@pytest.fixture
def marked(inner, fitted):
    return MarkedEmbedding(inner, fitted, tenant="acme")


def test_documents_and_queries_are_marked_alike(marked, fitted, texts, clean):
    expected = fitted.transform(clean[:20], "acme").tolist()
    assert marked.get_text_embedding_batch(texts[:20]) == expected
    assert marked.get_text_embedding(texts[0]) == marked.get_query_embedding(texts[0]) == expected[0]
    assert (marked.model_name, marked.embed_batch_size) == ("table", 7)
    assert MarkedEmbedding(marked._inner, fitted, embed_batch_size=3).embed_batch_size == 3


def test_asynchronous_calls_ask_the_other_one_asynchronously(marked, fitted, texts, clean):
    expected = fitted.transform(clean[:20], "acme").tolist()
    assert asyncio.run(marked.aget_text_embedding_batch(texts[:20])) == expected
    assert asyncio.run(marked.aget_text_embedding(texts[0])) == expected[0]
    assert asyncio.run(marked.aget_query_embedding(texts[0])) == expected[0]
    assert marked._inner._waited == 3 + 1 + 1  # three batches of seven


def test_observers_see_marked_vectors_alone(marked, observer, texts, clean):
    marked.get_text_embedding_batch(texts[:20])
    marked.get_query_embedding(texts[0])
    asyncio.run(marked.aget_text_embedding_batch(texts[:20]))
    seen = {tuple(row) for row in observer.seen}
    assert len(seen) == 20
    assert not seen & {tuple(row) for row in clean.tolist()}
    marked._inner.get_text_embedding(texts[0])  # the observer would have seen it
    assert tuple(clean[0].tolist()) in {tuple(row) for row in observer.seen}


def test_an_index_finds_with_it(marked, texts):
    index = VectorStoreIndex([TextNode(text=text) for text in texts[:50]], embed_model=marked)
    retriever = index.as_retriever(similarity_top_k=1)
    assert [retriever.retrieve(text)[0].text for text in texts[:5]] == texts[:5]


def test_a_pipeline_marks_nodes(marked, fitted, texts, clean):
    nodes = IngestionPipeline(transformations=[marked]).run(nodes=[TextNode(text=text) for text in texts[:5]])
    assert np.array_equal(np.float32([node.embedding for node in nodes]), fitted.transform(clean[:5], "acme"))


def test_it_is_sealed_and_tells_nothing_of_the_key(marked, refuses_copies):
    refuses_copies(marked)
    assert "_marker" not in f"{marked.model_dump()} {marked.to_dict()} {marked.to_json()} {marked.to_payload()}"
