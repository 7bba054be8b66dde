"""The one network: its derivatives are those of the loss, and its objectives serve torch as well."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from regionmarker.benchmark.network import SimCSE, TaskLabels
from regionmarker.benchmark.protocols import Objective


@pytest.mark.parametrize("objective", [TaskLabels([0, 1, 2, 0, 1, 2], 5), SimCSE(0.2)])
def test_derivatives_are_those_of_the_loss(objective: Any) -> None:
    from copy import deepcopy

    rng = np.random.default_rng(0)
    views = [rng.standard_normal((6, 5)) for _ in range(objective.views)]
    views = [view / np.linalg.norm(view, axis=1, keepdims=True) for view in views]
    rows = np.arange(6)

    def loss(changed: list[np.ndarray]) -> float:
        return deepcopy(objective).step(changed, rows)[0]

    _, slopes = deepcopy(objective).step(views, rows)
    for number in range(objective.views):
        for place in ((0, 0), (5, 4)):
            up, down = [view.copy() for view in views], [view.copy() for view in views]
            up[number][place] += 1e-4
            down[number][place] -= 1e-4
            assert np.isclose((loss(up) - loss(down)) / 2e-4, slopes[number][place], rtol=1e-2, atol=1e-4)


@pytest.mark.parametrize("hidden", [0, 7])
def test_the_network_passes_the_derivative_on(hidden: int) -> None:
    from regionmarker.benchmark.network import Network

    rng = np.random.default_rng(1)
    features = rng.standard_normal((9, 4)).astype(np.float32)
    network = Network.drawn(features, 3, hidden, rng)
    wanted = rng.standard_normal((9, 3)).astype(np.float32)
    keep = (rng.random((9, hidden or 4)) > 0.3).astype(np.float32)
    inputs = network.scaled(features)
    slopes = network.slopes(network.activations(inputs, keep), wanted)
    for array, slope in zip(network.arrays(), slopes, strict=True):
        place = tuple(0 for _ in array.shape)
        losses = []
        for step in (1e-3, -2e-3):
            array[place] += np.float32(step)
            losses.append(float((network.activations(inputs, keep).units * wanted).sum()))
        array[place] += np.float32(1e-3)
        assert np.isclose((losses[0] - losses[1]) / 2e-3, slope[place], rtol=0.03, atol=3e-3)


def test_one_objective_serves_torch_as_well() -> None:
    torch = pytest.importorskip("torch", reason="needs torch==2.13.0")
    from regionmarker.benchmark.stealers.training import torch_loss

    rng = np.random.default_rng(0)
    raw = rng.standard_normal((6, 5)).astype(np.float32)
    for make in (lambda: TaskLabels([0, 1, 2, 0, 1, 2], 5), SimCSE):
        tensor = torch.tensor(raw, requires_grad=True)
        objective: Objective = make()
        value = torch_loss(objective)(lambda given=tensor: torch.nn.functional.normalize(given), np.arange(6))
        value.backward()
        units = raw / np.linalg.norm(raw, axis=1, keepdims=True)
        loss, slopes = make().step([units] * objective.views, np.arange(6))
        slope = sum(slopes)
        expected = (slope - (slope * units).sum(axis=1, keepdims=True) * units) / np.linalg.norm(raw, axis=1)[:, None]
        assert np.isclose(float(value.detach()), loss, atol=1e-5)
        assert np.allclose(tensor.grad.numpy(), expected, atol=1e-5)
