"""Who is judged: encoders that never saw a marked vector, and a thief who saw those of a key that is not tried.

Every text is embedded once. The answers to all texts of the corpus are kept in one .npz per encoder, so a key costs
only its judging. The texts that the two copies learn from are set aside before any key is made: no key holds one of
them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import regionmarker as rm
from regionmarker.benchmark.stealers import FrozenHead
from regionmarker.files import atomic_path
from regionmarker.vectors import normalised
from studies._study import provider_rows

Array = NDArray[np.float32]
THIEF = "thief, wrong key"
THIEFS_KEY = 1_000_000
"""The seed of the key that the thief's vectors were marked with; the study tries the seeds from 0 on."""
QUERIES = 3000


@dataclass(frozen=True)
class Corpus:
    """Distinct texts, the provider's clean embeddings, and which texts are for keys and which for copies."""

    texts: tuple[str, ...]
    clean: Array  # (n, D) unit rows
    own: NDArray[np.int64]  # the provider's: keys are made from these
    bought: NDArray[np.int64]  # what the copies learn from
    key_settings: Mapping[str, int]  # where they are not the package's own

    @cached_property
    def place(self) -> dict[str, int]:
        """Where each text stands."""
        return {text: row for row, text in enumerate(self.texts)}


def load_corpus(data: Path, queries: int, key_settings: Mapping[str, int]) -> Corpus:
    """Read `sst2.parquet` and `provider_mpnet768_sst2.npz`."""
    _, texts, clean = provider_rows(data, "sst2")
    order = np.random.default_rng(7).permutation(len(texts))
    return Corpus(tuple(texts), clean, np.sort(order[queries:]), np.sort(order[:queries]), key_settings)


def make_marker(corpus: Corpus, seed: int) -> rm.RegionMarker:
    """Make a key with the package's defaults from the provider's own texts."""
    texts = [corpus.texts[row] for row in corpus.own]
    return rm.RegionMarker(seed=seed, **corpus.key_settings).fit(texts, embeddings=corpus.clean[corpus.own])


def load_answers(corpus: Corpus, minilm: str, paraphrase: str, cache: Path, hidden: int) -> dict[str, Array]:
    """Return every suspect's answers to all texts, (n, D') unit rows; what is not in the cache is made."""
    texts = list(corpus.texts)
    features = cached(cache, "minilm-l6", lambda: _encoder(minilm)(texts))

    def copy(served: Array) -> Array:
        return FrozenHead(seed=0, hidden=hidden).steal_from_features(features[corpus.bought], served).apply(features)

    def thief() -> Array:
        return copy(make_marker(corpus, THIEFS_KEY).transform(corpus.clean[corpus.bought]))

    wordllama = cached(cache, "wordllama", lambda: rm.load_encoder("wordllama").encode(texts))
    return {
        "WordLlama": wordllama,
        "MiniLM-L6": features,
        "paraphrase-MiniLM-L3": cached(cache, "minilm-l3", lambda: _encoder(paraphrase)(texts)),
        "unmarked provider": corpus.clean,
        "unmarked copy": cached(cache, "unmarked-copy", lambda: copy(corpus.clean[corpus.bought])),
        "LSA": cached(cache, "lsa", lambda: _lsa(texts)),
        "random projection": cached(cache, "projection", lambda: _projection(wordllama)),
        THIEF: cached(cache, "thief", thief),
    }


def cached(folder: Path, name: str, make: Callable[[], Array]) -> Array:
    """Return answers that are kept in a file; what is not there is made."""
    path = folder / f"{name}.npz"
    if not path.exists():
        print(f"embedding with {name}", flush=True)
        made = normalised(np.asarray(make(), dtype=np.float32))
        with atomic_path(path) as temporary, temporary.open("wb") as file:
            np.savez(file, embeddings=made)
    return np.load(path)["embeddings"]


def _encoder(spec: str) -> Callable[[list[str]], Array]:
    return rm.load_encoder(spec).encode


def _lsa(texts: list[str]) -> Array:
    """Latent semantic analysis: tf-idf and 256 singular directions, fitted on the corpus."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    counts = TfidfVectorizer(sublinear_tf=True, token_pattern=r"\S+").fit_transform(texts)
    return np.asarray(TruncatedSVD(256, random_state=0).fit_transform(counts), dtype=np.float32)


def _projection(answers: Array) -> Array:
    """Halve the width of another innocent's answers by a Gaussian matrix."""
    rng = np.random.default_rng(0)
    return answers @ rng.standard_normal((answers.shape[1], answers.shape[1] // 2)).astype(np.float32)
