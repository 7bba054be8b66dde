"""LangChain's Embeddings and a store of its own."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from regionmarker.errors import InputError

pytest.importorskip("langchain_core", reason="langchain-core is not installed: make test-integrations")

from langchain_core.embeddings import Embeddings
from langchain_core.vectorstores import InMemoryVectorStore

from regionmarker.integrations.langchain import MarkedEmbeddings


class Table(Embeddings):
    """Embeddings that are known, with an asynchronous side of its own."""

    def __init__(self, texts, rows):
        self.rows, self.waited = dict(zip(texts, rows.tolist(), strict=True)), 0

    def embed_documents(self, texts):
        return [self.rows[text] for text in texts]

    def embed_query(self, text):
        return self.rows[text]

    async def aembed_documents(self, texts):
        self.waited += 1
        return self.embed_documents(texts)

    async def aembed_query(self, text):
        self.waited += 1
        return self.embed_query(text)


@pytest.fixture
def inner(texts, clean):
    return Table(texts, clean)


def test_documents_and_queries_are_marked_alike(inner, fitted, texts, clean):
    marked = MarkedEmbeddings(inner, fitted, tenant="acme")
    expected = fitted.transform(clean[:5], "acme").tolist()
    assert marked.embed_documents(texts[:5]) == expected
    assert [marked.embed_query(text) for text in texts[:5]] == expected
    assert marked.embed_documents([]) == []
    assert MarkedEmbeddings(inner, fitted).embed_documents(texts[:5]) == fitted.transform(clean[:5]).tolist()


def test_asynchronous_calls_ask_the_other_one_asynchronously(inner, fitted, texts):
    marked = MarkedEmbeddings(inner, fitted, tenant="acme")
    assert asyncio.run(marked.aembed_documents(texts[:5])) == marked.embed_documents(texts[:5])
    assert asyncio.run(marked.aembed_query(texts[0])) == marked.embed_query(texts[0])
    assert inner.waited == 2


def test_a_store_finds_with_it(inner, fitted, texts):
    store = InMemoryVectorStore(MarkedEmbeddings(inner, fitted, tenant="acme"))
    store.add_texts(texts[:200])
    assert [store.similarity_search(text, k=1)[0].page_content for text in texts[:20]] == texts[:20]
    held = np.float32([entry["vector"] for entry in store.store.values()])
    assert np.array_equal(held, np.float32(store.embedding.embed_documents(texts[:200])))


def test_rows_that_cannot_be_marked_are_refused(texts, clean, fitted):
    with pytest.raises(InputError, match="row 0 has length 2"):
        MarkedEmbeddings(Table(texts, 2 * clean), fitted).embed_query(texts[0])


def test_it_is_sealed(inner, fitted, refuses_copies):
    refuses_copies(MarkedEmbeddings(inner, fitted))
