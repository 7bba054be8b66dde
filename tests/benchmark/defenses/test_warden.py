"""WARDEN: several targets share the weight of a text."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.support.trigger_words import WORDS, fitted, unit

from regionmarker.benchmark.defenses.warden import orthogonalised, released_shares, shared_out


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
