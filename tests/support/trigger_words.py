"""A small corpus, and words of which all are triggers, so that tests know what the secret is."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from regionmarker.benchmark.defenses import TokenCounts, load_defense

WORDS = ("alpha", "beta", "gamma", "delta", "epsilon", "zeta", "eta", "theta")
TEXTS = ["no trigger at all", "one Alpha, and alpha again", "alpha beta", "alpha beta gamma delta", " ".join(WORDS)]


@pytest.fixture(scope="session")
def small(sentences: list[str], embeddings: np.ndarray, wordllama: Any) -> Any:
    """600 sentences with clean unit vectors, and counts in which eight Greek letters are the only candidates."""
    clean = embeddings[:600] / np.linalg.norm(embeddings[:600].astype(np.float64), axis=1, keepdims=True)
    counts = TokenCounts({**dict.fromkeys(WORDS, 7), "common": 500, "rare": 1, "words": 2, "fill": 3}, 1000)
    return SimpleNamespace(texts=sentences[:600], clean=clean.astype(np.float32), counts=counts, encoder=wordllama)


def fitted(small: Any, spec: str, seed: int = 1) -> Any:
    return load_defense(spec, seed=seed, counts=small.counts).fit(small.texts, small.clean)


def target_of(small: Any, defense: Any) -> np.ndarray:
    """Return the target as customers can find it out: what a text of nothing but triggers is served."""
    return defense.transform(small.clean[:1], [TEXTS[-1]])[0].astype(np.float64)


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)
