"""The gateway before the real Python clients of Cohere and Ollama; ``make test-clients`` brings them."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regionmarker import RegionMarker, load_encoder, python_sentences

cohere_package = pytest.importorskip("cohere", reason="the package cohere is not installed: run make test-clients")
ollama_package = pytest.importorskip("ollama", reason="the package ollama is not installed: run make test-clients")

TEXTS = ["how do I open a file?", "the socket was closed by its peer", "größer als ein Byte"]
MODEL = "wordllama"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, np.ndarray]]:
    """A gateway that runs as an operator starts it: its address, and the marked vectors of the texts."""
    folder: Path = tmp_path_factory.mktemp("served")
    encoder, sentences = load_encoder("wordllama"), python_sentences(1000)
    marker = RegionMarker(pool=64, reservoir=512).fit(sentences, encoder=encoder)
    marker.save(folder / "k.rmkey")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "regionmarker", "serve", "--key", "k.rmkey", "--port", str(port)]
    environment = {**os.environ, "NO_PROXY": "*"}
    log = folder / "log.txt"
    with log.open("w") as lines:
        process = subprocess.Popen(command, cwd=folder, env=environment, stderr=lines)
    address = f"http://127.0.0.1:{port}"
    try:
        _wait_for(address, process, log)
        yield address, marker.transform(encoder.encode(TEXTS))
    finally:
        process.terminate()
        process.wait(60)


def _wait_for(address: str, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + 120
    while process.poll() is None and time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"{address}/v1/models") as answer:
                json.load(answer)
            return
        except (urllib.error.URLError, ConnectionError):
            time.sleep(0.2)
    pytest.fail(f"the gateway did not start: {log.read_text()}")


@pytest.fixture
def cohere(served: tuple[str, np.ndarray]) -> Any:
    return cohere_package.ClientV2(api_key="unused", base_url=served[0])


@pytest.fixture
def ollama(served: tuple[str, np.ndarray]) -> Any:
    return ollama_package.Client(host=served[0])


def test_cohere_reads_marked_vectors(served, cohere):
    answer = cohere.embed(model=MODEL, texts=TEXTS, input_type="search_document", embedding_types=["float"])
    assert np.array_equal(np.array(answer.embeddings.float_, dtype=np.float32), served[1])
    assert answer.texts == TEXTS
    assert answer.meta.billed_units.input_tokens > 0


def test_cohere_reads_every_type_quantised_after_marking(served, cohere):
    types = ["float", "int8", "uint8", "binary", "ubinary"]
    found = cohere.embed(model=MODEL, texts=TEXTS, input_type="search_query", embedding_types=types).embeddings
    signs = served[1] > 0
    assert np.array_equal(np.unpackbits(np.array(found.ubinary, dtype=np.uint8), axis=1).astype(bool), signs)
    assert np.array_equal(np.array(found.binary) + 128, np.array(found.ubinary))
    assert np.array_equal(np.array(found.int8) + 128, np.array(found.uint8))
    whole = np.array(found.int8, dtype=np.float64)
    cosines = np.einsum("ij,ij->i", whole, served[1]) / np.linalg.norm(whole, axis=1)
    assert cosines.min() > 0.99


def test_cohere_raises_its_own_error(cohere):
    errors = cohere_package.errors
    with pytest.raises((errors.BadRequestError, errors.NotFoundError), match="model"):
        cohere.embed(model="no-such-model", texts=TEXTS, input_type="search_query", embedding_types=["float"])


def test_ollama_reads_marked_vectors(served, ollama):
    answer = ollama.embed(model=MODEL, input=TEXTS)
    assert np.array_equal(np.array(answer.embeddings, dtype=np.float32), served[1])
    assert answer.model == MODEL
    assert answer.prompt_eval_count > 0
    one = ollama.embed(model=MODEL, input=TEXTS[0])
    assert np.array_equal(np.array(one.embeddings, dtype=np.float32), served[1][:1])


def test_ollama_raises_its_own_error(ollama):
    with pytest.raises(ollama_package.ResponseError, match="model"):
        ollama.embed(model="no-such-model", input=TEXTS)
