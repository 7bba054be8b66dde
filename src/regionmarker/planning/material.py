"""The provider's corpus, divided once: what the thief asks, what keys are made from and judged with."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from hashlib import sha256

import numpy as np

from regionmarker.encoders import check_texts, load_encoder
from regionmarker.errors import InputError
from regionmarker.marking.marker import RegionMarker
from regionmarker.planning.goals import Candidate
from regionmarker.vectors import Floats, Integers, as_floats, check_rows

LEAST = 1000
"""Fewer distinct texts than these make no key that could be judged."""

_MOST_TEXTS = 20_000
_MOST_QUERIES = 5_000
_POOL, _RESERVOIR = 1024, 4096


class Material:
    """Texts with their clean embeddings, and what anyone can know of them.

    Parameters
    ----------
    texts, embeddings
        The provider's own: one row (n, D) a text, of unit length. Repeated texts are used once, and no more than 20,000
        texts, drawn by the seed.
    query_share
        The share of them that the thief asks, no more than 5,000. Keys are made from the rest.
    seed
        Decides who gets what.

    Examples
    --------
    >>> rows = np.eye(64, dtype=np.float32).repeat(20, axis=0)
    >>> material = Material([f"text {number}" for number in range(1280)], rows, query_share=0.5)
    >>> len(material.queries), len(material.own)
    (640, 640)
    """

    def __init__(self, texts: Sequence[str], embeddings: object, *, query_share: float = 0.5, seed: int = 0) -> None:
        given, rows = check_texts(texts), as_floats(embeddings)
        if len(given) != len(rows):
            raise InputError(f"there are {len(given)} texts but {len(rows)} embeddings: give one for each")
        check_rows(rows)
        place = {text: row for row, text in reversed(list(enumerate(given)))}
        chosen = np.random.default_rng(seed).permutation(np.array(sorted(place.values()), dtype=np.int64))[:_MOST_TEXTS]
        if len(chosen) < LEAST:
            raise InputError(f"planning needs at least {LEAST} distinct texts, but the corpus has {len(chosen)}")
        self.texts = [given[row] for row in chosen]
        self.embeddings: Floats = rows[chosen]
        self.seed = seed
        count = min(round(len(chosen) * query_share), _MOST_QUERIES)
        self.queries: Integers = np.arange(count)
        self.own: Integers = np.arange(count, len(chosen))
        self.key_seed = int.from_bytes(sha256(f"plan {seed}".encode()).digest()[:6], "big")

    @property
    def width(self) -> int:
        """D."""
        return int(self.embeddings.shape[1])

    @cached_property
    def public(self) -> Floats:
        """WordLlama's vectors of all texts: features that anyone can compute, (n, 256)."""
        return load_encoder("wordllama").encode(self.texts)

    @cached_property
    def digest(self) -> str:
        """Of everything that decides a trial, but for the trial itself."""
        found = sha256("\0".join(self.texts).encode())
        found.update(self.embeddings.tobytes())
        found.update(f"{len(self.queries)} {self.seed}".encode())
        return found.hexdigest()

    def marker(self, candidate: Candidate, number: int) -> RegionMarker:
        """Make TEST key ``number`` of the candidate's kind from the provider's part."""
        pool = min(_POOL, len(self.own) // 3)
        marker = RegionMarker(
            candidate.dimension,
            candidate.ratio,
            candidate.strength,
            subspace=candidate.subspace,
            seed=self.key_seed + number,
            tenant_ratio=0.0,
            pool=pool,
            reservoir=min(_RESERVOIR, len(self.own) - pool),
        )
        return marker.fit([self.texts[row] for row in self.own], embeddings=self.embeddings[self.own])
