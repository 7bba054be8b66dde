"""What every thief promises, and how well each of them learns."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from regionmarker.benchmark.attacks import compose
from regionmarker.benchmark.protocols import Stealer, StolenModel
from regionmarker.benchmark.stealers import (
    Fidelity,
    FrozenHead,
    HashedGrams,
    NoisyCopy,
    TokenBag,
)
from regionmarker.errors import InputError

SMALL = 400


class LetterFeatures:
    """A frozen encoder that is not the provider: hashed letter groups, projected at random."""

    name = "letters"

    def __init__(self, width: int = 384) -> None:
        self._table = np.random.default_rng(5).standard_normal((4096, width)).astype(np.float32)

    def encode(self, texts: Any) -> np.ndarray:
        rows = np.stack([self._table[row].mean(axis=0) for row in HashedGrams(3, size=4096).tokens(texts)])
        return rows / np.linalg.norm(rows, axis=1, keepdims=True)


Make = Callable[..., Any]
THIEVES: dict[str, Make] = {
    "bag": lambda wordllama, **options: TokenBag(**options),
    "bag of wordllama's tokens": lambda wordllama, **options: TokenBag("wordllama", **options),
    "linear head": lambda wordllama, **options: FrozenHead(LetterFeatures(), hidden=0, **options),
    "head": lambda wordllama, **options: FrozenHead(LetterFeatures(), hidden=64, epochs=2, **options),
    "drawn head": lambda wordllama, **options: FrozenHead(
        LetterFeatures(), hidden=64, start="random", batch_size=20, **options
    ),
    "simulated": lambda wordllama, **options: NoisyCopy(wordllama, 0.8, **options),
}
TRAINED = [kind for kind in THIEVES if kind != "simulated"]


@pytest.fixture(params=list(THIEVES))
def make(request: pytest.FixtureRequest, wordllama: Any) -> Make:
    return lambda **options: THIEVES[request.param](wordllama, **options)


@pytest.fixture(params=TRAINED)
def trained(request: pytest.FixtureRequest, wordllama: Any) -> Make:
    return lambda **options: THIEVES[request.param](wordllama, **options)


@pytest.fixture(scope="module")
def texts(sentences: list[str]) -> list[str]:
    return sentences[:SMALL]


@pytest.fixture(scope="module")
def served(embeddings: np.ndarray) -> np.ndarray:
    return embeddings[:SMALL]


# ---- the battery


def test_a_thief_makes_a_named_model_with_a_fidelity(make: Make, texts: list[str], served: np.ndarray) -> None:
    thief = make()
    model = thief.steal(texts, served, clean=served)
    assert isinstance(thief, Stealer)
    assert isinstance(model, StolenModel)
    assert thief.name
    assert model.name in repr(model)
    assert isinstance(model.fidelity, Fidelity)
    assert model.fidelity.reference == "clean"
    assert make().steal(texts, served).fidelity.reference == "targets"


def test_its_answers_are_unit_float32_rows_batch_or_not(make: Make, texts: list[str], served: np.ndarray) -> None:
    model = make().steal(texts, served)
    questions = [*texts[:5], "words it has never seen: zxqv", "東京", "!"]
    answers = model.encode(questions)
    assert answers.dtype == np.float32
    assert answers.shape == (8, 256)
    assert np.abs(np.linalg.norm(answers.astype(np.float64), axis=1) - 1).max() < 1e-5
    assert np.allclose(model.encode([questions[3]]), answers[3:4], atol=1e-5)
    assert model.encode([]).shape == (0, 256)


def test_the_same_seed_makes_the_same_copy(make: Make, texts: list[str], served: np.ndarray) -> None:
    first, second, other = (make(seed=seed).steal(texts, served) for seed in (3, 3, 4))
    assert np.array_equal(first.encode(texts), second.encode(texts))
    assert first.fidelity == second.fidelity
    assert not np.array_equal(first.encode(texts), other.encode(texts))


def test_it_does_not_touch_what_it_is_given(make: Make, texts: list[str], served: np.ndarray) -> None:
    mine, same = served.copy(), list(texts)
    make().steal(same, mine)
    assert np.array_equal(mine, served) and same == texts  # noqa: PT018


def test_targets_of_another_width_make_a_model_of_that_width(
    trained: Make, texts: list[str], served: np.ndarray
) -> None:
    targets = compose(["shift:100", "truncate:2/3"])(served, texts)
    model = trained().steal(texts, targets, clean=served)
    assert model.encode(texts[:2]).shape == (2, 171)
    assert model.fidelity.cosine > 0.3


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_targets_that_are_not_finite_are_refused(make: Make, texts: list[str], served: np.ndarray, bad: float) -> None:
    broken = served.copy()
    broken[11, 2] = bad
    with pytest.raises(InputError, match=r"^row 11 holds NaN or infinity"):
        make().steal(texts, broken)


def test_zero_targets_are_refused(make: Make, texts: list[str], served: np.ndarray) -> None:
    broken = served.copy()
    broken[11] = 0
    with pytest.raises(InputError, match=r"^row 11 is zero"):
        make().steal(texts, broken)


def test_texts_and_targets_must_match(make: Make, texts: list[str], served: np.ndarray) -> None:
    with pytest.raises(InputError, match="399 texts but 400 targets"):
        make().steal(texts[1:], served)
    with pytest.raises(InputError, match="400 targets but 3 clean vectors"):
        make().steal(texts, served, clean=served[:3])
    with pytest.raises(InputError, match="text 0 is empty"):
        make().steal(["", *texts[1:]], served)


@pytest.mark.parametrize("count", [0, 1, 19])
def test_too_few_texts_are_refused(trained: Make, texts: list[str], served: np.ndarray, count: int) -> None:
    with pytest.raises(InputError, match=f"at least 20 distinct texts to train on, but there are {count}"):
        trained().steal(texts[:count], served[:count])
    with pytest.raises(InputError, match="at least 20 distinct texts to train on, but there are 1"):
        trained().steal(["the same"] * 50, np.repeat(served[:1], 50, axis=0))


def test_the_fewest_texts_will_do(trained: Make, texts: list[str], served: np.ndarray) -> None:
    assert trained().steal(texts[:20], served[:20]).fidelity.texts >= 1


@pytest.mark.parametrize("share", [0.0, 1.0, -1.0, 0.999])
def test_the_share_held_out_must_leave_something(
    trained: Make, texts: list[str], served: np.ndarray, share: float
) -> None:
    with pytest.raises(InputError, match="held_out"):
        trained(held_out=share).steal(texts, served)


def test_progress_is_told(trained: Make, texts: list[str], served: np.ndarray) -> None:
    seen: list[tuple[int, int]] = []
    thief = trained(progress=lambda done, total: seen.append((done, total)))
    thief.steal(texts, served)
    if getattr(thief, "hidden", 1):  # a linear head is solved at one stroke
        assert [done for done, _ in seen] == list(range(1, len(seen) + 1))
        assert 0 < len(seen) <= seen[0][1]


def test_no_thief_needs_torch_or_scikit_learn(make: Make, texts: list[str], served: np.ndarray) -> None:
    before = {"torch", "sklearn"} & sys.modules.keys()
    make().steal(texts, served)
    assert {"torch", "sklearn"} & sys.modules.keys() == before


# ---- how well they learn


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


# ---- the head in particular


@pytest.mark.parametrize(("start", "rate"), [("solved", 30.0), ("solved", 1e30), ("random", 1e30)])
def test_a_head_that_diverges_says_so(start: str, rate: float, embeddings: np.ndarray) -> None:
    thief = FrozenHead(hidden=64, epochs=5, start=start, learning_rate=rate)
    with pytest.raises(InputError, match=r"diverged in pass \d, .*make learning_rate=.* smaller"):
        thief.steal_from_features(embeddings[:SMALL], embeddings[:SMALL])


def test_a_head_stops_early_and_keeps_its_best_state(embeddings: np.ndarray) -> None:
    rng = np.random.default_rng(0)
    features, noise = embeddings[:SMALL], rng.standard_normal((SMALL, 32)).astype(np.float32)  # nothing to learn
    model = FrozenHead(hidden=256, epochs=50, patience=2, dropout=0.0).steal_from_features(features, noise)
    assert len(model.history) < 51
    assert max(model.history[-2:]) < max(model.history)


def test_a_head_without_an_encoder_answers_for_features(embeddings: np.ndarray) -> None:
    thief = FrozenHead(hidden=0)
    model = thief.steal_from_features(embeddings[:100], embeddings[:100, ::-1])
    assert model.apply(embeddings[:3]).shape == (3, 256)
    with pytest.raises(InputError, match=r"call apply\(features\)"):
        model.encode(["a text"])
    with pytest.raises(InputError, match="call steal_from_features"):
        thief.steal(["a text"], embeddings[:1])
    with pytest.raises(InputError, match="width 3, but the head was trained on width 256"):
        model.apply(np.eye(3, dtype=np.float32))
    with pytest.raises(InputError, match="99 features but 100 targets"):
        thief.steal_from_features(embeddings[:99], embeddings[:100])
    broken = embeddings[:100].copy()
    broken[5, 5] = np.nan
    with pytest.raises(InputError, match="row 5 of the features is not finite"):
        thief.steal_from_features(broken, embeddings[:100])


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


# ---- the bag in particular


def test_bad_options_of_a_bag_are_refused() -> None:
    for options in ({"penalty": 0.0}, {"penalty": float("nan")}, {"iterations": 0}):
        with pytest.raises(InputError, match="penalty must be positive and iterations at least 1"):
            TokenBag(**options)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="unknown vocabulary 'bytes'"):
        TokenBag("bytes")
    with pytest.raises(InputError, match="letters"):
        HashedGrams(-1)
