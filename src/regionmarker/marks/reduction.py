"""Reducers, and what they fit: e -> v, as arrays that a key file can hold and any later version can apply.

A linear reduction is v = P (e - mu) with the rows of P orthonormal (paper, step 1 of Algorithm 1; the paper leaves the
mean out, without which one sign bit is nearly constant). The auto-encoder and UMAP are not linear; they exist for the
paper's comparison and are applied with NumPy alone, row by row, so that a vector's region never depends on its batch.

A reducer has one method, ``fit(summary, width, seed)``. Linear ones need the summary's moments alone and therefore fit
data larger than memory in one pass; the others fit the summary's sample.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import ClassVar, Protocol

import numpy as np

from regionmarker.crypto.derive import subkey
from regionmarker.crypto.secret import Secret
from regionmarker.errors import InputError, MissingExtraError
from regionmarker.marks.corpus_summary import CorpusSummary
from regionmarker.vectors import AnyArray, Doubles

_BLOCK = 1024
_STORED = "reduction."  # what the names of its arrays begin with in a key file


class Reduction(Protocol):
    """A fitted reducer."""

    kind: str

    @property
    def width(self) -> int:
        """The width k of v."""

    def reduce(self, embeddings: AnyArray) -> Doubles:
        """Map e (n, D) to v (n, k)."""

    def arrays(self) -> dict[str, AnyArray]:
        """Return what a key file stores."""


class LinearReduction:
    """v = P (e - mu); with no P (the paper's ablation without reduction) v = e.

    Examples
    --------
    >>> reduction = LinearReduction("pca", mean=np.array([1.0, 0.0]), components=np.array([[0.0, 1.0]]))
    >>> reduction.reduce(np.array([[3.0, 4.0]])).tolist()
    [[4.0]]
    """

    def __init__(self, kind: str, mean: Doubles, components: Doubles | None) -> None:
        self.kind = kind
        self.mean = mean  # mu (D,)
        self.components = components  # P (k, D)

    @property
    def width(self) -> int:
        return len(self.mean) if self.components is None else len(self.components)

    def reduce(self, embeddings: AnyArray) -> Doubles:
        centred = embeddings - self.mean
        return centred if self.components is None else np.asarray(centred @ self.components.T)

    def fold(self, normals: Doubles) -> tuple[Doubles, Doubles]:
        """Fold normals (d, k) into H (d, D) and thresholds (d,): n_i . v > 0 exactly when H_i . e > threshold_i."""
        projection = normals if self.components is None else normals @ self.components
        return projection, projection @ self.mean

    def arrays(self) -> dict[str, AnyArray]:
        return {"mean": self.mean} if self.components is None else {"mean": self.mean, "components": self.components}


class NetworkReduction:
    """The encoder half of an auto-encoder: v = tanh(tanh((e - mu) W1 + b1) W2 + b2) - c, c the fit's mean of v."""

    kind = "autoencoder"
    names: ClassVar = ("mean", "weights_1", "bias_1", "weights_2", "bias_2", "centre")

    def __init__(self, **arrays: Doubles) -> None:
        self._arrays = {name: arrays[name] for name in self.names}

    @property
    def width(self) -> int:
        return len(self._arrays["bias_2"])

    def reduce(self, embeddings: AnyArray) -> Doubles:
        mean, weights_1, bias_1, weights_2, bias_2, centre = (self._arrays[name] for name in self.names)
        hidden = np.tanh(_by_row(embeddings - mean, weights_1) + bias_1)  # (n, h)
        return np.asarray(np.tanh(_by_row(hidden, weights_2) + bias_2) - centre)  # (n, k)

    def arrays(self) -> dict[str, AnyArray]:
        return dict(self._arrays)


class NeighbourReduction:
    """UMAP's map of new points: the average of the nearest reference points' coordinates, weighted by similarity.

    This is the start that UMAP itself gives a new point before it runs a random optimisation over the whole batch; we
    stop there, because a region must depend on the vector alone.
    """

    kind = "umap"
    neighbours = 15

    def __init__(self, reference: AnyArray, coordinates: Doubles) -> None:
        self._reference = reference  # (m, D)
        self._coordinates = coordinates  # (m, k), centred

    @property
    def width(self) -> int:
        return int(self._coordinates.shape[1])

    def reduce(self, embeddings: AnyArray) -> Doubles:
        reduced = np.empty((len(embeddings), self.width))
        for start in range(0, len(embeddings), _BLOCK):
            block = np.asarray(embeddings[start : start + _BLOCK], dtype=np.float64)
            reduced[start : start + _BLOCK] = self._reduce_block(block)
        return reduced

    def _reduce_block(self, block: Doubles) -> Doubles:
        similarity = _by_row(block, self._reference.T.astype(np.float64))  # (b, m)
        count = min(self.neighbours, len(self._reference))
        near = np.argpartition(-similarity, count - 1, axis=1)[:, :count]  # (b, count)
        distance = np.sqrt(np.maximum(2.0 - 2.0 * np.take_along_axis(similarity, near, axis=1), 0.0))
        nearest = distance.min(axis=1, keepdims=True)
        scale = np.maximum((distance - nearest).mean(axis=1, keepdims=True), 1e-12)
        weight = np.exp(-(distance - nearest) / scale)  # UMAP's membership strengths, with a mean-gap bandwidth
        weight /= weight.sum(axis=1, keepdims=True)
        return np.asarray(np.einsum("bc,bck->bk", weight, self._coordinates[near]))

    def arrays(self) -> dict[str, AnyArray]:
        return {"reference": self._reference, "coordinates": self._coordinates}


def _by_row(rows: Doubles, matrix: Doubles) -> Doubles:
    """Multiply (n, a) by (a, b) one row at a time, so that the answer for a row does not depend on its batch."""
    if not len(rows):
        return np.zeros((0, matrix.shape[1]))
    return np.concatenate([row[None, :] @ matrix for row in rows])


def from_arrays(kind: str, arrays: Mapping[str, AnyArray]) -> Reduction:
    """Rebuild a reduction from what :meth:`Reduction.arrays` gave."""
    if kind == NetworkReduction.kind:
        return NetworkReduction(**arrays)
    if kind == NeighbourReduction.kind:
        return NeighbourReduction(**arrays)
    return LinearReduction(kind, mean=arrays["mean"], components=arrays.get("components"))


def stored_arrays(reduction: Reduction) -> dict[str, AnyArray]:
    """Return the arrays of a reduction under the names that a mark stores them by."""
    return {_STORED + name: array for name, array in reduction.arrays().items()}


def from_stored(kind: str, arrays: Mapping[str, AnyArray]) -> Reduction:
    """Rebuild a reduction from the arrays of a mark that :func:`stored_arrays` are among."""
    return from_arrays(kind, arrays_under(arrays, _STORED))


def arrays_under(arrays: Mapping[str, AnyArray], prefix: str) -> dict[str, AnyArray]:
    """Return the arrays whose names begin with a prefix, without it."""
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}


class Reducer(Protocol):
    """Anything that turns a summary into a :class:`~regionmarker.marks.reduction.Reduction`."""

    def fit(self, summary: CorpusSummary, width: int, seed: int) -> Reduction:
        """Fit a reduction to ``width`` dimensions."""


class PCA:
    """Top components of the covariance: the paper's choice."""

    def fit(self, summary: CorpusSummary, width: int, seed: int) -> LinearReduction:  # noqa: ARG002
        return LinearReduction("pca", summary.moments.mean(), top_eigenvectors(summary.moments.covariance(), width))


class TruncatedSVD:
    """Top right singular vectors of the uncentred matrix; v is centred all the same, so that regions balance."""

    def fit(self, summary: CorpusSummary, width: int, seed: int) -> LinearReduction:  # noqa: ARG002
        return LinearReduction("svd", summary.moments.mean(), top_eigenvectors(summary.moments.second_moment(), width))


class NoReduction:
    """The paper's ablation: hyperplanes through the origin of the full space, nothing fitted, nothing centred."""

    def fit(self, summary: CorpusSummary, width: int, seed: int) -> LinearReduction:  # noqa: ARG002
        return LinearReduction("none", np.zeros(summary.width), None)


class AutoEncoder:
    """A tanh auto-encoder D -> 128 -> k -> 128 -> D, trained by scikit-learn on the summary's sample."""

    hidden = 128

    def fit(self, summary: CorpusSummary, width: int, seed: int) -> NetworkReduction:
        try:
            from sklearn.neural_network import MLPRegressor
        except ImportError:
            raise MissingExtraError.for_module("scikit-learn", "benchmark") from None
        rows = summary.sample().embeddings.astype(np.float64)
        mean = summary.moments.mean()
        # Unit vectors have entries near 1/sqrt(D); the network wants inputs near 1.
        scale = np.sqrt(summary.width)
        network = MLPRegressor(
            hidden_layer_sizes=(self.hidden, width, self.hidden),
            activation="tanh",
            max_iter=60,
            tol=1e-5,
            random_state=seed,
        )
        with warnings.catch_warnings(action="ignore"):  # stopping at max_iter is meant
            network.fit((rows - mean) * scale, (rows - mean) * scale)
        weights = {
            "mean": mean,
            "weights_1": network.coefs_[0] * scale,
            "bias_1": network.intercepts_[0],
            "weights_2": network.coefs_[1],
            "bias_2": network.intercepts_[1],
        }
        centre = NetworkReduction(**weights, centre=np.zeros(width)).reduce(rows).mean(axis=0)
        return NetworkReduction(**weights, centre=centre)


class UMAP:
    """UMAP on the summary's sample (umap-learn), then a deterministic map of new points to their neighbours' places."""

    def fit(self, summary: CorpusSummary, width: int, seed: int) -> NeighbourReduction:
        rows = summary.sample().embeddings
        with warnings.catch_warnings(action="ignore"):  # umap-learn complains of extras that are not needed here
            try:
                import umap
            except ImportError:
                raise MissingExtraError.for_module("umap-learn", "benchmark") from None
            fitted = umap.UMAP(n_components=width, metric="cosine", random_state=seed, n_jobs=1)
            coordinates = fitted.fit_transform(rows)
        centred = coordinates.astype(np.float64) - coordinates.mean(axis=0, dtype=np.float64)
        return NeighbourReduction(rows, centred)


REDUCERS: dict[str, type[Reducer]] = {
    "pca": PCA,
    "svd": TruncatedSVD,
    "autoencoder": AutoEncoder,
    "umap": UMAP,
    "none": NoReduction,
}
LINEAR = ("pca", "svd")  # reducers that have a subspace


def load_reducer(name: str) -> Reducer:
    """Return the reducer called ``name``.

    Examples
    --------
    >>> type(load_reducer("pca")).__name__
    'PCA'
    """
    if name not in REDUCERS:
        raise InputError(f"reducer {name!r} is not known: choose one of {', '.join(REDUCERS)}")
    return REDUCERS[name]()


def top_eigenvectors(matrix: Doubles, count: int) -> Doubles:
    """Rows are the eigenvectors of the ``count`` largest eigenvalues, signs fixed so that the fit is reproducible."""
    from scipy.linalg import eigh  # slow to import, and only fitting needs it

    size = len(matrix)
    _, vectors = eigh(matrix, subset_by_index=(size - count, size - 1))
    components = vectors[:, ::-1].T  # (k, D), largest first
    largest = np.take_along_axis(components, np.argmax(np.abs(components), axis=1)[:, None], axis=1)
    return np.ascontiguousarray(components * np.sign(largest))


def haar(rng: np.random.Generator, count: int, width: int) -> Doubles:
    """Draw ``count`` orthonormal rows of a width, uniformly: the Q of a Gaussian matrix, R's diagonal positive."""
    q, r = np.linalg.qr(rng.standard_normal((width, count)))
    return np.ascontiguousarray((q * np.sign(np.diag(r))).T)


def array_stream(master: Secret, label: str) -> np.random.Generator:
    """Return a random stream of the master's own, for what the key file stores as arrays and for nothing else."""
    seed = int.from_bytes(subkey(master, label).reveal(), "little")
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(seed)))
