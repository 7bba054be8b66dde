"""Thieves who have read our source and lack the key alone: products, ica, neighbours, student.

A graded mark adds secret targets by what secret hyperplanes say of a vector. Who knows that takes away whatever all
products of the leading coordinates explain (``products``), looks for independent sources in what a public encoder does
not explain (``ica``), blurs every vector with those next to it (``neighbours``), or lets one student teach another
(``student``).
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from regionmarker.benchmark.attacks.base import WholeDataAttack, check_rows_of, with_directions
from regionmarker.benchmark.attacks.cse import leading_directions, without
from regionmarker.benchmark.attacks.directions import principal_axes
from regionmarker.benchmark.attacks.public_map import PublicMap
from regionmarker.benchmark.protocols import StolenData
from regionmarker.errors import InputError, MissingExtraError
from regionmarker.vectors import Doubles, normalised

_CLIP = 3.0  # deviations: a few long products would decide the regression
_BLOCK = 1024  # rows at a time


@dataclass(frozen=True)
class Products(WholeDataAttack):
    """Take away the linear effect of all products of two leading principal coordinates, squares among them.

    Attributes
    ----------
    span
        How many coordinates; k of them have k (k + 1) / 2 products.
    penalty
        Of the ridge.

    Examples
    --------
    >>> rows = np.random.default_rng(0).standard_normal((900, 8)) * [3, 2, 1, 1, 1, 1, 1, 1]
    >>> pair = np.clip(rows[:, 0] * rows[:, 1] / 6, -3, 3)  # of two hyperplanes
    >>> rows[:, 7] += pair
    >>> attacked = Products(2).apply(StolenData(("text",) * 900, rows.astype(np.float32))).vectors
    >>> [round(float(np.corrcoef(column, pair)[0, 1]), 1) for column in (rows[:, 7], attacked[:, 7])]
    [0.7, 0.0]
    """

    spec: ClassVar[str] = "products"

    span: int = 16
    penalty: float = 30.0

    def __post_init__(self) -> None:
        self._check(self.span >= 1, f"the span must be at least 1, but is {self.span}")
        self._check(self.penalty > 0, f"the penalty must be positive, but is {self.penalty}")

    def apply(self, stolen: StolenData, /) -> StolenData:
        check_rows_of(stolen, 2, attack=self.name)
        centred = stolen.vectors - stolen.vectors.mean(axis=0, dtype=np.float64)  # (n, D)
        axes, deviations = principal_axes(centred, self.span)
        parts = (centred @ axes.T) / np.maximum(deviations, 1e-9)  # (n, k)
        first, second = np.triu_indices(parts.shape[1])
        Q = np.clip(parts[:, first] * parts[:, second], -_CLIP, _CLIP)  # (n, k (k + 1) / 2)
        Q -= Q.mean(axis=0)
        explained = Q @ np.linalg.solve(Q.T @ Q + self.penalty * np.eye(Q.shape[1]), Q.T @ centred)  # (n, D)
        return with_directions(stolen, stolen.vectors - explained, attack=self.name)


@dataclass(frozen=True)
class ICA(WholeDataAttack):
    """Remove the least Gaussian independent sources of what a public map leaves of the served vectors.

    Attributes
    ----------
    sources
        How many are looked for, by FastICA of scikit-learn.
    components
        How many of them are removed: those whose kurtosis lies farthest from a Gaussian's.
    hidden
        Random units of the public map; with 0 it is linear.
    seed
        Of FastICA's start.

    Examples
    --------
    >>> ICA(components=16).name
    'ica:components=16'
    """

    spec: ClassVar[str] = "ica"

    sources: int = 64
    components: int = 32
    hidden: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        self._check(1 <= self.components <= self.sources, f"components must be 1 to {self.sources}: {self.components}")
        self._check(self.hidden >= 0, f"hidden must not be negative, but is {self.hidden}")
        self._check(self.seed >= 0, f"the seed must not be negative, but is {self.seed}")

    def apply(self, stolen: StolenData, /) -> StolenData:
        check_rows_of(stolen, self.sources + 1, attack=self.name)
        if self.sources >= stolen.vectors.shape[1]:
            raise InputError(
                f"{self.name} needs vectors wider than {self.sources}, but they have {stolen.vectors.shape[1]}"
            )
        return with_directions(stolen, without(stolen.vectors, self.directions(stolen)), attack=self.name)

    def directions(self, stolen: StolenData) -> Doubles:
        """Return the orthonormal directions to remove, (k, D)."""
        try:
            from sklearn.decomposition import FastICA
            from sklearn.exceptions import ConvergenceWarning
        except ImportError:
            raise MissingExtraError.for_module("scikit-learn", "benchmark") from None
        residuals = PublicMap.of(stolen, self.hidden).residuals  # (n, D)
        axes, deviations = principal_axes(residuals - residuals.mean(axis=0), self.sources)
        axes = axes[deviations > max(1e-6 * float(deviations.max(initial=0)), 1e-5)]  # repeated texts span less
        if not len(axes):
            raise InputError(f"{self.name} finds nothing that the public encoder does not say: give other texts")
        ica = FastICA(whiten="unit-variance", max_iter=200, tol=1e-3, random_state=self.seed)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # sources that are half found are directions, too
            found = ica.fit_transform(residuals @ axes.T)  # (n, s)
        kurtosis = (found**4).mean(axis=0) / np.square((found**2).mean(axis=0)) - 3
        order = np.argsort(-np.abs(kurtosis), kind="stable")[: self.components]
        mixing = ica.mixing_[:, order].T @ axes  # (k, D)
        return leading_directions(mixing / np.linalg.norm(mixing, axis=1, keepdims=True), self.components)


@dataclass(frozen=True)
class Neighbours(WholeDataAttack):
    """Train on the mean of each vector and those nearest to it: what changes within a neighbourhood is blurred.

    Attributes
    ----------
    count
        How many neighbours are averaged with the vector itself.
    by
        Nearest by ``served`` or by ``public`` cosine.

    Examples
    --------
    >>> rows = np.array([[1, 0], [0.8, 0.6], [0, 1], [-1, 0]], dtype=np.float32)
    >>> Neighbours(1).apply(StolenData(tuple("abcd"), rows)).vectors[0].round(3)
    array([0.949, 0.316], dtype=float32)
    """

    spec: ClassVar[str] = "neighbours"

    count: int = 5
    by: str = "served"

    def __post_init__(self) -> None:
        self._check(self.count >= 1, f"the count must be at least 1, but is {self.count}")
        self._check(self.by in ("served", "public"), f"by must be served or public, but is {self.by!r}")

    def apply(self, stolen: StolenData, /) -> StolenData:
        check_rows_of(stolen, 2, attack=self.name)
        rows = normalised(stolen.vectors)
        like = rows if self.by == "served" else normalised(stolen.public_encoder().encode(list(stolen.texts)))
        count = min(self.count, len(rows) - 1)
        means = np.empty(rows.shape)
        for start in range(0, len(rows), _BLOCK):
            cosines = like[start : start + _BLOCK] @ like.T  # (b, n)
            places = np.arange(len(cosines))
            cosines[places, start + places] = -np.inf  # itself, which is taken anyway
            near = np.argpartition(-cosines, count - 1, axis=1)[:, :count]  # (b, count)
            means[start : start + _BLOCK] = rows[near].sum(axis=1) + rows[start : start + _BLOCK]
        return with_directions(stolen, means / (count + 1), attack=self.name)


@dataclass(frozen=True)
class Student(WholeDataAttack):
    """Train on what a first student answers instead of what was served: the copy is a student of the student.

    The first student is a ridge map of public features and random hidden units. It answers for every text as if it had
    not been taught that one (leave-one-out), so nothing served comes through but by what it learnt.

    Attributes
    ----------
    hidden
        Units of the first student; with 0 it is linear.

    Examples
    --------
    >>> from regionmarker import load_encoder
    >>> from regionmarker.sample_corpus import python_sentences
    >>> texts, public = python_sentences(200), load_encoder("wordllama")
    >>> Student(64).apply(StolenData(texts, public.encode(texts), public=public)).vectors.shape
    (200, 256)
    """

    spec: ClassVar[str] = "student"

    hidden: int = 1024

    def __post_init__(self) -> None:
        self._check(self.hidden >= 0, f"hidden must not be negative, but is {self.hidden}")

    def apply(self, stolen: StolenData, /) -> StolenData:
        check_rows_of(stolen, 3, attack=self.name)
        return with_directions(stolen, PublicMap.of(stolen, self.hidden).unseen, attack=self.name)
