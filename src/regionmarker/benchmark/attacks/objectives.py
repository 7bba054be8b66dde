"""What a thief trains a stolen model on for: labels of a task through a head, or SimCSE. Maths alone, in NumPy.

An objective sees the model's unit answers Z (b, D') to a batch, once or in two views that dropout makes differ, and
says how its loss changes with them, dL/dZ. How the model changes with that is the model's affair, so one objective
serves a NumPy network and a torch one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np

from regionmarker.errors import InputError
from regionmarker.vectors import AnyArray, Floats, Integers


class Objective(Protocol):
    """A loss over a batch's answers."""

    @property
    def views(self) -> int:
        """How many answers to each text it wants, each with its own dropout."""
        ...

    def step(self, answers: Sequence[Floats], rows: Integers, /) -> tuple[float, list[Floats]]:
        """Return the loss and its derivative by each view (b, D') of the texts ``rows`` (b,)."""
        ...


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
        self._rate, self._done = rate, 0
        self._moments = [(np.zeros_like(array), np.zeros_like(array)) for array in (self._W, self._b)]

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
        self._update([scale * (Z.T @ slope), slope.sum(axis=0)])
        return loss, [by_answers]

    def _update(self, slopes: Sequence[Floats]) -> None:
        self._done += 1
        unbias = np.sqrt(1 - 0.999**self._done) / (1 - 0.9**self._done)
        for array, (first, second), slope in zip((self._W, self._b), self._moments, slopes, strict=True):
            first += np.float32(0.1) * (slope - first)
            second += np.float32(0.001) * (np.square(slope) - second)
            array -= np.float32(self._rate * unbias) * first / (np.sqrt(second) + np.float32(1e-8))


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
        """Return the loss of a batch and its derivatives by both views."""
        first, second = answers
        chances = softmax(first @ second.T / self._temperature)  # (b, b)
        own = np.arange(len(first))
        loss = -float(np.log(np.maximum(chances[own, own], 1e-30)).mean())
        chances[own, own] -= 1
        slope: Floats = chances / (self._temperature * np.float32(len(first)))
        return loss, [slope @ second, slope.T @ first]


def softmax(logits: Floats) -> Floats:
    """Return exp(logits) with rows that sum to 1, (b, C)."""
    raised = np.exp(logits - logits.max(axis=1, keepdims=True))
    return np.asarray(raised / raised.sum(axis=1, keepdims=True))
