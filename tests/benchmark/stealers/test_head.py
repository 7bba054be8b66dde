"""The head on a frozen encoder's features: how well it learns, and what is its own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.support.backbones import SMALL

from regionmarker.benchmark.attacks import compose
from regionmarker.benchmark.stealers import FrozenHead
from regionmarker.benchmark.stealers.head import _SOLVERS
from regionmarker.errors import InputError


def test_a_linear_head_finds_a_linear_map(sentences: list[str], wordllama: Any, embeddings: np.ndarray) -> None:
    targets = compose(["project:200"])(embeddings[:3000], [])
    model = FrozenHead(wordllama, hidden=0).steal(sentences[:3000], targets)
    assert model.fidelity.cosine > 0.98


def test_a_head_finds_a_map_that_no_linear_one_can_follow(embeddings: np.ndarray) -> None:
    features = embeddings[:3000, :6]
    centred = features - features.mean(axis=0)
    folded = np.abs(centred @ np.random.default_rng(2).standard_normal((6, 16)).astype(np.float32))
    targets = folded - folded.mean(axis=0)
    linear = FrozenHead(hidden=0).steal_from_features(features, targets)
    solved = FrozenHead(hidden=64, epochs=0).steal_from_features(features, targets)
    trained = FrozenHead(hidden=64, epochs=8, dropout=0.0, batch_size=50).steal_from_features(features, targets)
    assert linear.fidelity.cosine < 0.5
    assert solved.fidelity.cosine > linear.fidelity.cosine + 0.2
    assert trained.fidelity.cosine > solved.fidelity.cosine + 0.01
    assert trained.history[0] == solved.history[0]


def test_a_drawn_start_learns_too(embeddings: np.ndarray) -> None:
    targets = compose(["rotate:1"])(embeddings[:2000], [])
    model = FrozenHead(hidden=256, start="random", epochs=10, batch_size=50).steal_from_features(
        embeddings[:2000], targets
    )
    assert model.history[0] < 0.2
    assert model.fidelity.cosine > 0.6


@pytest.mark.parametrize(("start", "rate"), [("solved", 30.0), ("solved", 1e30), ("random", 1e30)])
def test_a_head_that_diverges_says_so(start: str, rate: float, embeddings: np.ndarray) -> None:
    stealer = FrozenHead(hidden=64, epochs=5, start=start, learning_rate=rate)
    with pytest.raises(InputError, match=r"diverged in pass \d, .*make learning_rate=.* smaller"):
        stealer.steal_from_features(embeddings[:SMALL], embeddings[:SMALL])


def test_a_head_stops_early_and_keeps_its_best_state(embeddings: np.ndarray) -> None:
    rng = np.random.default_rng(0)
    features, noise = embeddings[:SMALL], rng.standard_normal((SMALL, 32)).astype(np.float32)  # nothing to learn
    model = FrozenHead(hidden=256, epochs=50, patience=2, dropout=0.0).steal_from_features(features, noise)
    assert len(model.history) < 51
    assert max(model.history[-2:]) < max(model.history)


def test_a_head_without_an_encoder_answers_for_features(embeddings: np.ndarray) -> None:
    stealer = FrozenHead(hidden=0)
    model = stealer.steal_from_features(embeddings[:100], embeddings[:100, ::-1])
    assert model.apply(embeddings[:3]).shape == (3, 256)
    with pytest.raises(InputError, match=r"call apply\(features\)"):
        model.encode(["a text"])
    with pytest.raises(InputError, match="call steal_from_features"):
        stealer.steal(["a text"], embeddings[:1])
    with pytest.raises(InputError, match="width 3, but the head was trained on width 256"):
        model.apply(np.eye(3, dtype=np.float32))
    with pytest.raises(InputError, match="99 features but 100 targets"):
        stealer.steal_from_features(embeddings[:99], embeddings[:100])
    broken = embeddings[:100].copy()
    broken[5, 5] = np.nan
    with pytest.raises(InputError, match="row 5 of the features is not finite"):
        stealer.steal_from_features(broken, embeddings[:100])


def test_features_may_be_constant(embeddings: np.ndarray) -> None:
    for hidden in (0, 16):
        model = FrozenHead(hidden=hidden).steal_from_features(np.ones((50, 4), np.float32), embeddings[:50])
        assert np.isfinite(model.apply(np.ones((1, 4), np.float32))).all()


@pytest.mark.parametrize(
    "options",
    [
        {"hidden": -1},
        {"epochs": -1},
        {"batch_size": 0},
        {"patience": 0},
        {"learning_rate": 0.0},
        {"learning_rate": float("nan")},
        {"dropout": 1.0},
        {"start": "warm"},
    ],
)
def test_bad_options_of_a_head_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=next(iter(options))):
        FrozenHead(**options)


def test_heads_of_the_same_texts_share_a_factorisation_and_nothing_else(embeddings: np.ndarray) -> None:
    features, first, second = embeddings[:SMALL], embeddings[:SMALL, ::-1], embeddings[:SMALL, :100]
    stealer = FrozenHead(hidden=64, epochs=3, dropout=0.0)
    alone = stealer.steal_from_features(features, second).apply(features)
    _SOLVERS.clear()
    stealer.steal_from_features(features, first)  # trains its hidden layer, which must stay its own
    assert len(_SOLVERS) == 1
    np.testing.assert_array_equal(stealer.steal_from_features(features, second).apply(features), alone)
    assert len(_SOLVERS) == 1
