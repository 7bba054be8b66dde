"""One hidden layer in NumPy, what it is trained for, and Adam: n(ReLU(x W1 + b1) W2 + b2), or n(x W2 + b2) without one.

The start is not random throughout. With W1 drawn at random, the best W2 is a ridge solution, which is most of what the
head will learn; Adam adds a little from there, where from nowhere it needs many passes to come as far. Its steps are
relative to the size of what they change, so that one learning rate fits the large W1 and the small W2.

An objective sees the unit answers Z (b, D') to a batch, once or in two views that dropout makes differ, and says how
its loss changes with them, dL/dZ. How a model changes with that is the model's affair, so one objective serves this
network and a torch one.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from regionmarker.benchmark.protocols import Objective
from regionmarker.errors import InputError
from regionmarker.vectors import AnyArray, Floats, Integers
from regionmarker.verification.simulated_stealer import Student


class Network(Student):
    """A student that can be trained; arrays are changed in place by :class:`Adam`."""

    def activations(self, inputs: Floats, keep: Floats | None) -> Activations:
        """Answer scaled features (b, F) with the mask of dropout ``keep`` (b, h), and remember the way."""
        layer = self.hidden(inputs)  # (b, h)
        if keep is not None:
            layer = layer * keep
        raw = layer @ self.W2 + self.b2  # (b, D')
        lengths = np.sqrt(np.einsum("ij,ij->i", raw, raw))[:, None]
        return Activations(inputs, layer, keep, raw / lengths, lengths)

    def slopes(self, seen: Activations, slope: Floats) -> list[Floats]:
        """Return the derivatives by each of :meth:`arrays`, given that by the unit answers, (b, D')."""
        along = np.einsum("ij,ij->i", seen.units, slope)[:, None]
        slope = (slope - along * seen.units) / seen.lengths  # by the answers before they are normalised
        output = [seen.layer.T @ slope, slope.sum(axis=0)]
        if self.W1 is None:
            return output
        back = slope @ self.W2.T  # (b, h)
        if seen.keep is not None:
            back *= seen.keep
        back *= seen.layer > 0
        return [seen.inputs.T @ back, back.sum(axis=0), *output]

    def arrays(self) -> list[Floats]:
        """Return what may be trained: W1, b1, W2, b2, or the last two where it is linear."""
        return [self.W2, self.b2] if self.W1 is None else [self.W1, self.b1, self.W2, self.b2]

    def copied(self) -> Network:
        first = None if self.W1 is None else self.W1.copy()
        return Network(self.centre, self.scale, first, self.b1.copy(), self.W2.copy(), self.b2.copy())

    def adam(self, rate: float, steps: int) -> Adam:
        """Return what trains it: steps relative to the size of each array at the start."""
        sizes = [1.0, 1.0, float(np.sqrt(np.square(self.W2).mean())), float(1 / np.sqrt(len(self.b2)))]
        arrays = self.arrays()
        return Adam(arrays, rate, steps=steps, sizes=sizes[-len(arrays) :], second=0.99, tiny=1e-10, in_place=True)

    def train(
        self,
        adam: Adam,
        inputs: Floats,
        objective: Objective,
        batches: Iterable[Integers],
        dropout: float,
        rng: np.random.Generator,
    ) -> list[float]:
        """Take one step for each batch of scaled features (n, F), in place; return the losses."""
        losses = []
        with np.errstate(all="ignore"):  # one that diverges shows in its loss
            for rows in batches:
                part = inputs[rows]
                views = [
                    self.activations(part, dropout_mask(len(part), len(self.W2), dropout, rng))
                    for _ in range(objective.views)
                ]
                loss, slopes = objective.step([view.units for view in views], rows)
                each = [self.slopes(view, slope) for view, slope in zip(views, slopes, strict=True)]
                adam.update(each[0] if len(each) == 1 else [np.asarray(sum(both)) for both in zip(*each, strict=True)])
                losses.append(loss)
        return losses


@dataclass(frozen=True)
class Activations:
    """A batch on its way through the network."""

    inputs: Floats  # (b, F)
    layer: Floats  # (b, h)
    keep: Floats | None  # (b, h)
    units: Floats  # (b, D') the answers
    lengths: Floats  # (b, 1) of the answers before they were normalised


class Adam:
    """Adam (Kingma and Ba), with a rate that falls linearly to 0 where the number of steps is given.

    Parameters
    ----------
    arrays
        What is trained, in place.
    rate, steps
        The learning rate at the start; None for one that stays.
    sizes
        What the steps of each array are relative to.
    second, tiny, decay
        How long squares are remembered, what keeps them from 0, and decoupled weight decay.
    unbiased
        Take the bias out of the squares before ``tiny`` is added, as AdamW's authors do, and not out of the rate.
    in_place
        Work in the memory of the slopes, for a layer of thousands of units. The last bit of a step differs, so each
        user stays with the form that its published numbers were made by.
    """

    def __init__(
        self,
        arrays: Sequence[Floats],
        rate: float,
        *,
        steps: int | None = None,
        sizes: Sequence[float] | None = None,
        second: float = 0.999,
        tiny: float = 1e-8,
        decay: float = 0.0,
        unbiased: bool = False,
        in_place: bool = False,
    ) -> None:
        self._arrays, self._rate, self._steps = arrays, rate, steps
        self._sizes = sizes or [1.0] * len(arrays)
        self._memory, self._tiny, self._decay = second, np.float32(tiny), decay
        self._unbiased, self._in_place = unbiased, in_place
        self._first = [np.zeros_like(array) for array in arrays]
        self._second = [np.zeros_like(array) for array in arrays]
        self._done = 0

    def update(self, slopes: Sequence[Floats]) -> None:
        rate = self._rate if self._steps is None else self._rate * (1 - self._done / self._steps)
        self._done += 1
        first_bias, second_bias = 1 - 0.9**self._done, np.sqrt(1 - self._memory**self._done)
        root = np.float32(second_bias if self._unbiased else 1.0)
        unbias = second_bias / first_bias
        new = np.float32(1 - self._memory)
        for array, size, first, second, slope in zip(
            self._arrays, self._sizes, self._first, self._second, slopes, strict=True
        ):
            step = np.float32(rate * size / first_bias if self._unbiased else rate * size * unbias)
            if self._in_place:
                first *= np.float32(0.9)
                first += np.float32(0.1) * slope
                second *= np.float32(self._memory)
                second += new * np.square(slope, out=slope)
                squares = np.sqrt(second, out=slope)
                squares += self._tiny
                array -= step * np.divide(first, squares, out=squares)
                continue
            first += np.float32(0.1) * (slope - first)
            second += new * (np.square(slope) - second)
            if self._decay:
                array *= np.float32(1 - rate * self._decay)
            array -= step * first / (np.sqrt(second) / root + self._tiny)


def dropout_mask(rows: int, width: int, dropout: float, rng: np.random.Generator) -> Floats | None:
    """Return what the hidden units of a batch are multiplied by, (b, h); None without dropout."""
    if not dropout:
        return None
    kept = rng.random((rows, width), dtype=np.float32) >= dropout
    mask: Floats = kept.astype(np.float32) / np.float32(1 - dropout)
    return mask


def softmax(logits: Floats) -> Floats:
    """Return exp(logits) with rows that sum to 1, (b, C)."""
    raised = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))


class SquaredDistance:
    """The squared distance of unit answers to unit targets (n, D'): what a stealer learns for.

    Examples
    --------
    >>> loss, (slope,) = SquaredDistance(np.eye(2, dtype=np.float32)).step([np.eye(2)], np.array([0, 1]))
    >>> loss, slope.tolist()
    (0.0, [[-1.0, -0.0], [-0.0, -1.0]])
    """

    views: int = 1

    def __init__(self, targets: Floats) -> None:
        self._targets = targets

    def step(self, answers: Sequence[Floats], rows: Integers, /) -> tuple[float, list[Floats]]:
        (units,), targets = answers, self._targets[rows]
        # For unit rows |u - y|^2 = 2 - 2 u.y, so the derivative of the mean by u is -2 y / b.
        loss = float(2 - 2 * np.einsum("ij,ij->i", units, targets).mean())
        return loss, [targets * np.float32(-2 / len(rows))]


class TaskLabels:
    """Cross-entropy of labels through a softmax head, which is trained alongside.

    Parameters
    ----------
    labels
        Of the texts, (n,), of any kind.
    width
        D' of the model.
    seed
        Of the head's start.
    rate
        The head's learning rate (Adam).

    Examples
    --------
    >>> task = TaskLabels(["up", "down"], 2)
    >>> loss, (slope,) = task.step([np.eye(2, dtype=np.float32)], np.array([0, 1]))
    >>> bool(loss > 0), slope.shape
    (True, (2, 2))
    """

    views: int = 1

    def __init__(self, labels: Sequence[object] | AnyArray, width: int, *, seed: int = 0, rate: float = 0.01) -> None:
        self.classes, self._numbers = np.unique(np.asarray(labels), return_inverse=True)
        if len(self.classes) < 2:
            raise InputError(f"a task needs labels of two kinds or more, but there are {len(self.classes)}")
        scale = 1 / np.sqrt(width)
        self._W: Floats = np.random.default_rng(seed).normal(0, scale, (width, len(self.classes))).astype(np.float32)
        self._b: Floats = np.zeros(len(self.classes), dtype=np.float32)
        self._adam = Adam([self._W, self._b], rate)

    def step(self, answers: Sequence[Floats], rows: Integers, /) -> tuple[float, list[Floats]]:
        """Train the head on the batch, and say where the answers should go."""
        (Z,) = answers  # (b, D')
        wanted = self._numbers[rows]
        logits = np.float32(np.sqrt(Z.shape[1])) * (Z @ self._W) + self._b  # (b, C); unit rows alone are too timid
        chances = softmax(logits)
        loss = -float(np.log(np.maximum(chances[np.arange(len(Z)), wanted], 1e-30)).mean())
        chances[np.arange(len(Z)), wanted] -= 1
        slope: Floats = chances / np.float32(len(Z))  # (b, C)
        scale = np.float32(np.sqrt(Z.shape[1]))
        by_answers: Floats = scale * (slope @ self._W.T)
        self._adam.update([scale * (Z.T @ slope), slope.sum(axis=0)])
        return loss, [by_answers]


class SimCSE:
    """Contrast without labels (Gao et al. 2021): two views of a text shall be alike, those of other texts not.

    Parameters
    ----------
    temperature
        Published: 0.05.

    Examples
    --------
    >>> view = np.eye(3, dtype=np.float32)
    >>> loss, slopes = SimCSE().step([view, view], np.arange(3))
    >>> loss < 1e-6, [slope.shape for slope in slopes]
    (True, [(3, 3), (3, 3)])
    """

    views: int = 2

    def __init__(self, temperature: float = 0.05) -> None:
        if not temperature > 0:
            raise InputError(f"the temperature of SimCSE must be positive, but is {temperature}")
        self._temperature = np.float32(temperature)

    def step(self, answers: Sequence[Floats], rows: Integers, /) -> tuple[float, list[Floats]]:  # noqa: ARG002
        first, second = answers
        chances = softmax(first @ second.T / self._temperature)  # (b, b)
        own = np.arange(len(first))
        loss = -float(np.log(np.maximum(chances[own, own], 1e-30)).mean())
        chances[own, own] -= 1
        slope: Floats = chances / (self._temperature * np.float32(len(first)))
        return loss, [slope @ second, slope.T @ first]
