"""One hidden layer in NumPy: n(ReLU(x W1 + b1) W2 + b2), or n(x W2 + b2) without one.

The start is not random throughout. With W1 drawn at random, the best W2 is a ridge solution, which is most of what the
head will learn; Adam adds a little from there, where from nowhere it needs many passes to come as far. Its steps are
relative to the size of what they change, so that one learning rate fits the large W1 and the small W2.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from regionmarker.vectors import Doubles, Floats

PENALTIES = (0.03, 0.1, 0.3, 1.0)
"""Of the ridge, as shares of the mean variance of a hidden unit."""

_BLOCK = 4096  # rows at a time: the hidden layer of a whole corpus would not fit into memory


@dataclass
class Network:
    """The parameters; arrays are changed in place by :class:`Adam`."""

    centre: Floats  # (F,) the mean of the features
    scale: float  # their root mean square distance from it
    W1: Floats | None  # (F, h)
    b1: Floats  # (h,)
    W2: Floats  # (h, D')
    b2: Floats  # (D',)

    @classmethod
    def drawn(cls, features: Floats, width: int, hidden: int, rng: np.random.Generator) -> Network:
        """Draw a network for features (n, F) and targets of ``width``; ``hidden`` 0 makes it linear."""
        centre = features.mean(axis=0)
        spread = float(np.sqrt(np.square(features - centre).sum(axis=1).mean()))
        scale = max(spread, 1e-6 * float(np.linalg.norm(centre)), 1e-12)  # constant features must not blow up
        layer = features.shape[1]
        W1: Floats | None = None
        b1: Floats = np.zeros(0, dtype=np.float32)
        if hidden:
            layer = hidden
            half = rng.standard_normal((features.shape[1], (hidden + 1) // 2), dtype=np.float32)
            pairs = np.hstack([half, -half])  # so that linear maps are exactly within reach
            W1 = np.ascontiguousarray(pairs[:, :hidden])
            b1 = (np.abs(rng.standard_normal(hidden)) / 2).astype(np.float32)
        W2 = rng.standard_normal((layer, width), dtype=np.float32) / np.float32(np.sqrt(layer))
        return cls(centre, scale, W1, b1, W2, np.zeros(width, dtype=np.float32))

    def scaled(self, features: Floats) -> Floats:
        """Bring features (n, F) to mean 0 and mean square length 1."""
        return (features - self.centre) / np.float32(self.scale)

    def hidden(self, inputs: Floats) -> Floats:
        """Return the hidden layer of scaled features, (n, h)."""
        if self.W1 is None:
            return inputs
        layer: Floats = inputs @ self.W1
        layer += self.b1
        np.maximum(layer, 0, out=layer)
        return layer

    def answers(self, features: Floats) -> Floats:
        """Return the answers to features (n, F), not yet normalised, (n, D')."""
        rows = np.empty((len(features), len(self.b2)), dtype=np.float32)
        for block in _blocks(len(features)):
            rows[block] = self.hidden(self.scaled(features[block])) @ self.W2 + self.b2
        return rows

    def trace(self, inputs: Floats, keep: Floats | None) -> Trace:
        """Answer scaled features (b, F) with the mask of dropout ``keep`` (b, h), and remember the way."""
        layer = self.hidden(inputs)  # (b, h)
        if keep is not None:
            layer = layer * keep
        raw = layer @ self.W2 + self.b2  # (b, D')
        lengths = np.sqrt(np.einsum("ij,ij->i", raw, raw))[:, None]
        return Trace(inputs, layer, keep, raw / lengths, lengths)

    def slopes(self, trace: Trace, slope: Floats) -> list[Floats]:
        """Return the derivatives by each of :meth:`arrays`, given that by the unit answers, (b, D')."""
        along = np.einsum("ij,ij->i", trace.units, slope)[:, None]
        slope = (slope - along * trace.units) / trace.lengths  # by the answers before they are normalised
        output = [trace.layer.T @ slope, slope.sum(axis=0)]
        if self.W1 is None:
            return output
        back = slope @ self.W2.T  # (b, h)
        if trace.keep is not None:
            back *= trace.keep
        back *= trace.layer > 0
        return [trace.inputs.T @ back, back.sum(axis=0), *output]

    def arrays(self) -> list[Floats]:
        """Return what may be trained: W1, b1, W2, b2, or the last two where it is linear."""
        return [self.W2, self.b2] if self.W1 is None else [self.W1, self.b1, self.W2, self.b2]

    def copied(self) -> Network:
        """Return a copy that further steps do not touch."""
        first = None if self.W1 is None else self.W1.copy()
        return Network(self.centre, self.scale, first, self.b1.copy(), self.W2.copy(), self.b2.copy())


@dataclass(frozen=True)
class Trace:
    """A batch on its way through the network."""

    inputs: Floats  # (b, F)
    layer: Floats  # (b, h)
    keep: Floats | None  # (b, h)
    units: Floats  # (b, D') the answers
    lengths: Floats  # (b, 1) of the answers before they were normalised


class OutputSolver:
    """Ridge solutions for W2 and b2 on the fixed hidden layer of features (n, F); its Gram matrix is made once.

    Parameters
    ----------
    network
        Centre, scale, W1 and b1 are kept; W2 says how wide the answers are.
    features
        What the thief sees of its texts.
    """

    def __init__(self, network: Network, features: Floats) -> None:
        self._network, self._features = network, features
        size = len(network.W2)
        gram: Doubles = np.zeros((size, size))
        total: Doubles = np.zeros(size)
        for block in _blocks(len(features)):
            layer = network.hidden(network.scaled(features[block]))  # (b, h)
            gram += layer.T @ layer
            total += layer.sum(axis=0, dtype=np.float64)
        self._centre = total / len(features)
        gram -= len(features) * np.outer(self._centre, self._centre)
        self._ridge = max(np.trace(gram) / size, 1e-4 * len(features))  # units may never vary
        self._gram = gram
        self._factors: dict[float, Any] = {}

    def solve(self, targets: Floats, penalties: Sequence[float] = PENALTIES) -> Iterator[Network]:
        """Yield the network for targets (n, D') and each penalty, a share of the mean variance of a hidden unit."""
        network = self._network
        mean = targets.mean(axis=0, dtype=np.float64)
        moment: Doubles = np.zeros((len(self._centre), targets.shape[1]))
        for block in _blocks(len(targets)):
            layer = network.hidden(network.scaled(self._features[block]))  # (b, h)
            moment += layer.T @ (targets[block] - mean).astype(np.float32)
        for penalty in penalties:
            W2: Floats = cho_solve(self._factor(penalty), moment.astype(np.float32))
            b2: Floats = (mean - self._centre @ W2).astype(np.float32)
            yield Network(network.centre, network.scale, network.W1, network.b1, np.ascontiguousarray(W2), b2)

    def _factor(self, penalty: float) -> Any:
        if penalty not in self._factors:
            loaded = self._gram.astype(np.float32)
            loaded[np.diag_indices(len(loaded))] += np.float32(penalty * self._ridge)
            self._factors[penalty] = cho_factor(loaded, overwrite_a=True)
        return self._factors[penalty]


class Adam:
    """Adam with linear decay and steps relative to the size of each array at the start."""

    def __init__(self, network: Network, learning_rate: float, steps: int) -> None:
        self.network, self.learning_rate, self.steps = network, learning_rate, steps
        self._arrays = network.arrays()
        sizes = [1.0, 1.0, float(np.sqrt(np.square(network.W2).mean())), float(1 / np.sqrt(len(network.b2)))]
        self._sizes = sizes[-len(self._arrays) :]
        self._first = [np.zeros_like(array) for array in self._arrays]
        self._second = [np.zeros_like(array) for array in self._arrays]
        self._done = 0

    def step(self, inputs: Floats, targets: Floats, keep: Floats | None) -> float:
        """Take one step on scaled features (b, F) with the mask of dropout ``keep`` (b, h); return the loss."""
        trace = self.network.trace(inputs, keep)
        # For unit rows |u - y|^2 = 2 - 2 u.y, so the derivative of the mean by u is -2 y / b.
        self.update(self.network.slopes(trace, targets * np.float32(-2 / len(inputs))))
        return float(2 - 2 * np.einsum("ij,ij->i", trace.units, targets).mean())

    def update(self, slopes: list[Floats]) -> None:
        """Take one step against the derivatives of a loss by each of the network's arrays."""
        rate = self.learning_rate * (1 - self._done / self.steps)
        self._done += 1
        unbias = np.sqrt(1 - 0.99**self._done) / (1 - 0.9**self._done)
        for array, size, first, second, slope in zip(
            self._arrays, self._sizes, self._first, self._second, slopes, strict=True
        ):
            first *= np.float32(0.9)
            first += np.float32(0.1) * slope
            second *= np.float32(0.99)
            second += np.float32(0.01) * np.square(slope, out=slope)
            root = np.sqrt(second, out=slope)
            root += np.float32(1e-10)
            array -= np.float32(rate * size * unbias) * np.divide(first, root, out=root)


def _blocks(count: int) -> Iterator[slice]:
    return (slice(start, start + _BLOCK) for start in range(0, count, _BLOCK))
