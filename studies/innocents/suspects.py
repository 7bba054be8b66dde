"""Who is judged: seven encoders that never saw a marked vector, and, under fewer keys, two that saw others' vectors.

The two are a student of another provider, and a thief who bought what a key that is not tried had marked. Every
suspect stands there twice, so that both branches of the statistic are on the page. *Turned*: its vectors after a fixed
random rotation; its axes are unknown. *Aligned*: in the provider's own axes. The provider and the copies are so by
themselves; every other encoder gets there by a linear head that was fitted on the provider's clean vectors: an honest
student of an unmarked provider. *As it is*: under a few keys, to see that a rotation does not matter to an encoder with
axes of its own.

Every text is embedded once. The texts that copies and heads learn from are set aside before any key is made: no key
holds one of them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import regionmarker as rm
from regionmarker.benchmark.stealers import FrozenHead
from regionmarker.files import atomic_path
from regionmarker.marks.reduction import haar
from regionmarker.parquet import read_columns
from regionmarker.vectors import normalised
from studies._study import PROVIDER, encoder_spec, provider_rows

Array = NDArray[np.float32]
Forms = dict[str, Array]
PROVIDERS = ("wordllama", PROVIDER)
ALIGNED, TURNED, AS_IT_IS = "aligned", "turned", "as it is"
OWN = "unmarked provider"
INNOCENTS = (
    OWN,
    "unmarked copy",
    "MiniLM-L6",
    "paraphrase-MiniLM-L3",
    "student of labels",
    "LSA",
    "random projection",
)
FURTHER = "another provider's student"
THIEF = "thief, wrong key"
THIEFS_KEY = 1_000_000
"""The seed of the key that the thief's vectors were marked with; the study tries the seeds from 0 on."""
QUERIES = 3000
_PENALTY = 1e-2  # of the mean diagonal, for the linear heads


@dataclass(frozen=True)
class Corpus:
    """Distinct texts, two providers' clean embeddings, and which texts are for keys and which for copies."""

    texts: tuple[str, ...]
    labels: NDArray[np.int64]  # (n,)
    clean: Array  # (n, D) unit rows: the provider's
    other: Array  # (n, D'): another provider's
    own: NDArray[np.int64]  # the provider's: keys are made from these
    bought: NDArray[np.int64]  # what the copies learn from

    @cached_property
    def place(self) -> dict[str, int]:
        """Where each text stands."""
        return {text: row for row, text in enumerate(self.texts)}


def load_corpus(data: Path, queries: int, provider: str) -> Corpus:
    """Read `sst2.parquet` and `provider_mpnet768_sst2.npz`; ``provider`` is one of PROVIDERS."""
    rows, texts, stored = provider_rows(data, "sst2")
    (labels,) = read_columns(data / "sst2.parquet", ["label"])
    embedded = normalised(rm.load_encoder("wordllama").encode(texts))
    clean, other = (embedded, stored) if provider == "wordllama" else (stored, embedded)
    order = np.random.default_rng(7).permutation(len(texts))
    own, bought = np.sort(order[queries:]), np.sort(order[:queries])
    return Corpus(tuple(texts), np.array([labels[row] for row in rows]), clean, other, own, bought)


def make_marker(corpus: Corpus, seed: int) -> rm.RegionMarker:
    """Make a key with the package's defaults from the provider's own texts."""
    texts = [corpus.texts[row] for row in corpus.own]
    return rm.RegionMarker(seed=seed).fit(texts, embeddings=corpus.clean[corpus.own])


def load_answers(corpus: Corpus, minilm: str, paraphrase: str, cache: Path, hidden: int) -> dict[str, Forms]:
    """Return every suspect's answers to all texts in each form, (n, D') unit rows; what the cache lacks is made."""
    texts = list(corpus.texts)

    def encoded(spec: str) -> Callable[[], Array]:
        return lambda: rm.load_encoder(encoder_spec(spec)).encode(texts)

    features = cached(cache, "minilm-l6", encoded(minilm))

    def copy(served: Array) -> Array:
        return FrozenHead(seed=0, hidden=hidden).steal_from_features(features[corpus.bought], served).apply(features)

    def thief() -> Array:
        return copy(make_marker(corpus, THIEFS_KEY).transform(corpus.clean[corpus.bought]))

    own = {
        OWN: corpus.clean,
        "unmarked copy": cached(cache, "unmarked-copy", lambda: copy(corpus.clean[corpus.bought])),
        THIEF: cached(cache, "thief", thief),
    }
    strangers = {
        "MiniLM-L6": features,
        "paraphrase-MiniLM-L3": cached(cache, "minilm-l3", encoded(paraphrase)),
        FURTHER: cached(cache, "student", lambda: copy(corpus.other[corpus.bought])),
        "student of labels": cached(cache, "labels", lambda: _student_of_labels(features, corpus.labels)),
        "LSA": cached(cache, "lsa", lambda: _lsa(texts)),
        "random projection": cached(cache, "projection", lambda: _projection(corpus.clean)),
    }
    found = {name: {ALIGNED: rows, TURNED: turned(rows)} for name, rows in own.items()}
    found |= forms_of(strangers, corpus)
    return {name: found[name] for name in (*INNOCENTS, FURTHER, THIEF)}


def forms_of(strangers: dict[str, Array], corpus: Corpus) -> dict[str, Forms]:
    """Return the answers of suspects in all forms: with a head towards the provider's axes, turned, as they are."""
    return {
        name: {ALIGNED: _headed(rows, corpus), TURNED: turned(rows), AS_IT_IS: rows} for name, rows in strangers.items()
    }


def turned(rows: Array) -> Array:
    """Turn rows (n, D') by a random rotation, the same for all of one width."""
    width = rows.shape[1]
    return (rows @ haar(np.random.default_rng(3), width, width)).astype(np.float32)


def _headed(rows: Array, corpus: Corpus) -> Array:
    """Return what a linear head on rows (n, D') says after it learnt clean vectors, (n, D)."""
    x, y = rows[corpus.bought].astype(np.float64), corpus.clean[corpus.bought].astype(np.float64)
    centre, mean = x.mean(axis=0), y.mean(axis=0)
    gram = (x - centre).T @ (x - centre)
    gram[np.diag_indices_from(gram)] += _PENALTY * np.trace(gram) / len(gram)
    head = np.linalg.solve(gram, (x - centre).T @ (y - mean))
    return normalised(((rows - centre) @ head + mean).astype(np.float32))


def cached(folder: Path, name: str, make: Callable[[], Array]) -> Array:
    """Return answers that are kept in a file; what is not there is made."""
    path = folder / f"{name}.npz"
    if not path.exists():
        print(f"embedding with {name}", flush=True)
        made = normalised(np.asarray(make(), dtype=np.float32))
        with atomic_path(path) as temporary, temporary.open("wb") as file:
            np.savez(file, embeddings=made)
    return np.load(path)["embeddings"]


def _student_of_labels(features: Array, labels: NDArray[np.int64]) -> Array:
    """Return the hidden layer of a classifier that learnt the public labels of all texts, the keys' among them."""
    from sklearn.neural_network import MLPClassifier

    student = MLPClassifier((256,), random_state=0, max_iter=15, early_stopping=True).fit(features, labels)
    return np.maximum(features @ student.coefs_[0] + student.intercepts_[0], 0.0) + 1e-3


def _lsa(texts: list[str]) -> Array:
    """Latent semantic analysis: tf-idf and 256 singular directions, fitted on the corpus."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    counts = TfidfVectorizer(sublinear_tf=True, token_pattern=r"\S+").fit_transform(texts)
    return np.asarray(TruncatedSVD(256, random_state=0).fit_transform(counts), dtype=np.float32)


def _projection(clean: Array) -> Array:
    """Halve the width of the provider's clean vectors by a Gaussian matrix."""
    rng = np.random.default_rng(0)
    return clean @ rng.standard_normal((clean.shape[1], clean.shape[1] // 2)).astype(np.float32)
