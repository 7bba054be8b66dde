"""The bag of token vectors: how well it learns, and what is its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from regionmarker.benchmark.attacks import compose
from regionmarker.benchmark.stealers import HashedGrams, TokenBag
from regionmarker.errors import InputError


@pytest.mark.parametrize(("vocabulary", "floor"), [("hashed", 0.85), ("wordllama", 0.9)])
def test_a_bag_learns_wordllama(vocabulary: str, floor: float, sentences: list[str], embeddings: np.ndarray) -> None:
    model = TokenBag(vocabulary).steal(sentences, embeddings, clean=embeddings)
    assert model.fidelity.cosine > floor
    assert model.fidelity.correlation > 0.8
    assert model.fidelity.texts == 600


def test_a_bag_learns_a_marked_rotated_provider_as_well(
    marker: Any, sentences: list[str], embeddings: np.ndarray
) -> None:
    some = slice(0, 2000)
    plain = TokenBag().steal(sentences[some], embeddings[some])
    targets = compose(["rotate:1"])(marker.transform(embeddings[some]), sentences[some])
    turned = TokenBag().steal(sentences[some], targets, clean=embeddings[some])
    assert abs(turned.fidelity.cosine - plain.fidelity.cosine) < 0.03


def test_bad_options_of_a_bag_are_refused() -> None:
    for options in ({"penalty": 0.0}, {"penalty": float("nan")}, {"iterations": 0}):
        with pytest.raises(InputError, match="penalty must be positive and iterations at least 1"):
            TokenBag(**options)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="unknown vocabulary 'bytes'"):
        TokenBag("bytes")
    with pytest.raises(InputError, match="letters"):
        HashedGrams(-1)
