"""The battery over every built-in stealer."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regionmarker.benchmark.stealers import known_stealers, load_stealer
from tests.contracts import stealers as checks
from tests.support.backbones import LetterFeatures

_TINY = {"epochs": 3, "batch_size": 16, "learning_rate": 1e-3, "hidden": 32, "max_length": 24, "threads": 1}
_PUBLISHED = _TINY | {"learning_rate": 1e-2}

# Name -> spec, what it needs of the fixtures, options, and how many texts will do.
THIEVES: dict[str, tuple[str, Callable[[Any], dict[str, Any]], int]] = {
    "bag": ("tokens", lambda get: {}, 400),
    "bag of wordllama's tokens": ("tokens:wordllama", lambda get: {}, 400),
    "linear head": ("head", lambda get: {"features": LetterFeatures(), "hidden": 0}, 400),
    "head": ("head", lambda get: {"features": LetterFeatures(), "hidden": 64, "epochs": 2}, 400),
    "drawn head": (
        "head",
        lambda get: {"features": LetterFeatures(), "hidden": 64, "start": "random", "batch_size": 20},
        400,
    ),
    "simulated": ("simulated:0.8", lambda get: {"teacher": get("wordllama")}, 400),
    "bert": ("backbone:{tiny_bert}", lambda get: _TINY, 60),
    "qwen2": ("backbone:{tiny_qwen2}", lambda get: _TINY, 60),
    "published bert": ("backbone:{tiny_bert},recipe=published", lambda get: _PUBLISHED, 60),
}
TRAINED = [kind for kind in THIEVES if kind != "simulated"]


def _material(kind: str, request: pytest.FixtureRequest) -> tuple[checks.Make, list[str], np.ndarray]:
    spec, options, count = THIEVES[kind]
    if "{" in spec:
        fixture = spec.partition("{")[2].partition("}")[0]
        spec = spec.format(**{fixture: request.getfixturevalue(fixture)})
        request.getfixturevalue("quiet_torch")
    given = options(request.getfixturevalue)

    def make(**more: Any) -> Any:
        return load_stealer(spec, **(given | more))

    return make, request.getfixturevalue("texts")[:count], request.getfixturevalue("served")[:count]


def test_every_built_in_stealer_is_here() -> None:
    assert {spec.partition(":")[0] for spec, _, _ in THIEVES.values()} == set(known_stealers())


@pytest.mark.parametrize("check", checks.EVERY, ids=lambda check: check.__name__)
@pytest.mark.parametrize("kind", THIEVES)
def test_every_stealer(kind: str, check: checks.Check, request: pytest.FixtureRequest) -> None:
    check(*_material(kind, request))


@pytest.mark.parametrize("check", checks.TRAINED, ids=lambda check: check.__name__)
@pytest.mark.parametrize("kind", TRAINED)
def test_every_stealer_that_trains(kind: str, check: checks.Check, request: pytest.FixtureRequest) -> None:
    check(*_material(kind, request))


@pytest.mark.parametrize("kind", ["bert", "qwen2", "published bert"])
def test_models_that_can_be_saved(kind: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    make, texts, served = _material(kind, request)
    checks.a_saved_model_answers_as_before(make(epochs=1).steal(texts, served), tmp_path / "stolen", texts[:10])


@pytest.mark.parametrize("kind", [kind for kind in THIEVES if not THIEVES[kind][0].startswith("backbone")])
def test_the_everyday_thieves_need_neither_torch_nor_scikit_learn(kind: str, request: pytest.FixtureRequest) -> None:
    make, texts, served = _material(kind, request)
    before = {"torch", "sklearn"} & sys.modules.keys()
    make().steal(texts, served)
    assert {"torch", "sklearn"} & sys.modules.keys() == before


def test_a_stealer_that_peeks_fails_the_battery(texts: list[str], served: np.ndarray) -> None:
    """The check of the clean vectors can fail: here it meets a stealer that learns from them."""

    class Peeking:
        name = "peeking"

        def steal(self, texts: Any, targets: Any, /, *, clean: Any = None) -> Any:
            return load_stealer("tokens").steal(texts, targets if clean is None else clean[:, : targets.shape[1]])

    with pytest.raises((AssertionError, ValueError)):
        checks.clean_vectors_are_not_learnt_from(lambda **options: Peeking(), texts, served)
