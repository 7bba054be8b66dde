"""Training a head further, for any loss over its answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from regionmarker.benchmark.stealers.network import Adam, Network
from regionmarker.errors import InputError
from regionmarker.protocols import Floats, Integers

LEARNING_RATE = 0.003
"""Relative to the size of the weights, as a thief's."""


class Pull(Protocol):
    """A loss over a batch's answers: one answer to each text, or two that dropout makes differ."""

    @property
    def views(self) -> int:
        """How many answers to each text it wants."""
        ...

    def step(self, answers: Sequence[Floats], rows: Integers, /) -> tuple[float, list[Floats]]:
        """Return the loss and its derivative by each view (b, D') of the texts ``rows`` (b,)."""
        ...


def tune(
    network: Network,
    features: Floats,
    pull: Pull,
    *,
    epochs: int,
    batch_size: int,
    learning_rate: float = LEARNING_RATE,
    dropout: float = 0.1,
    seed: int = 0,
) -> Network:
    """Return a copy of the network that follows ``pull`` over features (n, F)."""
    if epochs < 1 or batch_size < 2 or not 0 < learning_rate < 1:  # relative to the weights: 1 would replace them
        raise InputError("tuning needs at least 1 epoch, a batch_size of at least 2 and a learning_rate in (0, 1)")
    network, rng = network.copied(), np.random.default_rng(seed)
    inputs = network.scaled(features)
    starts = range(0, max(len(inputs) - 1, 1), batch_size)  # a last batch of one text has nothing to contrast with
    adam = Adam(network, learning_rate, epochs * len(starts))
    for epoch in range(epochs):
        order, losses = rng.permutation(len(inputs)), []
        with np.errstate(all="ignore"):  # a head that diverges is told by its loss
            for start in starts:
                rows = order[start : start + batch_size]
                losses.append(_step(adam, inputs[rows], rows, pull, dropout, rng))
        if not np.isfinite(losses).all():
            raise InputError(f"the tuning diverged in pass {epoch + 1}: make learning_rate={learning_rate:g} smaller")
    return network


def _step(adam: Adam, inputs: Floats, rows: Integers, pull: Pull, dropout: float, rng: np.random.Generator) -> float:
    network = adam.network
    traces = [network.trace(inputs, _mask(len(inputs), len(network.W2), dropout, rng)) for _ in range(pull.views)]
    loss, slopes = pull.step([trace.units for trace in traces], rows)
    each = [network.slopes(trace, slope) for trace, slope in zip(traces, slopes, strict=True)]
    adam.update([np.asarray(sum(parts)) for parts in zip(*each, strict=True)])
    return loss


def _mask(rows: int, width: int, dropout: float, rng: np.random.Generator) -> Floats | None:
    if not dropout:
        return None
    kept = rng.random((rows, width), dtype=np.float32) >= dropout
    mask: Floats = kept.astype(np.float32) / np.float32(1 - dropout)
    return mask
