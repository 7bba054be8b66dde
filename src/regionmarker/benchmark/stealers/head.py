"""The everyday stealer: a trained head on the features of a frozen public encoder; it may be trained further."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from regionmarker.benchmark.network import Network, SquaredDistance
from regionmarker.benchmark.protocols import Fidelity, Objective
from regionmarker.benchmark.stealers.base import TrainingSplit, check_clean, check_training_data, fidelity, split
from regionmarker.errors import InputError
from regionmarker.measures import row_cosines
from regionmarker.progress import Progress
from regionmarker.vectors import Encoder, Floats, as_floats, normalised
from regionmarker.verification.simulated_stealer import RidgeSolver

_KEPT_SOLVERS = 2  # some 50 MB each at 2,048 hidden units
_SOLVERS: dict[bytes, RidgeSolver[Network]] = {}
_FURTHER = 0.003  # the learning rate of training on, relative to the size of the weights


class HeadModel:
    """A copy that is a head on another encoder's features."""

    def __init__(self, name: str, network: Network, encoder: Encoder | None, history: Sequence[float]) -> None:
        self.name = name
        self.fidelity: Fidelity
        self.history = tuple(history)
        """Mean cosine on the texts that steered: of the start, then after each pass."""
        self._network, self._encoder = network, encoder

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def apply(self, features: Floats) -> Floats:
        """Answer for features (n, F) that are at hand already: (n, D') float32, rows of unit length."""
        return normalised(self._network.answers(_check_features(features, len(self._network.centre))))

    def encode(self, texts: Sequence[str], /) -> Floats:
        if self._encoder is None:
            raise InputError(f"{self.name} was trained on features alone: call apply(features), or give it an encoder")
        if len(texts) == 0:
            return np.empty((0, len(self._network.b2)), dtype=np.float32)
        return self.apply(self._encoder.encode(texts))

    def train_on(
        self,
        texts: Sequence[str],
        objective: Objective,
        /,
        *,
        epochs: int = 3,
        batch_size: int = 32,
        seed: int = 0,
        learning_rate: float | None = None,
    ) -> HeadModel:
        """Return a copy whose head was trained further on texts; its ``fidelity`` is still that of the theft."""
        if self._encoder is None:
            raise InputError(f"{self.name} was trained on features alone: give it an encoder to be trained on texts")
        features = _check_features(self._encoder.encode(texts), len(self._network.centre))
        network = trained_on(
            self._network,
            features,
            objective,
            epochs=epochs,
            batch_size=batch_size,
            learning_rate=_FURTHER if learning_rate is None else learning_rate,
            seed=seed,
        )
        model = HeadModel(f"{self.name}, trained on", network, self._encoder, self.history)
        model.fidelity = self.fidelity
        return model


def trained_on(
    network: Network,
    features: Floats,
    objective: Objective,
    *,
    epochs: int,
    batch_size: int,
    learning_rate: float = _FURTHER,
    dropout: float = 0.1,
    seed: int = 0,
) -> Network:
    """Return a copy of the network that was trained for the objective over features (n, F)."""
    if epochs < 1 or batch_size < 2 or not 0 < learning_rate < 1:  # relative to the weights: 1 would replace them
        raise InputError("training on needs at least 1 epoch, a batch_size of at least 2, a learning_rate in (0, 1)")
    network, rng = network.copied(), np.random.default_rng(seed)
    inputs = network.scaled(features)
    starts = range(0, max(len(inputs) - 1, 1), batch_size)  # a last batch of one text has nothing to contrast with
    adam = network.adam(learning_rate, epochs * len(starts))
    for epoch in range(epochs):
        order = rng.permutation(len(inputs))
        batches = (order[start : start + batch_size] for start in starts)
        if not np.isfinite(network.train(adam, inputs, objective, batches, dropout, rng)).all():
            raise InputError(f"the training diverged in pass {epoch + 1}: make learning_rate={learning_rate:g} smaller")
    return network


class FrozenHead:
    """A stealer that trains a head on a frozen encoder's features: seconds for 5,000 texts.

    One hidden layer with ReLU, output normalised, squared distance to the served unit vectors, Adam with linear decay,
    stopped early and set back to its best state on texts held out for that.

    Parameters
    ----------
    features
        The frozen encoder. None where only :meth:`steal_from_features` is used.
    hidden
        Units of the hidden layer; 0 for a linear map in closed form (ridge).
    epochs
        Passes over the texts at the most. 0 leaves the head at its start.
    start
        ``"solved"``: the output layer starts at the ridge solution on random hidden units. ``"random"``: it is drawn,
        as the published stealers draw it, and wants ten passes, batches of 100 and a learning rate of 0.03.
    learning_rate
        Relative to the size of the weights.
    batch_size, dropout
        As usual; the dropout is of hidden units.
    patience
        Stop after this many passes without a better one.
    held_out
        The share of the texts that is not trained on: half of it steers, half of it measures.
    seed
        Decides everything that is drawn.
    progress
        Called after each pass with the number done and the number in all.

    Examples
    --------
    >>> from regionmarker import load_encoder
    >>> from regionmarker.sample_corpus import python_sentences
    >>> texts, encoder = python_sentences(300), load_encoder("wordllama")
    >>> served = encoder.encode(texts)[:, ::-1]
    >>> copy = FrozenHead(encoder, hidden=0).steal(texts, served)
    >>> copy.encode(["a new text"]).shape, copy.fidelity.cosine > 0.8
    ((1, 256), True)
    """

    needs_features: ClassVar[bool] = True

    def __init__(
        self,
        features: Encoder | None = None,
        *,
        hidden: int = 2048,
        epochs: int = 4,
        start: str = "solved",
        learning_rate: float = 0.01,
        batch_size: int = 250,
        dropout: float = 0.2,
        patience: int = 2,
        held_out: float = 0.1,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> None:
        if hidden < 0 or epochs < 0 or batch_size < 1 or patience < 1:
            raise InputError("hidden and epochs must not be negative, batch_size and patience must be at least 1")
        if not learning_rate > 0 or not 0 <= dropout < 1:
            raise InputError(f"learning_rate {learning_rate} must be positive, dropout {dropout} between 0 and 1")
        if start not in ("solved", "random"):
            raise InputError(f"start must be solved or random, but is {start!r}")
        self.features, self.hidden, self.epochs, self.start = features, hidden, epochs, start
        self.learning_rate, self.batch_size, self.dropout = learning_rate, batch_size, dropout
        self.patience, self.held_out, self.seed, self.progress = patience, held_out, seed, progress

    @classmethod
    def from_spec(cls, rest: str, *, cache: str | Path | bool = False, **options: Any) -> FrozenHead:
        """Load ``head:ENCODER``; ``cache`` is :func:`~regionmarker.encoders.load_encoder`'s."""
        from regionmarker.encoders import load_encoder  # brings sockets

        if not rest and options.get("features") is None:
            raise InputError("name the encoder of the head: head:ENCODER, such as head:wordllama")
        return cls(load_encoder(rest, cache=cache), **options) if rest else cls(**options)

    @property
    def name(self) -> str:
        return f"head ({self.features.name})" if self.features is not None else "head (features)"

    def steal(self, texts: Sequence[str], targets: Floats, /, *, clean: Floats | None = None) -> HeadModel:
        if self.features is None:
            raise InputError("this head has no encoder: give FrozenHead(encoder), or call steal_from_features")
        texts, rows = check_training_data(texts, targets)
        split(len(rows), held_out=self.held_out, seed=self.seed, texts=texts)  # refuse too few before embedding them
        return self.steal_from_features(self.features.encode(texts), rows, clean=clean, texts=texts)

    def steal_from_features(
        self, features: Floats, targets: Floats, *, clean: Floats | None = None, texts: Sequence[str] | None = None
    ) -> HeadModel:
        """Train on features (n, F) that are at hand; ``texts`` keep repeated texts on one side of the split."""
        inputs, rows = _check_features(features), normalised(as_floats(targets, what="targets"))
        if len(inputs) != len(rows) or (texts is not None and len(texts) != len(rows)):
            raise InputError(f"there are {len(inputs)} features but {len(rows)} targets: give one for each")
        parts = split(len(rows), held_out=self.held_out, seed=self.seed, texts=texts)
        held = parts.measure
        truth = check_clean(clean, len(rows), held)
        network, history = self._train(inputs, rows, parts)
        model = HeadModel(self.name, network, self.features, history)
        model.fidelity = fidelity(model.apply(inputs[held]), rows[held], clean=truth, seed=self.seed)
        return model

    def _train(self, features: Floats, targets: Floats, parts: TrainingSplit) -> tuple[Network, list[float]]:
        rng = np.random.default_rng(self.seed)
        steer, answers = features[parts.steer], targets[parts.steer]
        features, targets = features[parts.train], targets[parts.train]
        network = Network.drawn(features, targets.shape[1], self.hidden, rng)
        if self.start == "solved" or not self.hidden:
            solver = _shared_solver(network, features)
            network = solver.best(targets, lambda rows: _cosine(rows, answers), steer).copied()
        best, history = network.copied(), [_score(network, steer, answers)]
        if not self.hidden or not self.epochs:
            return best, history
        adam = network.adam(self.learning_rate, self.epochs * -(-len(features) // self.batch_size))
        inputs, objective = network.scaled(features), SquaredDistance(targets)
        # Worse than one answer to everything is no learning; a drawn start may be that at first, but must get better.
        limit = 2 - 2 * float(np.linalg.norm(targets.mean(axis=0))) if self.start == "solved" else 2.0
        for epoch in range(self.epochs):
            order = rng.permutation(len(inputs))
            batches = (order[start : start + self.batch_size] for start in range(0, len(order), self.batch_size))
            loss = float(np.mean(network.train(adam, inputs, objective, batches, self.dropout, rng)))
            if not loss <= limit + 0.1:  # written so that NaN is bad
                raise InputError(
                    f"the head diverged in pass {epoch + 1}, its loss {loss:.3g} after {limit:.3g}: "
                    f"make learning_rate={self.learning_rate:g} smaller"
                )
            limit = min(limit, loss)
            history.append(_score(network, steer, answers))
            if history[-1] >= max(history):
                best = network.copied()
            if self.progress is not None:
                self.progress(epoch + 1, self.epochs)
            if max(history[-self.patience :]) < max(history):
                break
        return best, history


def _shared_solver(network: Network, features: Floats) -> RidgeSolver[Network]:
    """Return a solver for the network's hidden layer; of a thief's many attacks on the same texts, one factorises."""
    hidden = () if network.W1 is None else (network.W1, network.b1)
    digest = hashlib.blake2b(digest_size=16)
    for array in (features, network.W2[:, :0], *hidden):
        digest.update(repr(array.shape).encode() + np.ascontiguousarray(array).tobytes())
    if (key := digest.digest()) not in _SOLVERS:
        while len(_SOLVERS) >= _KEPT_SOLVERS:
            del _SOLVERS[next(iter(_SOLVERS))]
        _SOLVERS[key] = RidgeSolver(network, features)
    return _SOLVERS[key]


def _score(network: Network, features: Floats, targets: Floats) -> float:
    with np.errstate(all="ignore"):
        return _cosine(network.answers(features), targets)


def _cosine(rows: Floats, targets: Floats) -> float:
    """Return the mean cosine of answers to their targets; -1 where they are not finite."""
    with np.errstate(all="ignore"):
        score = float(row_cosines(rows, targets).mean())
    return score if np.isfinite(score) else -1.0


def _check_features(features: object, width: int | None = None) -> Floats:
    rows = as_floats(features, what="features")
    if width is not None and rows.shape[1] != width:
        raise InputError(f"features have width {rows.shape[1]}, but the head was trained on width {width}")
    if not np.isfinite(rows).all():
        raise InputError(f"row {int(np.argmin(np.isfinite(rows).all(axis=1)))} of the features is not finite")
    return rows
