from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from tests.contracts.defenses import Served

from regionmarker.benchmark.attacks import AttackedModel
from regionmarker.benchmark.defenses import load_defense
from regionmarker.benchmark.defenses.wet import Wet, circulant_row, filter_scores, recovered, spectrum
from regionmarker.errors import InputError
from regionmarker.verification.decoy_test import DecoyTest


@pytest.fixture(scope="module")
def wet(small: Any) -> Wet:
    return load_defense("wet:pool=512,probes=512", seed=4).fit(small.texts, small.clean)  # type: ignore[return-value]


def dense(row: np.ndarray) -> np.ndarray:
    return np.stack([np.roll(row, places) for places in range(len(row))])


@pytest.mark.parametrize("width", [64, 63])
def test_multiplying_by_the_spectrum_is_multiplying_by_the_matrix(width: int) -> None:
    row = circulant_row(width, 5, (1, 2))
    rows = np.random.default_rng(0).standard_normal((4, width))
    product = np.fft.irfft(np.fft.rfft(rows) * spectrum(row), width)
    assert np.allclose(product, rows @ dense(row).T)
    assert np.allclose(dense(row).sum(axis=1), 1)
    assert (dense(row) != 0).sum() == 5 * width


def test_dividing_recovers_every_vector(small: Any, wet: Wet) -> None:
    for seed in range(20):
        filter_ = spectrum(circulant_row(256, 25, (7, seed)))
        product = np.fft.irfft(np.fft.rfft(small.clean.astype(np.float64)) * filter_, 256)
        assert np.abs(recovered(product, filter_) - small.clean).max() < 1e-6
    served = wet.transform(small.clean, small.texts)
    back = recovered(served, wet._spectrum)
    assert np.abs(back - small.clean).max() < 1e-5  # what float32 leaves of it
    assert np.einsum("ij,ij->i", back, small.clean).min() > 1 - 1e-6


def test_every_text_is_marked_and_cosines_are_not_what_they_were(small: Any, wet: Wet) -> None:
    served = wet.transform(small.clean, small.texts)
    assert np.abs(np.einsum("ij,ij->i", served, small.clean)).mean() < 0.5


def test_a_shift_defeats_it_and_a_cut_cannot_be_judged(small: Any, wet: Wet) -> None:
    copy = Served(wet, small.encoder)
    found, shifted = wet.verify(copy), wet.verify(AttackedModel(copy, "shift:100"))
    assert found.p_value == 1 / 512
    assert found.scores[0, found.chosen[0]] > 10
    assert shifted.scores[0, shifted.chosen[0]] < 5
    cut = wet.verify(AttackedModel(copy, "truncate:2/3"))
    assert np.isnan(cut.p_value)
    assert np.isnan(cut.published.p_value)
    assert not cut.published.copy


def test_scores_see_every_candidate_alike(small: Any) -> None:
    rows = np.stack([circulant_row(256, 25, (3, number)) for number in range(64)])
    for truth in (0, 17):
        product = np.fft.irfft(np.fft.rfft(small.clean.astype(np.float64)) * spectrum(rows[truth]), 256)
        z = filter_scores(product.astype(np.float32), small.clean, rows)
        assert DecoyTest(z).p_value((truth,)) == 1 / 64


def test_a_constant_answer_says_nothing(small: Any, wet: Wet) -> None:
    class Constant:
        name = "constant"

        def encode(self, texts: list[str]) -> np.ndarray:
            return np.ones((len(texts), 256), dtype=np.float32)

    assert wet.verify(Constant()).p_value == 1


def test_more_taps_than_coordinates_are_refused(small: Any) -> None:
    with pytest.raises(InputError, match="taps is 300"):
        load_defense("wet:taps=300,probes=64").fit(small.texts, small.clean)
