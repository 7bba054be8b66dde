"""How fidelity is measured, on which texts, and copies that are simulated to have it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from regionmarker.benchmark.attacks import compose
from regionmarker.benchmark.stealers import NoisyCopy, fidelity, noisy, pair_correlation
from regionmarker.benchmark.stealers.base import split
from regionmarker.errors import InputError


def test_fidelity_is_the_mean_cosine(served: np.ndarray) -> None:
    rng = np.random.default_rng(0)
    answers = served + 0.05 * rng.standard_normal(served.shape).astype(np.float32)
    unit = answers / np.linalg.norm(answers, axis=1, keepdims=True)
    assert fidelity(answers, served).cosine == pytest.approx(float((unit * served).sum(axis=1).mean()), abs=1e-3)


def test_the_correlation_is_spearmans(served: np.ndarray) -> None:
    from scipy.stats import spearmanr

    other = compose(["truncate:0.5", "translate"])(served[:80], [])
    upper = np.triu_indices(80, k=1)
    expected = spearmanr((served[:80] @ served[:80].T)[upper], (other @ other.T)[upper]).statistic
    assert pair_correlation(served[:80], other) == pytest.approx(expected, abs=1e-3)
    drawn = pair_correlation(served[:80], other, pairs=1000)  # of 3160
    assert drawn == pytest.approx(expected, abs=0.05)
    assert drawn == pair_correlation(served[:80], other, pairs=1000)


def test_a_rotated_copy_correlates_as_the_copy_does(served: np.ndarray) -> None:
    turned = compose(["rotate:3"])(served, [])
    assert fidelity(turned, turned, clean=served).correlation > 0.9999
    assert fidelity(turned, served).cosine < 0.5


def test_edge_cases_of_fidelity(served: np.ndarray) -> None:
    assert np.isnan(fidelity(served[:2], served[:2]).correlation)
    assert np.isnan(pair_correlation(served[[0, 0, 0]], served[:3]))
    assert "nan" in str(fidelity(served[:1], served[:1]))
    with pytest.raises(InputError, match="at least one"):
        fidelity(served[:0], served[:0])
    with pytest.raises(InputError, match="have shape"):
        fidelity(served[:5], served[:4])
    with pytest.raises(InputError, match="cannot be paired"):
        fidelity(served[:5], served[:5], clean=served[:4])


def test_a_repeated_text_is_on_one_side_only() -> None:
    texts = [f"text {number % 40}" for number in range(200)]
    parts = split(200, held_out=0.3, seed=1, texts=texts)
    sides = [{texts[row] for row in rows} for rows in (parts.train, parts.steer, parts.measure)]
    assert sum(map(len, sides)) == len(set().union(*sides)) == 40
    assert sorted(np.concatenate([parts.train, parts.steer, parts.measure]).tolist()) == list(range(200))


def test_a_simulated_copy_has_the_fidelity_that_is_wanted(wordllama: Any, texts: list[str], served: np.ndarray) -> None:
    for wanted in (0.3, 0.74, 0.9, 1.0):
        model = NoisyCopy(wordllama, wanted).steal(texts, served)
        assert model.fidelity.cosine == pytest.approx(wanted, abs=1e-4)
        assert "simulated" in model.name


def test_bad_options_of_a_simulated_copy_are_refused(wordllama: Any, served: np.ndarray) -> None:
    for wanted in (0.0, 1.1, -1.0, float("nan")):
        with pytest.raises(InputError, match="a fidelity lies above 0"):
            NoisyCopy(wordllama, wanted)
        with pytest.raises(InputError, match="a fidelity lies above 0"):
            noisy(served, wanted, served)
    with pytest.raises(InputError, match="seed"):
        NoisyCopy(wordllama, seed=-1)
