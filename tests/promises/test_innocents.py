"""The innocent are convicted as often as promised, and a verifier that breaks a rule is caught by the same count.

A small form of ``python -m studies.innocents``: real texts, narrow vectors, a hundred and twenty keys with fixed seeds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from scipy.stats import kstest
from tests.support.suspects import blurred, hashed_letters

from regionmarker.vectors import normalised
from regionmarker.verification.examination import examine
from regionmarker.verification.judging import judge
from regionmarker.verification.list_test import ListTest
from studies.innocents import sabotage
from studies.innocents.judging import Room
from studies.innocents.keys import Keys
from studies.innocents.summary import band, outside
from studies.innocents.suspects import Corpus, turned

KEYS, REDRAWS, TEXTS, WIDTH = 120, 300, 900, 48
LEVELS = (0.05, 1e-3)
SUSPECTS = ("the unmarked encoder", "the same, turned", "a noisy copy", "hashed letters")
AXES = dict(zip(SUSPECTS, ("matched", "unknown", "matched", "unknown"), strict=True))
LOOKS = (300, 450)  # texts, before all that there are


@dataclass(frozen=True)
class Judged:
    """What one key made of one suspect."""

    axes: str
    asked: int
    test: ListTest
    targets: np.ndarray  # (1, J)
    drawn: np.ndarray  # (T, J): tuples as likely as the true one


@pytest.fixture(scope="module")
def corpus(sentences: list[str], embeddings: np.ndarray) -> Corpus:
    mixing = np.random.default_rng(0).standard_normal((embeddings.shape[1], WIDTH))
    clean = normalised((embeddings[:TEXTS] @ mixing).astype(np.float32))
    rows = np.arange(TEXTS)
    return Corpus(tuple(sentences[:TEXTS]), np.zeros(TEXTS, dtype=np.int64), clean, clean, rows, rows)


@pytest.fixture(scope="module")
def keys(corpus: Corpus) -> Keys:
    return Keys(corpus)


@pytest.fixture(scope="module")
def suspects(corpus: Corpus) -> dict[str, np.ndarray]:
    letters = np.random.default_rng(1).standard_normal((300, WIDTH))
    answers = (
        corpus.clean,
        turned(corpus.clean),
        blurred(corpus.clean, 0.8, seed=1),
        hashed_letters(list(corpus.texts)) @ letters,
    )
    return dict(zip(SUSPECTS, answers, strict=True))


@pytest.fixture(scope="module")
def judged(corpus: Corpus, keys: Keys, suspects: dict[str, np.ndarray]) -> dict[str, list[Judged]]:
    found: dict[str, list[Judged]] = {name: [] for name in suspects}
    for seed in range(KEYS):
        key = keys.made(seed)
        room, targets = Room(corpus, key, seed, budget=LOOKS[-1]), np.array([key.provider_targets()])
        for name, vectors in suspects.items():
            answers = room.asked(name, vectors)
            examination = examine(key, answers)
            test = room.test(examination)
            lists = np.arange(test.carriers)
            rng = np.random.default_rng([seed, SUSPECTS.index(name)])
            drawn = rng.integers(test.list_size, size=(REDRAWS, test.carriers)) + test.list_size * lists
            found[name].append(Judged(examination.axes, len(answers), test, targets, drawn))
    return found


def fails(p_values: np.ndarray, counts: int = 1) -> bool:
    """Whether p-values are at or below one of the levels too often or too rarely."""
    return any(outside(p_values, level, counts * len(LEVELS)) for level in LEVELS)


@pytest.mark.parametrize("name", SUSPECTS)
def test_an_innocent_is_convicted_as_often_as_promised(name: str, judged: dict[str, list[Judged]]) -> None:
    assert {one.axes for one in judged[name]} == {AXES[name]}  # both branches
    assert {one.asked > LOOKS[-1] for one in judged[name]} == {AXES[name] == "unknown"}  # the budget grew
    p_values = np.array([one.test.p_values(one.targets)[0] for one in judged[name]])
    assert not fails(p_values, counts=len(SUSPECTS))
    assert kstest(p_values, "uniform").pvalue > 0.01 / len(SUSPECTS)


@pytest.mark.parametrize("name", SUSPECTS)
def test_that_is_the_verdict(
    name: str, corpus: Corpus, keys: Keys, suspects: dict[str, np.ndarray], judged: dict[str, list[Judged]]
) -> None:
    room = Room(corpus, keys.made(7), 7, budget=LOOKS[-1])
    verdict = judge(room.key, room.asked(name, suspects[name]), power=False)
    one = judged[name][7]
    assert (verdict.p_value, verdict.axes) == (one.test.p_values(one.targets)[0], one.axes)


@pytest.mark.parametrize("name", SUSPECTS)
def test_so_it_is_with_targets_drawn_again(name: str, judged: dict[str, list[Judged]]) -> None:
    p_values = np.concatenate([one.test.p_values(one.drawn) for one in judged[name]])
    assert not fails(p_values, counts=len(SUSPECTS))


@pytest.mark.parametrize("title", sabotage.VERIFIERS)
def test_a_verifier_that_breaks_a_rule_fails(title: str, judged: dict[str, list[Judged]]) -> None:
    few = 100 if title.startswith("best") else 4  # the others need a convolution for every tuple
    every = [one for judgements in judged.values() for one in judgements[:50]]
    p_values = np.concatenate([sabotage.VERIFIERS[title](one.test, one.drawn[:few]) for one in every])
    assert fails(p_values)
    assert not fails(np.concatenate([one.test.p_values(one.drawn[:few]) for one in every]))


def test_stopping_when_p_is_small_fails(
    corpus: Corpus, keys: Keys, suspects: dict[str, np.ndarray], judged: dict[str, list[Judged]]
) -> None:
    p_values = []
    for seed, one in enumerate(judged["hashed letters"][:40]):
        room = Room(corpus, keys.made(seed), seed)
        looks = [room.test_at("letters", suspects["hashed letters"], budget) for budget in LOOKS]
        p_values.append(sabotage.stop_when_small([*looks, one.test], one.drawn))
    assert fails(np.concatenate(p_values))


@pytest.mark.parametrize("name", SUSPECTS[:2])
def test_a_verifier_who_takes_marked_vectors_for_clean_ones_fails(
    name: str, corpus: Corpus, keys: Keys, suspects: dict[str, np.ndarray]
) -> None:
    p_values: list[Any] = []
    for seed in range(40):
        key = keys.made(seed)
        room = Room(corpus, key, seed)
        examination = examine(key, room.asked(name, suspects[name]))
        misled = room.test(sabotage.marked_as_clean(key, examination))
        p_values.append(misled.p_value(key.provider_targets()))
    assert fails(np.array(p_values))


def test_a_count_that_is_right_does_not_fail() -> None:
    rng: Any = np.random.default_rng(0)
    samples: Sequence[np.ndarray] = rng.random((400, KEYS))
    assert sum(fails(sample) for sample in samples) <= band(400, 0.01)[1]
