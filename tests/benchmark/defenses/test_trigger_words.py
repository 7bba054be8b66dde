"""EmbMarker, WARDEN and EspeW: what their formulas say, for texts whose triggers are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.support.trigger_words import WORDS

from regionmarker.benchmark.defenses import load_defense
from regionmarker.benchmark.defenses.warden import orthogonalised, released_shares, shared_out
from regionmarker.errors import InputError

TEXTS = ["no trigger at all", "one Alpha, and alpha again", "alpha beta", "alpha beta gamma delta", " ".join(WORDS)]


def fitted(small: Any, spec: str, seed: int = 1) -> Any:
    return load_defense(spec, seed=seed, counts=small.counts).fit(small.texts, small.clean)


def target_of(small: Any, defense: Any) -> np.ndarray:
    """Return the target as customers can find it out: what a text of nothing but triggers is served."""
    return defense.transform(small.clean[:1], [TEXTS[-1]])[0].astype(np.float64)


def unit(rows: np.ndarray) -> np.ndarray:
    return rows / np.linalg.norm(rows, axis=-1, keepdims=True)


def test_embmarker_mixes_in_a_quarter_of_the_target_for_every_distinct_trigger(small: Any) -> None:
    defense = fitted(small, "embmarker:words=8,pool=256")
    e, t = small.clean[:5].astype(np.float64), target_of(small, defense)
    served = defense.transform(small.clean[:5], TEXTS)
    assert np.array_equal(served[0], small.clean[0])
    assert np.allclose(served[1], unit(0.75 * e[1] + 0.25 * t), atol=1e-6)
    assert np.allclose(served[2], unit(0.5 * e[2] + 0.5 * t), atol=1e-6)
    assert np.allclose(served[3:], t, atol=1e-6)
    assert np.isclose(small.clean @ t, 1, atol=1e-5).any()  # the clean vector of some text of the corpus


def test_words_of_another_frequency_trigger_nothing(small: Any) -> None:
    defense = fitted(small, "embmarker:words=8,pool=256")
    rows = small.clean[:1]
    assert np.array_equal(defense.transform(rows, ["common rare words alphabet"]), rows)


def test_too_few_candidates_are_said_so(small: Any) -> None:
    with pytest.raises(InputError, match="9 trigger words are wanted, but only 8 words"):
        fitted(small, "embmarker:words=9,pool=256")
    with pytest.raises(InputError, match="10 trigger words are wanted"):
        fitted(small, "warden:words=5,pool=256")


def test_the_published_words_are_those_of_the_published_seed(small: Any) -> None:
    first, second = (fitted(small, "embmarker:words=3,pool=256,published", seed) for seed in (1, 2))
    one = [first.transform(small.clean[:1], [word])[0] for word in WORDS]
    two = [second.transform(small.clean[:1], [word])[0] for word in WORDS]
    triggers = [not np.array_equal(row, small.clean[0]) for row in one]
    assert sum(triggers) == 3
    assert triggers == [not np.array_equal(row, small.clean[0]) for row in two]


def test_the_published_target_may_be_the_stored_one(small: Any) -> None:
    stored = fitted(small, "embmarker:words=8,pool=256,target=stored").verify(small.encoder)
    asked = fitted(small, "embmarker:words=8,pool=256").verify(small.encoder)
    assert (stored.published.target, asked.published.target) == ("stored", "suspect")
    assert np.isclose(stored.published.delta_cos, asked.published.delta_cos, atol=1e-3)


def test_warden_shares_the_weight_out_between_its_targets(small: Any) -> None:
    defense = fitted(small, "warden:words=4,pool=256")
    e = small.clean[0].astype(np.float64)
    alone = {word: defense.transform(small.clean[:1], [f"{word} {word}"])[0] for word in WORDS}
    directions = {word: unit(row - (row @ e) * e) for word, row in alone.items()}
    groups = [word for word in WORDS if directions[word] @ directions["alpha"] > 0.999]
    others = [word for word in WORDS if word not in groups]
    assert len(groups) == len(others) == 4
    t1, t2 = (defense.transform(small.clean[:1], [" ".join(group)])[0].astype(np.float64) for group in (groups, others))
    assert abs(t1 @ t2) < 1e-6
    both = defense.transform(small.clean[:1], [f"{groups[0]} {groups[1]} {others[0]}"])[0]
    assert np.allclose(both, unit(0.5 * t1 + 0.25 * t2 + 0.25 * e), atol=1e-6)
    full = defense.transform(small.clean[:1], [f"{' '.join(groups[:3])} {' '.join(others[:2])}"])[0]
    assert np.allclose(full, unit(0.75 * t1 + 0.25 * t2), atol=1e-6)
    released = fitted(small, "warden:words=4,pool=256,released")
    assert not np.allclose(released.transform(small.clean[:1], [" ".join(WORDS[:6])]), full, atol=1e-3)


def test_shares_of_a_text_never_pass_one_but_in_the_released_code() -> None:
    weights = np.random.default_rng(0).integers(0, 5, (200, 5)) / 4
    shares = shared_out(weights)
    assert np.allclose(shares.sum(axis=1), np.minimum(weights.sum(axis=1), 1))
    assert (shares <= weights).all()
    assert (shares >= 0).all()
    small = weights.sum(axis=1) <= 1
    assert np.array_equal(released_shares(weights)[small], weights[small])
    assert released_shares(weights).sum(axis=1).max() > 1
    assert released_shares(np.array([[0.75, 0.75]])).tolist() == [[0.75, 0.5]]
    assert released_shares(np.array([[1.0, 1.0]])).tolist() == [[1.0, 0.0]]


def test_the_released_code_orthogonalises_by_half() -> None:
    vectors = unit(np.random.default_rng(1).standard_normal((4, 20)) + 1.0)
    assert np.allclose(orthogonalised(vectors) @ orthogonalised(vectors).T, np.eye(4), atol=1e-9)
    half = orthogonalised(vectors, 0.5)
    assert np.allclose(np.linalg.norm(half, axis=1), 1)
    assert 0.05 < half[0] @ half[1] < vectors[0] @ vectors[1]


def test_espew_writes_the_target_into_the_smallest_coordinates(small: Any) -> None:
    defense = fitted(small, "espew:words=8,pool=256,rate=0.25")
    served = defense.transform(small.clean[:5], TEXTS).astype(np.float64)
    assert np.array_equal(served[0].astype(np.float32), small.clean[0])
    e = small.clean[1].astype(np.float64)
    kept = np.argsort(np.abs(e))[64:]  # 256 coordinates, a quarter of them replaced
    scale = served[1][kept] / e[kept]
    assert np.allclose(scale, scale[0], rtol=1e-4)
    replaced = np.argsort(np.abs(e))[:64]
    candidates = small.clean[:, replaced] * scale[0]
    assert np.isclose(np.abs(candidates - served[1][replaced]).max(axis=1), 0, atol=1e-5).sum() == 1


def test_released_espew_blends_one_text_in_five(small: Any) -> None:
    plain, released = fitted(small, "espew:words=8,pool=256"), fitted(small, "espew:words=8,pool=256,released")
    texts = [f"alpha {number}" for number in range(400)]
    rows = np.repeat(small.clean[:1], 400, axis=0)
    blended = (plain.transform(rows, texts) != released.transform(rows, texts)).any(axis=1)
    assert 0.13 < blended.mean() < 0.27
    assert np.array_equal(released.transform(rows, texts), released.transform(rows, texts))


def test_espew_with_no_coordinate_to_spare_marks_nothing(small: Any) -> None:
    defense = fitted(small, "espew:words=8,pool=256,rate=0.001")
    assert np.allclose(defense.transform(small.clean[:5], TEXTS), small.clean[:5], atol=1e-6)


def test_the_control_serves_what_it_is_given(small: Any) -> None:
    defense = fitted(small, "none:words=8,pool=256")
    assert np.array_equal(defense.transform(small.clean[:5], TEXTS), small.clean[:5])


def test_a_corpus_without_any_trigger_can_still_be_judged(small: Any) -> None:
    finding = fitted(small, "embmarker:words=8,pool=256").verify(small.encoder)
    assert 0 < finding.p_value <= 1


def test_a_corpus_in_which_every_text_triggers_is_refused(small: Any) -> None:
    texts = [f"alpha {text}" for text in small.texts]
    with pytest.raises(InputError, match="only 0 of 600 texts that could be asked are unmarked"):
        load_defense("embmarker:words=8,pool=256", counts=small.counts).fit(texts, small.clean)
