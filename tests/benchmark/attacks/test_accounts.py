"""Two accounts: the rows that differ are the tenants' rows, and the provider's own marks stay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from regionmarker.benchmark.attacks import Average, CleanPairs, Compare, Differences
from regionmarker.benchmark.protocols import StolenData
from regionmarker.encoders.base import LookupEncoder
from regionmarker.errors import InputError


def test_comparing_drops_exactly_the_rows_with_a_tenants_mark(stolen: StolenData, provider: Any) -> None:
    clean = provider.encoder.encode(stolen.texts)
    regions = provider.marker.regions(clean)
    common = provider.marker.transform(clean)
    own = (provider.marker.transform(clean, tenant="ada") != common).any(axis=1)
    assert 10 < own.sum() < 140
    left = Compare("ada", "bob").apply(stolen)
    assert left.texts == tuple(text for text, is_own in zip(stolen.texts, own, strict=True) if not is_own)
    assert np.array_equal(left.vectors, common[~own])
    changed = (common != clean).any(axis=1)
    assert (changed & ~own).any()  # what the provider marks for everyone is still there
    assert not set(regions[own]) & set(regions[changed & ~own])


def test_both_accounts_are_asked_for_everything_once(stolen: StolenData, provider: Any) -> None:
    provider.asked.clear()
    Compare("ada", "bob").apply(stolen)
    assert provider.asked == [("ada", 150), ("bob", 150)]


def test_float16_rounding_is_no_difference(stolen: StolenData, provider: Any) -> None:
    def rounded(texts: Any, *, account: str = "") -> np.ndarray:
        answers = provider(texts)  # nobody's own mark
        return answers.astype(np.float16).astype(np.float32) if account == "bob" else answers

    both = StolenData(stolen.texts, stolen.vectors, rounded)
    assert len(Compare("ada", "bob").apply(both)) == 150


def test_averaging_halves_what_differs(stolen: StolenData, provider: Any) -> None:
    ada, bob = (provider(stolen.texts, account=name).astype(np.float64) for name in ("ada", "bob"))
    averaged = Average("ada", "bob").apply(stolen)
    mean = (ada + bob) / 2
    assert np.allclose(averaged.vectors, mean / np.linalg.norm(mean, axis=1, keepdims=True), atol=1e-6)
    differ = np.abs(ada - bob).max(axis=1) > 1e-3
    between = np.linalg.norm(averaged.vectors - ada, axis=1)[differ] / np.linalg.norm(bob - ada, axis=1)[differ]
    assert np.abs(between - 0.5).max() < 0.02


def test_accounts_that_share_nothing_leave_nothing(stolen: StolenData) -> None:
    def service(texts: Any, *, account: str = "") -> np.ndarray:
        return np.tile(np.eye(4, dtype=np.float32)[len(account)], (len(texts), 1))

    with pytest.raises(InputError, match="leaves no row"):
        Compare("a", "bo").apply(StolenData(stolen.texts, stolen.vectors, service))


# ---- a mark in every row: carriers in common, targets of one's own


class _Tenants:
    """Serves rows with a provider's carrier and a tenants' carrier; the tenants' target depends on the account."""

    def __init__(self) -> None:
        rng = np.random.default_rng(3)
        drawn = rng.standard_normal((600, 40))
        self.clean = drawn / np.linalg.norm(drawn, axis=1, keepdims=True)
        self.texts = tuple(f"text {number}" for number in range(600))
        self.carriers = rng.standard_normal((600, 2))
        self.targets = {name: rng.standard_normal(40) / 40**0.5 for name in ("", "first", "second", "third")}

    def __call__(self, texts: Any, *, account: str = "") -> np.ndarray:
        places = [int(text.split()[1]) for text in texts]
        own = self.targets[account] if account else 0 * self.targets[""]
        marks = self.carriers[:, :1] * self.targets[""] + self.carriers[:, 1:] * own
        rows = self.clean[places] + 0.2 * marks[places]
        return (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)

    def stolen(self) -> StolenData:
        lookup = LookupEncoder("clean", self.texts, self.clean.astype(np.float32))
        return StolenData(self.texts, self(self.texts, account="first"), self, clean=lookup)

    def left(self, vectors: np.ndarray, carrier: int, target: str) -> float:
        return float(np.corrcoef(vectors @ self.targets[target], self.carriers[:, carrier])[0, 1])


def test_the_mean_of_three_accounts_leaves_a_third_of_each_mark_and_all_of_the_providers() -> None:
    tenants = _Tenants()
    pulls = []
    for attack in (Average(), Average(third="third")):
        vectors = attack.apply(tenants.stolen()).vectors
        pulls.append((tenants.carriers[:, 1] @ vectors / 600) @ tenants.targets["first"])
        assert tenants.left(vectors, 0, "") > 0.6
    assert 0.5 < pulls[1] / pulls[0] < 0.85  # two thirds, give or take what targets have in common


def test_comparing_marks_that_are_everywhere_keeps_the_share_that_differs_least() -> None:
    tenants = _Tenants()
    with pytest.raises(InputError, match=r"share=0\.5"):
        Compare(tolerance=1e-12).apply(tenants.stolen())
    left = Compare(share=0.5).apply(tenants.stolen())
    assert len(left) == 300
    places = [int(text.split()[1]) for text in left.texts]
    weights = np.abs(tenants.carriers[:, 1])
    assert weights[places].mean() < 0.7 * weights.mean()


def test_projected_differences_leave_the_mean_of_both_and_the_providers_mark() -> None:
    tenants = _Tenants()
    vectors = Differences(components=1).apply(tenants.stolen()).vectors
    gap = tenants.targets["first"] - tenants.targets["second"]
    assert np.abs(vectors @ gap).max() < 0.1
    assert tenants.left(vectors, 0, "") > 0.6
    both = tenants.targets["first"] + tenants.targets["second"]
    assert np.corrcoef(vectors @ both, tenants.carriers[:, 1])[0, 1] > 0.3


def test_stripped_carriers_leave_the_providers_mark_alone() -> None:
    tenants = _Tenants()
    served = tenants.stolen().vectors
    vectors = Differences(by="carriers", components=1).apply(tenants.stolen()).vectors
    assert tenants.left(served, 1, "first") > 0.5
    assert abs(tenants.left(vectors, 1, "first")) < 0.2
    assert tenants.left(vectors, 0, "") > 0.6


def test_clean_and_marked_pairs_show_the_whole_mark() -> None:
    tenants = _Tenants()
    vectors = CleanPairs(share=0.2, components=2).apply(tenants.stolen()).vectors
    for carrier, target in ((0, ""), (1, "first")):
        assert abs(tenants.left(vectors, carrier, target)) < 0.25


def test_accounts_that_are_served_alike_gain_nothing() -> None:
    rows = np.eye(5, dtype=np.float32)[[0, 1, 2, 3, 4] * 8]
    texts = tuple(f"text {number}" for number in range(40))

    def service(texts: Any, *, account: str = "") -> np.ndarray:
        return rows

    stolen = StolenData(texts, rows, service)
    for attack in (Compare(), Average(), Differences(), Differences(by="carriers")):
        assert np.array_equal(attack.apply(stolen).vectors, rows)
