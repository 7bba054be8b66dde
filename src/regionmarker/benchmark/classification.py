"""The paper's measure of utility: a small classifier on fixed vectors.

    logits = dropout(ReLU(x W1 + b1)) W2 + b2        x (b, D), W1 (D, 256), W2 (256, C)

Cross-entropy, AdamW with linear decay to 0, three passes in batches of 32. The published scripts train and test it on
the vectors that are *served*; give it a stolen model's answers to know what the thief has got.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from regionmarker.benchmark.network import Adam, dropout_mask, softmax
from regionmarker.errors import InputError
from regionmarker.vectors import AnyArray, Floats, Integers, as_floats

Parameters = list[Floats]  # W1 (D, h), b1 (h,), W2 (h, C), b2 (C,)


@dataclass(frozen=True)
class Classification:
    """How well a classifier did on texts that it was not trained on.

    Examples
    --------
    >>> Classification.of(np.array(["a", "a", "b", "b"]), np.array(["a", "a", "b", "a"])).accuracy
    0.75
    """

    accuracy: float
    """The share of right answers."""
    macro_f1: float
    """The mean over classes of F1; a class that is neither present nor predicted does not count."""
    texts: int
    """How many were classified."""

    @classmethod
    def of(cls, truth: AnyArray, predicted: AnyArray) -> Classification:
        """Compare the true classes (n,) with the predicted ones (n,)."""
        if len(truth) == 0 or len(truth) != len(predicted):
            raise InputError(f"there are {len(truth)} true classes and {len(predicted)} predicted ones: give as many")
        scores = []
        for label in np.union1d(truth, predicted):
            hits = int(((truth == label) & (predicted == label)).sum())
            scores.append(2 * hits / (int((truth == label).sum()) + int((predicted == label).sum())))
        return cls(float((truth == predicted).mean()), float(np.mean(scores)), len(truth))


class Classifier:
    """The MLP; ``fit``, then ``predict``.

    Parameters
    ----------
    hidden, dropout
        Width of the hidden layer and the share of it that is dropped in training.
    seed
        Decides the start, the order and what is dropped.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> rows = rng.standard_normal((400, 8)).astype(np.float32)
    >>> labels = ["up" if row[0] > 0 else "down" for row in rows]
    >>> model = Classifier().fit(rows[:300], labels[:300])
    >>> bool((model.predict(rows[300:]) == np.array(labels[300:])).mean() > 0.9)
    True
    """

    def __init__(
        self,
        *,
        hidden: int = 256,
        dropout: float = 0.2,
        epochs: int = 3,
        batch_size: int = 32,
        learning_rate: float = 1e-2,
        weight_decay: float = 0.0,
        seed: int = 0,
    ) -> None:
        if hidden < 1 or epochs < 1 or batch_size < 1:
            raise InputError("hidden, epochs and batch_size of a classifier must be at least 1")
        if not learning_rate > 0 or not 0 <= dropout < 1 or not weight_decay >= 0:
            raise InputError("learning_rate must be positive, dropout in [0, 1), weight_decay not negative")
        self.hidden, self.dropout, self.epochs, self.batch_size = hidden, dropout, epochs, batch_size
        self.learning_rate, self.weight_decay, self.seed = learning_rate, weight_decay, seed
        self.classes_: AnyArray
        self._parameters: Parameters

    def fit(self, vectors: object, labels: Sequence[Any] | AnyArray) -> Classifier:
        """Train on vectors (n, D) and their labels (n,) of any kind."""
        rows, given = _check(vectors, labels)
        self.classes_, numbers = np.unique(given, return_inverse=True)
        rng = np.random.default_rng(self.seed)
        self._parameters = _drawn(rows.shape[1], self.hidden, len(self.classes_), rng)
        steps = self.epochs * -(-len(rows) // self.batch_size)
        adam = Adam(self._parameters, self.learning_rate, steps=steps, decay=self.weight_decay, unbiased=True)
        for _ in range(self.epochs):
            order = rng.permutation(len(rows))
            for start in range(0, len(rows), self.batch_size):
                batch = order[start : start + self.batch_size]
                mask = dropout_mask(len(batch), self.hidden, self.dropout, rng)
                adam.update(_slopes(self._parameters, rows[batch], numbers[batch], mask))
        return self

    def predict(self, vectors: object) -> AnyArray:
        """Return the likeliest class of each row, (n,)."""
        W1, b1, W2, b2 = self._parameters
        rows = as_floats(vectors, what="vectors")
        if rows.shape[1] != len(W1):
            raise InputError(f"vectors have width {rows.shape[1]}, but the classifier was trained on width {len(W1)}")
        return np.asarray(self.classes_[np.argmax(np.maximum(rows @ W1 + b1, 0) @ W2 + b2, axis=1)])


def classify(
    train: object,
    train_labels: Sequence[Any] | AnyArray,
    test: object,
    test_labels: Sequence[Any] | AnyArray,
    **options: Any,
) -> Classification:
    """Train the paper's classifier on one set of vectors and test it on another; options as of :class:`Classifier`.

    Examples
    --------
    >>> rows = np.eye(4, dtype=np.float32).repeat(25, axis=0)
    >>> labels = np.arange(4).repeat(25)
    >>> classify(rows, labels, rows, labels).accuracy
    1.0
    """
    rows, truth = _check(test, test_labels)
    return Classification.of(truth, Classifier(**options).fit(train, train_labels).predict(rows))


def _check(vectors: object, labels: Sequence[Any] | AnyArray) -> tuple[Floats, AnyArray]:
    rows, given = as_floats(vectors, what="vectors"), np.asarray(labels)
    if given.ndim != 1 or len(given) != len(rows):
        raise InputError(f"there are {len(rows)} vectors but labels of shape {given.shape}: give one for each")
    if len(rows) == 0:
        raise InputError("a classifier needs at least one vector")
    if not np.isfinite(rows).all():
        raise InputError(f"row {int(np.argmin(np.isfinite(rows).all(axis=1)))} of the vectors is not finite")
    return rows, given


def _drawn(width: int, hidden: int, classes: int, rng: np.random.Generator) -> Parameters:
    """Draw every weight and bias uniformly within 1/sqrt(inputs), as the published scripts' library does."""
    parameters: Parameters = []
    for inputs, outputs in ((width, hidden), (hidden, classes)):
        limit = 1 / np.sqrt(inputs)
        for shape in ((inputs, outputs), (outputs,)):
            parameters.append(rng.uniform(-limit, limit, shape).astype(np.float32))
    return parameters


def _slopes(parameters: Parameters, rows: Floats, numbers: Integers, mask: Floats | None) -> Parameters:
    """Return the derivatives of the mean cross-entropy of one batch; rows (b, D), numbers (b,)."""
    W1, b1, W2, b2 = parameters
    layer = np.maximum(rows @ W1 + b1, 0)  # (b, h)
    if mask is not None:
        layer *= mask
    logits = layer @ W2 + b2  # (b, C)
    slope = softmax(logits)
    slope[np.arange(len(rows)), numbers] -= 1
    slope /= np.float32(len(rows))
    back = slope @ W2.T  # (b, h)
    if mask is not None:
        back *= mask
    back *= layer > 0
    return [rows.T @ back, back.sum(axis=0), layer.T @ slope, slope.sum(axis=0)]
