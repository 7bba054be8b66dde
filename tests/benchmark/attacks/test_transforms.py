"""Noise, rounding, zeroing and compression do what their names say."""

from __future__ import annotations

import numpy as np
import pytest

from regionmarker.benchmark.attacks import AttackedModel, Compress, Noise, Round, Zero
from regionmarker.benchmark.attacks.directions import principal_axes
from regionmarker.benchmark.protocols import StolenData


def test_noise_has_the_deviation_that_was_asked_for(stolen: StolenData) -> None:
    rows = _unit(stolen.vectors)
    for deviation in (0.001, 0.01):
        moved = Noise(deviation)(stolen.vectors) - rows
        assert 0.9 * deviation < moved.std() < 1.1 * deviation
    first, second = Noise(0.01, 1)(stolen.vectors), Noise(0.01, 2)(stolen.vectors)
    assert not np.array_equal(first, second)
    noise = first - rows
    assert abs(np.corrcoef(noise[0], noise[1])[0, 1]) < 0.3  # each row has its own


def test_noise_is_the_same_in_every_batch_and_on_every_question(stolen: StolenData, encoder) -> None:
    whole = Noise()(stolen.vectors)
    assert np.array_equal(Noise()(stolen.vectors[40:60]), whole[40:60])
    model = AttackedModel(encoder, "noise:0.05")
    assert np.array_equal(model.encode(["a text"]), model.encode(["another", "a text"])[1:])


def test_rounding_leaves_a_few_values(stolen: StolenData) -> None:
    rounded = Round(1)(stolen.vectors).astype(np.float64)
    for row in rounded[:20]:
        levels = np.abs(row[row != 0]).min()
        assert np.allclose(row / levels, np.round(row / levels), atol=1e-4)
    assert (Round(1)(stolen.vectors) == 0).mean() > 0.3
    assert np.abs(Round(5)(stolen.vectors) - _unit(stolen.vectors)).max() < 1e-5


def test_zeroing_takes_the_small_entries_and_keeps_the_others(stolen: StolenData) -> None:
    rows = _unit(stolen.vectors)
    zeroed = Zero(0.05)(stolen.vectors)
    assert ((zeroed == 0) == (np.abs(stolen.vectors) <= 0.05)).all()
    large = zeroed != 0
    ratios = np.where(large, zeroed / np.where(large, rows, 1), np.nan)
    assert np.nanstd(ratios, axis=1).max() < 1e-4


def test_a_row_that_would_be_nothing_keeps_its_largest_entry() -> None:
    row = np.full((1, 10_000), 0.01, dtype=np.float32)
    row[0, 7] = -0.02
    for attack in (Round(1), Zero(0.03)):
        assert np.flatnonzero(attack(row)).tolist() == [7]
        assert attack(row)[0, 7] == -1


def test_compression_keeps_the_leading_components(stolen: StolenData) -> None:
    centred = stolen.vectors.astype(np.float64) - stolen.vectors.mean(axis=0, dtype=np.float64)
    truth = np.linalg.svd(centred, full_matrices=False)[2][:10]
    axes, deviations = principal_axes(centred, 10)
    assert np.allclose(np.abs((axes * truth).sum(axis=1)), 1)
    assert np.allclose(deviations, (centred @ axes.T).std(axis=0))
    reduced = Compress(10).apply(stolen).vectors
    parts = centred @ axes.T
    assert np.allclose(reduced, parts / np.linalg.norm(parts, axis=1, keepdims=True), atol=1e-5)
    restored = Compress(10, restore=True).apply(stolen).vectors
    assert restored.shape == stolen.vectors.shape
    assert np.linalg.matrix_rank(restored - restored.mean(axis=0), tol=1e-3) <= 12
    assert Compress(0.25).apply(stolen).vectors.shape == (150, 64)


@pytest.mark.parametrize(("keep", "name"), [(20, "compress:keep=20"), (0.25, "compress"), (0.5, "compress:keep=0.5")])
def test_names_of_compressions(keep: float, name: str) -> None:
    assert Compress(keep).name == name


def _unit(rows: np.ndarray) -> np.ndarray:
    return (rows / np.linalg.norm(rows.astype(np.float64), axis=1, keepdims=True)).astype(np.float32)
