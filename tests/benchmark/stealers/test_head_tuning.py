"""Stolen models trained further: heads by NumPy, backbones by torch, for the same objectives."""

from __future__ import annotations

import numpy as np
import pytest
from tests.support.backbones import LetterFeatures

from regionmarker.benchmark.attacks import tune as finetune
from regionmarker.benchmark.network import Network, SimCSE, TaskLabels
from regionmarker.benchmark.stealers import load_stealer
from regionmarker.benchmark.stealers.head import trained_on
from regionmarker.errors import InputError


@pytest.fixture
def features(texts: list[str]) -> np.ndarray:
    return LetterFeatures().encode(texts[:65])


@pytest.fixture
def network(features: np.ndarray) -> Network:
    return Network.drawn(features, 12, 32, np.random.default_rng(0))


def test_the_loss_falls(network: Network, features: np.ndarray) -> None:
    labels = np.arange(65) % 3
    losses: list[float] = []

    class Watched(TaskLabels):
        def step(self, answers, rows):  # type: ignore[no-untyped-def]
            loss, slopes = super().step(answers, rows)
            losses.append(loss)
            return loss, slopes

    trained_on(network, features, Watched(labels, 12), epochs=30, batch_size=16, learning_rate=0.01)
    assert np.mean(losses[-5:]) < 0.6 * np.mean(losses[:5])
    assert len(losses) == 30 * 4  # 64 and a last text alone, which is left for another pass


def test_every_text_is_seen_and_the_network_is_left_alone(network: Network, features: np.ndarray) -> None:
    seen: list[int] = []

    class Watched(SimCSE):
        def step(self, answers, rows):  # type: ignore[no-untyped-def]
            seen.extend(rows.tolist())
            assert not np.array_equal(*answers)  # two views differ by dropout
            return super().step(answers, rows)

    before = network.answers(features)
    tuned = trained_on(network, features, Watched(), epochs=3, batch_size=16)
    assert np.array_equal(network.answers(features), before)
    assert not np.array_equal(tuned.answers(features), before)
    assert set(seen) == set(range(65))
    again = trained_on(network, features, SimCSE(), epochs=3, batch_size=16)
    assert np.array_equal(again.answers(features), tuned.answers(features))


@pytest.mark.parametrize("options", [{"epochs": 0}, {"batch_size": 1}, {"learning_rate": 0.0}, {"learning_rate": 1.0}])
def test_settings_that_cannot_be_are_refused(network: Network, features: np.ndarray, options: dict[str, float]) -> None:
    with pytest.raises(InputError, match="training on needs"):
        trained_on(network, features, SimCSE(), **{"epochs": 1, "batch_size": 8, **options})  # type: ignore[arg-type]


@pytest.mark.usefixtures("quiet_torch")
@pytest.mark.parametrize("labelled", [True, False])
def test_a_backbone_is_tuned_by_the_same_objectives(
    labelled: bool, tiny_bert: str, texts: list[str], served: np.ndarray
) -> None:
    tiny = {"epochs": 1, "batch_size": 16, "learning_rate": 1e-2, "hidden": 32, "max_length": 24, "threads": 1}
    stolen = load_stealer(f"backbone:{tiny_bert}", **tiny).steal(texts[:60], served[:60])
    before = stolen.encode(texts[:10])
    labels = ["code" if '"' in text else "prose" for text in texts[60:120]] if labelled else None
    options = {"epochs": 1, "batch_size": 16, "learning_rate": 1e-3}
    tuned = finetune(stolen, texts[60:120], labels, **options)  # type: ignore[arg-type]
    after = tuned.encode(texts[:10])
    assert tuned.name == f"{stolen.name} then finetune"
    assert np.array_equal(stolen.encode(texts[:10]), before)
    assert np.abs(after - before).max() > 0
    assert np.abs(np.linalg.norm(after, axis=1) - 1).max() < 1e-5
