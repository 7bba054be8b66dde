"""Students that nobody sent: what a run, or a key, would catch is found by letting simulated stealers steal.

A simulated stealer sees some features of every text, has asked some of the texts, and learns what it was served for
them by ridge regression on random hidden units: the everyday stealer without its last polish. One factorisation serves
any number of keys. What it sees decides how good its copy is: a :class:`BlurredView` where a run is judged or a key is
planned, the features of a real encoder in studies.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, Self, TypeVar

import numpy as np

from regionmarker.vectors import Doubles, Floats, Integers, normalised

PENALTIES = (0.03, 0.1, 0.3, 1.0)  # of the ridge, as shares of the mean variance of a hidden unit

_BLOCK = 4096  # rows at a time: the hidden layer of a whole corpus would not fit into memory
_COLOURED = 0.1  # of a component's own variance, added to the noise that is the same in every direction


@dataclass
class Student:
    """One hidden layer: n(ReLU(x W1 + b1) W2 + b2), or n(x W2 + b2) without one."""

    centre: Floats  # (F,) the mean of the features
    scale: float  # their root mean square distance from it
    W1: Floats | None  # (F, h)
    b1: Floats  # (h,)
    W2: Floats  # (h, D')
    b2: Floats  # (D',)

    @classmethod
    def drawn(cls, features: Floats, width: int, hidden: int, rng: np.random.Generator) -> Self:
        """Draw a student of features (n, F) and targets of ``width``; ``hidden`` 0 makes it linear."""
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


S = TypeVar("S", bound=Student)


class RidgeSolver(Generic[S]):
    """Ridge solutions for W2 and b2 on the fixed hidden layer of features (n, F); its Gram matrix is made once.

    Parameters
    ----------
    student
        Centre, scale, W1 and b1 are kept; W2 says how wide the answers are.
    features
        What the stealer sees of its texts.
    """

    def __init__(self, student: S, features: Floats) -> None:
        self._student, self._features = student, features
        size = len(student.W2)
        gram: Doubles = np.zeros((size, size))
        total: Doubles = np.zeros(size)
        for block in _blocks(len(features)):
            layer = student.hidden(student.scaled(features[block]))  # (b, h)
            gram += layer.T @ layer
            total += layer.sum(axis=0, dtype=np.float64)
        self._centre = total / len(features)
        gram -= len(features) * np.outer(self._centre, self._centre)
        self.mean_variance = max(np.trace(gram) / size, 1e-4 * len(features))  # units may never vary
        self._gram = gram
        self._factors: dict[float, Any] = {}
        self._held: tuple[Floats, dict[float, Floats]] | None = None

    def solve(self, targets: Floats, penalties: Sequence[float] = PENALTIES) -> Iterator[S]:
        """Yield the student for targets (n, D') and each penalty, a share of the mean variance of a hidden unit."""
        mean, moment = self._moments(targets)
        for penalty in penalties:
            yield self._solved(penalty, mean, moment)

    def best(self, targets: Floats, score: Callable[[Floats], float], held: Floats) -> S:
        """Return the student of the penalty whose answers (m, D') to the held-out features (m, F) score highest.

        Answers to few texts need no output layer: (layer - centre) (gram + penalty)^-1 is made once for all targets.
        """
        mean, moment = self._moments(targets)
        offered = {
            penalty: (reader @ moment + mean).astype(np.float32) for penalty, reader in self._readers(held).items()
        }
        return self._solved(max(offered, key=lambda penalty: score(offered[penalty])), mean, moment)

    def _moments(self, targets: Floats) -> tuple[Doubles, Floats]:
        """Return the mean of targets (D',) and the products of the hidden layer with the rest of them (h, D')."""
        mean = targets.mean(axis=0, dtype=np.float64)
        moment: Doubles = np.zeros((len(self._centre), targets.shape[1]))
        for block in _blocks(len(targets)):
            layer = self._student.hidden(self._student.scaled(self._features[block]))  # (b, h)
            moment += layer.T @ (targets[block] - mean).astype(np.float32)
        return mean, moment.astype(np.float32)

    def _solved(self, penalty: float, mean: Doubles, moment: Floats) -> S:
        from scipy.linalg import cho_solve  # slow to import

        W2: Floats = cho_solve(self._factor(penalty), moment)
        b2: Floats = (mean - self._centre @ W2).astype(np.float32)
        return replace(self._student, W2=np.ascontiguousarray(W2), b2=b2)

    def _readers(self, held: Floats) -> dict[float, Floats]:
        """Return for each penalty what turns moments into answers to features (m, F), (m, h)."""
        from scipy.linalg import cho_solve

        if self._held is None or not np.array_equal(self._held[0], held):
            layer = self._student.hidden(self._student.scaled(held)) - self._centre.astype(np.float32)  # (m, h)
            readers = {penalty: cho_solve(self._factor(penalty), layer.T).T for penalty in PENALTIES}
            self._held = held, readers
        return self._held[1]

    def _factor(self, penalty: float) -> Any:
        from scipy.linalg import cho_factor

        if penalty not in self._factors:
            loaded = self._gram.astype(np.float32)
            loaded[np.diag_indices(len(loaded))] += np.float32(penalty * self.mean_variance)
            self._factors[penalty] = cho_factor(loaded, overwrite_a=True)
        return self._factors[penalty]


class BlurredView:
    """What a stealer sees of texts: the principal components of their clean vectors through noise.

    The noise is the same in every direction, and a tenth of the component's own variance is added to it: public
    encoders see a provider's components so, the first ones well and the last ones hardly. The number of hidden units
    makes the stealer more of a line or more of a network. Views through more and less noise share their products.

    Parameters
    ----------
    rows
        Principal components of all texts, the largest first, centred, (n, K).
    each
        The mean variance of one number of the clean vectors.
    hidden
        Random hidden units.

    Examples
    --------
    >>> rng = np.random.default_rng(1)
    >>> view = BlurredView(rng.standard_normal((100, 8)).astype(np.float32), 1.0, 16, rng)
    >>> view.features(0.5).shape
    (100, 24)
    """

    def __init__(self, rows: Floats, each: float, hidden: int, rng: np.random.Generator) -> None:
        spread = np.sqrt(each + _COLOURED * rows.var(axis=0))  # (K,)
        noise = rng.standard_normal(rows.shape, dtype=np.float32) * spread.astype(np.float32)
        W = rng.standard_normal((rows.shape[1], hidden), dtype=np.float32)
        self._bias = (np.abs(rng.standard_normal(hidden)) / 2).astype(np.float32)
        self._rows, self._noise = (rows, rows @ W), (noise, noise @ W)
        self._energies = tuple(max(float(np.square(part).sum(axis=1).mean()), 1e-12) for part in (rows, noise))

    def features(self, blur: float) -> Floats:
        """Return [f, max(f W + b, 0)] of all texts, f seen through ``blur`` times the noise, (n, K + hidden)."""
        signal, noise = self._energies
        scale = np.float32(1.0 / np.sqrt(signal + blur**2 * noise))
        seen, layer = (
            (plain + np.float32(blur) * blurred) * scale for plain, blurred in zip(self._rows, self._noise, strict=True)
        )
        layer += self._bias
        np.maximum(layer, 0, out=layer)
        # A hidden unit has a variance of about a third: the linear part weighs as much as all of them.
        return np.hstack([seen * np.float32(np.sqrt(max(layer.shape[1], 1) / 3)), layer])


class SimulatedStealer:
    """A stealer that has asked its texts; any number of keys may serve it.

    Parameters
    ----------
    features
        What it sees of all texts, (n, F).
    asked
        The places of the texts that it asks, (q,).
    student
        What it trains; its output layer is solved for.
    penalty
        Of the ridge, a share of the mean variance of a hidden unit; with ``absolute`` as it is.
    """

    def __init__(
        self, features: Floats, asked: Integers, student: Student, penalty: float, *, absolute: bool = False
    ) -> None:
        self.asked = asked
        self._features = features
        self._solver = RidgeSolver(student, features[asked])
        self._penalty = penalty / self._solver.mean_variance if absolute else penalty

    def steal(self, served: Floats) -> SimulatedCopy:
        """Learn what was served for the texts asked, (q, D)."""
        return SimulatedCopy(next(self._solver.solve(served, (self._penalty,))), self._features)


@dataclass(frozen=True)
class SimulatedCopy:
    """What a simulated stealer has learnt; called with places of texts."""

    student: Student
    features: Floats

    def __call__(self, places: Integers) -> Floats:
        return normalised(self.student.answers(self.features[places]))


def _blocks(count: int) -> Iterator[slice]:
    return (slice(start, start + _BLOCK) for start in range(0, count, _BLOCK))
