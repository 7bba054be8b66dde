"""Heads say the same as the chain of dense layers that they are written as."""

from __future__ import annotations

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="needs torch==2.13.0")

from regionmarker.benchmark.stealers.answer_heads import HEADS, PublishedHead, SolvedHead  # noqa: E402

pytestmark = pytest.mark.usefixtures("quiet_torch")


def chained(head, pooled):
    for layer in head.chain():
        pooled = getattr(torch.nn, layer.activation)()(pooled @ layer.weight.T + layer.bias)
    return pooled


@pytest.mark.parametrize("head", [PublishedHead(6, 4, 5), SolvedHead(6, 4, 5), SolvedHead(6, 4, 0)])
def test_a_head_is_its_chain(head):
    with torch.no_grad():
        torch.manual_seed(0)
        for tensor in head.parameters():
            tensor.normal_()
        if head.kind == "solved":
            head.centre.normal_()
            head.scale.uniform_(0.01, 30)
        pooled = 10 * torch.randn(50, 6)
        said = head(pooled)
        assert float(said.std()) > 0.1
        assert torch.allclose(chained(head, pooled), said, atol=1e-3, rtol=1e-4)
    assert HEADS[head.kind](*head.sizes).state_dict().keys() == head.state_dict().keys()


def test_the_solution_copes_with_numbers_of_any_size_and_with_constant_ones():
    rng = np.random.default_rng(3)
    inputs = rng.standard_normal((600, 8))
    truth = inputs @ rng.standard_normal((8, 5)) + 1
    targets = (truth / np.linalg.norm(truth, axis=1, keepdims=True)).astype(np.float32)
    pooled = (inputs * 10.0 ** np.arange(-3, 5)).astype(np.float32)  # as decoders have it: a few numbers are huge
    pooled = np.hstack([pooled, np.full((600, 1), 7, dtype=np.float32)])
    head = SolvedHead(9, 5, 16)
    score = head.solve(pooled[:500], targets[:500], pooled[500:], targets[500:])
    with torch.no_grad():
        said = torch.nn.functional.normalize(head(torch.from_numpy(pooled[500:])), dim=1).numpy()
    assert np.isclose(score, (said * targets[500:]).sum(axis=1).mean(), atol=1e-4)
    assert score > 0.85
    assert 0.3 < float(np.abs(head(torch.from_numpy(pooled[:500])).detach()).mean()) < 3
