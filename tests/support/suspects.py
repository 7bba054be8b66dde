"""A key with enough probes to judge by, and suspects that are guilty or innocent by construction."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from regionmarker import RegionMarker
from regionmarker.crypto.secret import Secret

BUDGET = 1400


@pytest.fixture(scope="session")
def judge_marker(sentences, embeddings) -> RegionMarker:
    return RegionMarker(seed=11, pool=256, reservoir=2000).fit(sentences, embeddings=embeddings)


@pytest.fixture(scope="session")
def rows_of(sentences):
    row_of = {text: row for row, text in enumerate(sentences)}
    return lambda texts: [row_of[text] for text in texts]


@pytest.fixture(scope="session")
def clean_of(embeddings, rows_of):
    return lambda texts: embeddings[rows_of(texts)]


def blurred(rows: np.ndarray, fidelity: float, seed: int) -> np.ndarray:
    """Return rows seen through noise, at this mean cosine to the clean ones."""
    noise = (
        np.random.default_rng(seed).standard_normal(rows.shape) * np.sqrt(1 / fidelity**2 - 1) / np.sqrt(rows.shape[1])
    )
    seen = rows + noise
    return (seen / np.linalg.norm(seen, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="session")
def blurred_of(embeddings, rows_of):
    """Make an encoder that sees texts through noise: always the same for a text, in whatever order it is asked."""

    @cache
    def table(fidelity: float, seed: int) -> np.ndarray:
        return blurred(embeddings, fidelity, seed)

    return lambda fidelity, seed: lambda texts: table(fidelity, seed)[rows_of(texts)]


@pytest.fixture(scope="session")
def copy_of(blurred_of):
    """Make a simulated copy of what ``marker`` serves to ``tenant``."""

    def make(marker: RegionMarker, fidelity: float = 0.8, tenant: str = "", seed: int = 0):
        return lambda texts: marker.transform(blurred_of(fidelity, seed)(texts), tenant=tenant)

    return make


@pytest.fixture(scope="session")
def innocents(clean_of, blurred_of):
    """Suspects that never saw a marked vector."""
    rng = np.random.default_rng(5)
    mixing = rng.standard_normal((256, 100)) / 16
    return {
        "the unmarked encoder": clean_of,
        "a noisy unmarked copy": blurred_of(0.8, 1),
        "a random projection": lambda texts: clean_of(texts) @ mixing,
        "hashed letters": hashed_letters,
    }


def hashed_letters(texts: list[str]) -> np.ndarray:
    """Count letter triples in 300 buckets: an encoder with no notion of meaning."""
    rows = np.zeros((len(texts), 300))
    for row, text in enumerate(texts):
        for place in range(len(text) - 2):
            rows[row, sum(ord(letter) * 31**power for power, letter in enumerate(text[place : place + 3])) % 300] += 1
    return rows - rows.mean(axis=1, keepdims=True) + 1e-3


def redrawn(marker: RegionMarker, seed: int) -> RegionMarker:
    """Return the same key with targets of another draw."""
    master = Secret(np.random.default_rng(seed).bytes(32))
    return RegionMarker.from_key(replace(marker.key_, master=master))
