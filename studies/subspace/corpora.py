"""The corpora: texts, clean provider embeddings, public features, paraphrases; one fixed split per corpus."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from studies._study import CORPORA
from studies.subspace.region_key import Array, Ints, Reduction, fit_reduction, unit

NAMES = tuple(CORPORA)
QUERIES = 4500


@dataclass(frozen=True)
class Corpus:
    """One corpus without duplicates, and who gets to see which rows of it."""

    name: str
    clean: Array  # (n, 768)
    wordllama: Array  # (n, 256) unit rows
    minilm: Array | None  # (n, 384) unit rows, where a second public encoder was named
    pool: Ints
    queries: Ints  # what the thief (and the angle searcher) asks
    probes: Ints
    paraphrases: Array
    originals: Ints  # row of `clean` beside every paraphrase
    reduction: Reduction

    @property
    def public_name(self) -> str:
        """Say whose features `public` are."""
        return "wordllama" if self.minilm is None else "wordllama+minilm"

    @property
    def public(self) -> Array:
        """Features that anyone can compute."""
        return self.wordllama if self.minilm is None else np.hstack([self.wordllama, self.minilm])


def embed_wordllama(texts: list[str]) -> Array:
    """WordLlama as it comes, in float32: an outsider has no reason to round to RegionMarker's grid."""
    import wordllama

    folder = Path(wordllama.__file__).parent
    model = wordllama.WordLlama.load(cache_dir=folder, disable_download=True)
    return np.asarray(model.embed([t or "." for t in texts], norm=True), np.float32)


def embed_minilm(texts: list[str], model: str) -> Array:
    from regionmarker.encoders import load_encoder

    rows = load_encoder(f"sentence-transformers:{model}").encode([t or "." for t in texts])
    return unit(np.asarray(rows, np.float32))


def minilm_path(cache: Path, corpus: str, model: str) -> Path:
    short = re.sub(r"\W+", "-", Path(model).name)
    return cache / f"{short}-{sha256(model.encode()).hexdigest()[:8]}_{corpus}.npz"


def cached(path: Path, embed: Callable[[], Array]) -> Array:
    if not path.exists():
        np.savez(path, embeddings=embed())
    return np.load(path)["embeddings"]


def load_corpus(name: str, data: Path, cache: Path, minilm: str | None, pool: int) -> Corpus:
    stored = np.load(data / f"provider_mpnet768_{name}.npz")
    table = pq.read_table(data / f"{name}.parquet", columns=["text"])["text"].to_pylist()
    texts = [table[i] for i in stored["rows"]]
    _, first = np.unique(texts, return_index=True)
    keep = np.sort(first)
    clean = unit(stored["embeddings"].astype(np.float32)[keep])
    order = np.random.default_rng(7).permutation(len(keep))
    queries = min(QUERIES, (len(keep) - pool) * 3 // 5)
    place = {int(stored["rows"][j]): i for i, j in enumerate(keep)}
    said = pq.read_table(data / f"paraphrases_{name}.parquet", columns=["row"])["row"].to_numpy()
    again = unit(np.load(data / f"paraphrases_mpnet768_{name}.npz")["embeddings"].astype(np.float32))
    known = np.array([int(r) in place for r in said])
    return Corpus(
        name=name,
        clean=clean,
        wordllama=cached(cache / f"wordllama_{name}.npz", lambda: embed_wordllama(texts))[keep],
        minilm=cached(minilm_path(cache, name, minilm), lambda: embed_minilm(texts, minilm))[keep] if minilm else None,
        pool=order[:pool],
        queries=order[pool : pool + queries],
        probes=order[pool + queries :],
        paraphrases=again[known],
        originals=np.array([place[int(r)] for r in said[known]]),
        reduction=fit_reduction(clean),
    )
