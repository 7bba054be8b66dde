"""Reducers: from a survey of the corpus to a low-dimensional space in which regions are cut.

Every reducer has one method, ``fit(survey, width, seed)``. Linear ones need the survey's moments alone and therefore
fit data larger than memory in one pass; the others fit the survey's sample.
"""

from __future__ import annotations

import warnings
from typing import Protocol

import numpy as np

from regionmarker.errors import InputError, MissingExtraError
from regionmarker.marking.reductions import LinearReduction, NeighbourReduction, NetworkReduction, Reduction
from regionmarker.marking.survey import Survey
from regionmarker.protocols import Doubles


class Reducer(Protocol):
    """Anything that turns a survey into a :class:`~regionmarker.marking.reductions.Reduction`."""

    def fit(self, survey: Survey, width: int, seed: int) -> Reduction:
        """Fit a reduction to ``width`` dimensions."""
        ...


class PCA:
    """Top components of the covariance: the paper's choice."""

    def fit(self, survey: Survey, width: int, seed: int) -> LinearReduction:  # noqa: ARG002
        """Fit on the survey's moments."""
        return LinearReduction("pca", survey.moments.mean(), _top_eigenvectors(survey.moments.covariance(), width))


class TruncatedSVD:
    """Top right singular vectors of the uncentred matrix; v is centred all the same, so that regions balance."""

    def fit(self, survey: Survey, width: int, seed: int) -> LinearReduction:  # noqa: ARG002
        """Fit on the survey's moments."""
        return LinearReduction("svd", survey.moments.mean(), _top_eigenvectors(survey.moments.second_moment(), width))


class NoReduction:
    """The paper's ablation: hyperplanes through the origin of the full space, nothing fitted, nothing centred."""

    def fit(self, survey: Survey, width: int, seed: int) -> LinearReduction:  # noqa: ARG002
        """Return the identity."""
        return LinearReduction("none", np.zeros(survey.width), None)


class AutoEncoder:
    """A tanh auto-encoder D -> 128 -> k -> 128 -> D, trained by scikit-learn on the survey's sample."""

    hidden = 128

    def fit(self, survey: Survey, width: int, seed: int) -> NetworkReduction:
        """Train, then keep the encoder half."""
        try:
            from sklearn.neural_network import MLPRegressor
        except ImportError:
            raise MissingExtraError.for_module("scikit-learn", "benchmark") from None
        rows = survey.sample().embeddings.astype(np.float64)
        mean = survey.moments.mean()
        # Unit vectors have entries near 1/sqrt(D); the network wants inputs near 1.
        scale = np.sqrt(survey.width)
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
    """UMAP on the survey's sample (umap-learn), then a deterministic map of new points to their neighbours' places."""

    def fit(self, survey: Survey, width: int, seed: int) -> NeighbourReduction:
        """Fit on the sample."""
        rows = survey.sample().embeddings
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
LINEAR = ("pca", "svd")


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


def _top_eigenvectors(matrix: Doubles, count: int) -> Doubles:
    """Rows are the eigenvectors of the ``count`` largest eigenvalues, signs fixed so that the fit is reproducible."""
    from scipy.linalg import eigh  # slow to import, and only fitting needs it

    size = len(matrix)
    _, vectors = eigh(matrix, subset_by_index=(size - count, size - 1))
    components = vectors[:, ::-1].T  # (k, D), largest first
    largest = np.take_along_axis(components, np.argmax(np.abs(components), axis=1)[:, None], axis=1)
    return np.ascontiguousarray(components * np.sign(largest))
