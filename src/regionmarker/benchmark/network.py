"""One hidden layer in NumPy, trained: n(ReLU(x W1 + b1) W2 + b2), or n(x W2 + b2) without one.

The start is not random throughout. With W1 drawn at random, the best W2 is a ridge solution, which is most of what the
head will learn; Adam adds a little from there, where from nowhere it needs many passes to come as far. Its steps are
relative to the size of what they change, so that one learning rate fits the large W1 and the small W2.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from regionmarker.vectors import Floats
from regionmarker.verification.simulated_stealer import Student


class Network(Student):
    """A student that can be trained; arrays are changed in place by :class:`Adam`."""

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
