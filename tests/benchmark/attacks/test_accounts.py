"""Two accounts: the rows that differ are the tenants' rows, and the provider's own marks stay."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from regionmarker.benchmark.attacks import Average, Compare
from regionmarker.benchmark.protocols import StolenData
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
