"""Who is judged: seven encoders that never saw a marked vector, and a thief who saw those of a key that is not tried.

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
INNOCENTS = (
    "WordLlama",
    "MiniLM-L6",
    "paraphrase-MiniLM-L3",
    "unmarked provider",
    "unmarked copy",
    "LSA",
    "random projection",
)
THIEF = "thief, wrong key"
THIEFS_KEY = 1_000_000
"""The seed of the key that the thief's vectors were marked with; the study tries the seeds from 0 on."""
QUERIES = 3000
_BATCH = 64


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
    features = _cached(cache, "minilm-l6", lambda: _encoder(minilm)(texts))

    def copy(served: Array) -> Array:
        return FrozenHead(seed=0, hidden=hidden).steal_from_features(features[corpus.bought], served).apply(features)

    def thief() -> Array:
        return copy(make_marker(corpus, THIEFS_KEY).transform(corpus.clean[corpus.bought]))

    wordllama = _cached(cache, "wordllama", lambda: rm.load_encoder("wordllama").encode(texts))
    return {
        "WordLlama": wordllama,
        "MiniLM-L6": features,
        "paraphrase-MiniLM-L3": _cached(cache, "minilm-l3", lambda: _encoder(paraphrase)(texts)),
        "unmarked provider": corpus.clean,
        "unmarked copy": _cached(cache, "unmarked-copy", lambda: copy(corpus.clean[corpus.bought])),
        "LSA": _cached(cache, "lsa", lambda: _lsa(texts)),
        "random projection": _cached(cache, "projection", lambda: _projection(wordllama)),
        THIEF: _cached(cache, "thief", thief),
    }


def _cached(folder: Path, name: str, make: Callable[[], Array]) -> Array:
    path = folder / f"{name}.npz"
    if not path.exists():
        print(f"embedding with {name}", flush=True)
        made = normalised(np.asarray(make(), dtype=np.float32))
        with atomic_path(path) as temporary, temporary.open("wb") as file:
            np.savez(file, embeddings=made)
    return np.load(path)["embeddings"]


def _encoder(spec: str) -> Callable[[list[str]], Array]:
    """Return an encoder of the package by its spec, or `onnx:MODEL.onnx#tokenizer.json`."""
    head, _, rest = spec.partition(":")
    if head != "onnx":
        return rm.load_encoder(spec).encode
    model, _, tokenizer = rest.partition("#")
    return lambda texts: _onnx(texts, model, tokenizer)


def _onnx(texts: list[str], model: str, tokenizer: str) -> Array:
    """Embed with an exported transformer: its pooled output, else the mean of its hidden states over the tokens."""
    import onnxruntime
    from tokenizers import Tokenizer

    pieces = Tokenizer.from_file(tokenizer)
    pieces.enable_truncation(128)
    pieces.enable_padding()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    wanted = {one.name for one in session.get_inputs()}
    rows = []
    for first in range(0, len(texts), _BATCH):
        batch = pieces.encode_batch(texts[first : first + _BATCH])
        ids = np.array([one.ids for one in batch], dtype=np.int64)
        mask = np.array([one.attention_mask for one in batch], dtype=np.int64)
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        found = session.run(None, {name: given[name] for name in given if name in wanted})
        rows.append(_pooled([one for one in found if one.dtype == np.float32], mask[:, :, None].astype(np.float32)))
    return np.concatenate(rows)


def _pooled(outputs: list[Array], weight: Array) -> Array:
    whole = [one for one in outputs if one.ndim == 2]  # (b, D')
    return whole[0] if whole else (outputs[0] * weight).sum(axis=1) / weight.sum(axis=1)


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
