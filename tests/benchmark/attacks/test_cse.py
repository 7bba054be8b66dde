"""CSE finds and removes a shared mark, and its ranks are those of a brute-force ranking."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.stats import rankdata

from regionmarker.benchmark.attacks import CSE
from regionmarker.benchmark.attacks import cse as pairs
from regionmarker.benchmark.attacks.cse import (
    bins,
    cluster,
    gram_blocks,
    kmeans,
    leading_directions,
    suspicious_pairs,
    without,
)
from regionmarker.benchmark.protocols import StolenData
from regionmarker.errors import InputError


@pytest.fixture
def two_views() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Served and public vectors of 400 texts with something in common, and clusters of unequal size."""
    rng = np.random.default_rng(3)
    meaning = rng.standard_normal((400, 12))
    served = _unit(meaning @ rng.standard_normal((12, 30)) + rng.standard_normal((400, 30)))
    public = _unit(meaning @ rng.standard_normal((12, 20)) + rng.standard_normal((400, 20)))
    return served, public, np.minimum(rng.geometric(0.3, 400), 6)


def brute_force(served: np.ndarray, public: np.ndarray, clusters: np.ndarray) -> dict[tuple[int, int], float]:
    """The published way: every pair inside a cluster, ranked over all clusters by sorting."""
    first, second = np.triu_indices(len(served), k=1)
    inside = clusters[first] == clusters[second]
    first, second = first[inside], second[inside]
    ranks = [rankdata(np.einsum("ij,ij->i", rows[first], rows[second], dtype=np.float64)) for rows in (served, public)]
    differences = (ranks[0] - ranks[1]) / len(first)
    return {(int(a), int(b)): float(d) for a, b, d in zip(first, second, differences, strict=True)}


def test_every_pair_inside_a_cluster_comes_once(two_views: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    served, public, clusters = two_views
    monkeypatch.setattr(pairs, "_BLOCK_PAIRS", 500)  # so that clusters are cut
    found = [
        (int(a), int(b)) for first, second, _, _ in gram_blocks(served, public, clusters)
        for a, b in zip(first, second, strict=True)
    ]  # fmt: skip
    assert len(found) == len(set(found))
    assert set(found) == set(brute_force(served, public, clusters))


@pytest.mark.parametrize("block", [500, 1 << 20])
def test_differences_are_those_of_a_full_ranking_to_within_the_error_told(
    two_views: Any, block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    served, public, clusters = two_views
    monkeypatch.setattr(pairs, "_BLOCK_PAIRS", block)
    truth = brute_force(served, public, clusters)
    every = suspicious_pairs(served, public, clusters, len(truth))
    assert every.pairs == len(truth) == len(every.first)
    assert every.error < 1e-3
    for a, b, difference in zip(every.first, every.second, every.differences, strict=True):
        assert abs(difference - truth[int(a), int(b)]) <= every.error + 1e-6
    assert (np.diff(every.differences) <= 0).all()


def test_the_pairs_kept_are_the_most_suspicious(two_views: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    served, public, clusters = two_views
    truth = brute_force(served, public, clusters)
    exact = sorted(truth.values(), reverse=True)
    kept = suspicious_pairs(served, public, clusters, 40)
    least = min(truth[int(a), int(b)] for a, b in zip(kept.first, kept.second, strict=True))
    assert len(kept.first) == 40
    assert least >= exact[39] - 2 * kept.error
    monkeypatch.setattr(pairs, "_BLOCK_PAIRS", 300)
    again = suspicious_pairs(served, public, clusters, 40)
    assert np.array_equal(again.rows, kept.rows)
    assert np.allclose(again.differences, kept.differences, atol=1e-6)


def test_coarse_bins_are_told_as_a_larger_error(two_views: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    served, public, clusters = two_views
    fine = suspicious_pairs(served, public, clusters, 10).error
    monkeypatch.setattr(pairs, "BINS", 64)
    coarse = suspicious_pairs(served, public, clusters, 10)
    assert coarse.error > 20 * fine
    assert bins(np.array([-1.1, -1.0, 0.0, 1.0, 1.1], dtype=np.float32)).tolist() == [0, 0, 32, 63, 63]


def test_removes_the_target_that_some_texts_share(stolen: StolenData, encoder: Any, sentences: list[str]) -> None:
    """As EmbMarker marks: texts with a trigger are pulled towards one target. Afterwards little of it is left."""
    texts = sentences[:1500]
    clean, target = encoder.encode(texts), encoder.encode(sentences[3000:3001])[0]
    marked = np.random.default_rng(0).permutation(len(texts))[:300]
    served = clean.copy()
    served[marked] = _unit(0.4 * clean[marked] + 0.6 * target)
    attacked = CSE(components=20).apply(StolenData(tuple(texts), served, public=stolen.public))
    place = {text: row for row, text in enumerate(attacked.texts)}
    rows = [place[texts[row]] for row in marked if texts[row] in place]
    others = sorted(set(range(len(attacked))) - set(rows))

    def delta(vectors: np.ndarray, inside: Any, outside: Any) -> float:
        return float((vectors[inside] @ target).mean() - (vectors[outside] @ target).mean())

    before = delta(served, marked, np.setdiff1d(np.arange(len(texts)), marked))
    assert before > 0.5
    assert abs(delta(attacked.vectors, rows, others)) < before / 5
    found = CSE(components=20).suspects(StolenData(tuple(texts), served, public=stolen.public)).rows
    assert np.isin(found, marked).mean() > 0.8  # a fifth of the texts are marked


def test_one_projection_is_what_the_published_loop_does() -> None:
    rng = np.random.default_rng(5)
    rows = _unit(rng.standard_normal((50, 16)))
    directions = leading_directions(rows[:20], 6)
    looped = rows.astype(np.float64)
    for direction in directions:  # subtract and normalise, one direction after the other
        looped = looped - (looped @ direction)[:, None] * direction
        looped /= np.linalg.norm(looped, axis=1, keepdims=True)
    assert np.allclose(_unit(without(rows, directions)), looped, atol=1e-6)


def test_the_directions_are_the_leading_singular_vectors() -> None:
    rows = np.random.default_rng(6).standard_normal((40, 9))
    found = leading_directions(rows, 4)
    truth = np.linalg.svd(rows)[2][:4]
    assert np.allclose(np.abs((found * truth).sum(axis=1)), 1)
    assert leading_directions(rows[:3], 9).shape == (3, 9)
    assert leading_directions(np.zeros((5, 9)), 9).shape == (0, 9)


def test_rows_that_were_nothing_but_the_mark_are_dropped(stolen: StolenData) -> None:
    """Few suspicious rows span few directions, and are gone with them: nothing is left to train on."""
    few = stolen.kept(np.arange(60))
    suspects = CSE().suspects(few).rows
    attacked = CSE().apply(few)
    assert len(attacked) == 60 - len(suspects)
    assert not {few.texts[row] for row in suspects} & set(attacked.texts)


@pytest.mark.parametrize("method", ["kmeans", "gmm"])
def test_clusters_that_lie_apart_are_found(method: str) -> None:
    rng = np.random.default_rng(0)
    truth = np.repeat(np.arange(4), 50)
    rows = (5 * np.eye(4, 6)[truth] + rng.standard_normal((200, 6)) * 0.3).astype(np.float32)
    found = cluster(rows, 4, method=method, seed=1)
    assert len({(a, b) for a, b in zip(found.tolist(), truth.tolist(), strict=True)}) == 4


def test_gaussians_find_what_centres_cannot() -> None:
    """A wide and a narrow cloud: k-means cuts halfway, a mixture looks at the spread."""
    rng = np.random.default_rng(0)
    wide, narrow = rng.normal(0, 3, (300, 2)), rng.normal((7, 0), 0.2, (300, 2))
    rows = np.vstack([wide, narrow]).astype(np.float32)
    truth = np.repeat([0, 1], 300)

    def errors(found: np.ndarray) -> int:
        return int(min((found == truth).sum(), (found != truth).sum()))

    assert errors(cluster(rows, 2, method="gmm")) < errors(cluster(rows, 2))


def test_one_cluster_and_equal_rows() -> None:
    rows = np.ones((10, 3), dtype=np.float32)
    assert set(cluster(rows, 1).tolist()) == {0}
    numbers, centres = kmeans(rows, 5, seed=0)
    assert set(numbers.tolist()) == {0}
    assert len(centres) == 1
    with pytest.raises(InputError, match="no clustering 'ward'"):
        cluster(rows, 2, method="ward")


def test_one_cluster_is_the_whole_loot(stolen: StolenData) -> None:
    assert CSE(clusters=1, components=3).suspects(stolen).pairs == 150 * 149 // 2


def _unit(rows: np.ndarray) -> np.ndarray:
    return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
