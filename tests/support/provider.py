"""A simulated provider with tenants, and a thief that holds what it served."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from regionmarker import RegionMarker
from regionmarker.benchmark.protocols import StolenData


class Remembering:
    """An encoder that embeds each text once: the battery asks for the same ones a hundred times."""

    def __init__(self, encoder: Any) -> None:
        self.name, self._encoder = encoder.name, encoder
        self._known: dict[str, np.ndarray] = {}

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        new = [text for text in dict.fromkeys(texts) if text not in self._known]
        if new:
            self._known.update(zip(new, self._encoder.encode(new), strict=True))
        return np.stack([self._known[text] for text in texts])


class PublicEncoder:
    """Knows half of what the provider knows."""

    name = "public"

    def __init__(self, encoder: Any) -> None:
        self._encoder = encoder

    def encode(self, texts: Sequence[str]) -> np.ndarray:
        rows = self._encoder.encode(texts)[:, ::2]
        return np.ascontiguousarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


@dataclass
class Provider:
    """Serves marked vectors, and counts what it is asked."""

    marker: RegionMarker
    encoder: Any
    asked: list[tuple[str, int]] = field(default_factory=list)

    def __call__(self, texts: Sequence[str], *, account: str = "") -> np.ndarray:
        self.asked.append((account, len(texts)))
        return self.marker.transform(self.encoder.encode(texts), tenant=account)


@pytest.fixture(scope="session")
def encoder(wordllama: Any) -> Remembering:
    return Remembering(wordllama)


@pytest.fixture
def public(encoder: Remembering) -> PublicEncoder:
    return PublicEncoder(encoder)


@pytest.fixture
def provider(marker: RegionMarker, encoder: Remembering) -> Provider:
    return Provider(marker, encoder)


@pytest.fixture
def stolen(provider: Provider, public: PublicEncoder, sentences: list[str]) -> StolenData:
    texts = sentences[:150]
    return StolenData(tuple(texts), provider(texts), provider, public, provider.encoder)
