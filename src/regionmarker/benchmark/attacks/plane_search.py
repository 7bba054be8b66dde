"""Angle search, the spec ``angles``: find the key's hyperplanes from outside, and drop the rows that look marked.

The reducer is hardly a secret, for anyone can fit principal components on served vectors; the secret is how the normals
lie in their span. This attack on ourselves searches that, and is why keys draw their normals in a wide span
(docs/why/subspace.md).

A frame Q (k, d) of orthonormal columns divides the leading k principal coordinates of the served vectors into 2^d
regions by sign. Were it the key's frame, the residuals of a public map would have a mean of their own in every trigger
region: the mark. So an outsider looks for the frame with the most variance of residuals between regions, first by
gradient on soft signs, then by turning one normal at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from regionmarker.benchmark.attacks.base import WholeDataAttack, check_rows_of
from regionmarker.benchmark.attacks.directions import principal_axes
from regionmarker.benchmark.attacks.public_map import PublicMap, public_features
from regionmarker.benchmark.protocols import StolenData
from regionmarker.vectors import AnyArray, Doubles, Floats, Integers

WIDTH = 64
"""Of the residuals, whitened: the leading ones hold the marks."""

_SMALL = 0.01  # regions smaller than this share of the rows count for less: they are topics, not trigger regions


@dataclass(frozen=True, eq=False)
class OutsideView:
    """What the outsider computes from public features and served vectors; no secret goes in."""

    coordinates: Floats  # (n, k) centred principal coordinates of the served vectors
    scale: Floats  # (k,) their deviations
    residuals: Floats  # (n, WIDTH) whitened leave-one-out residuals, linear part in `coordinates` removed
    plain: Floats  # (n, WIDTH) the same without that removal
    axes: Floats  # (k, D) directions of the coordinates

    @classmethod
    def of(cls, served: Floats, features: Floats, span: int) -> OutsideView:
        """Look at served vectors (n, D) beside features (n, F), in the leading ``span`` coordinates."""
        centred = served - served.mean(axis=0)
        axes = principal_axes(centred, span)[0].astype(np.float32)
        coordinates = np.ascontiguousarray(centred @ axes.T)
        both = np.hstack([features, coordinates[:, :WIDTH]])
        return cls(
            coordinates,
            np.maximum(coordinates.std(axis=0), np.float32(1e-9)),
            whitened(PublicMap.fit(both, served, penalties=(1.0,)).residuals),
            whitened(PublicMap.fit(features, served, penalties=(1.0,)).residuals),
            axes,
        )

    def regions(self, q: Floats) -> Integers:
        """Return each row's region for a frame (k, d), (n,), 0 .. 2^d - 1."""
        return np.asarray((self.coordinates @ q > 0) @ (1 << np.arange(q.shape[1])), dtype=np.int64)

    def evidence(self, q: Floats) -> float:
        return evidence(self.regions(q), self.residuals, 2 ** q.shape[1])


def whitened(rows: AnyArray) -> Floats:
    """Return rows (n, D) as their leading principal coordinates at unit variance, (n, at most WIDTH)."""
    centred = rows - rows.mean(axis=0)
    axes, deviations = principal_axes(centred, WIDTH)
    real = deviations > 1e-6 * max(float(deviations.max(initial=0)), 1e-12)
    real[0] = True  # something to look at, even if it is nothing
    return np.ascontiguousarray(centred @ axes[real].T / np.maximum(deviations[real], 1e-12), dtype=np.float32)


def evidence(regions: Integers, residuals: Floats, count: int) -> float:
    """Return the between-region sum of squares of whitened residuals (near (count - 1) WIDTH by chance).

    Examples
    --------
    >>> evidence(np.array([0, 1]), np.array([[1.0], [-1.0]], dtype=np.float32), 2) > 1.9
    True
    """
    member = np.zeros((count, len(regions)), dtype=np.float32)
    member[regions, np.arange(len(regions))] = 1
    sizes = member.sum(axis=1) + _SMALL * len(regions)
    return float((((member @ residuals) ** 2).sum(axis=1) / sizes).sum())


def random_frame(span: int, planes: int, rng: np.random.Generator) -> Floats:
    """Return a frame (k, d) drawn uniformly."""
    return np.asarray(np.linalg.qr(rng.standard_normal((span, planes)))[0].astype(np.float32))


def hessian_frame(view: OutsideView, planes: int) -> Floats:
    """Return a spectral start: principal Hessian directions of the residuals over the whitened coordinates."""
    z = view.coordinates / view.scale  # (n, k)
    total = np.zeros((z.shape[1], z.shape[1]))
    for column in view.residuals.T:
        moment = (z * column[:, None]).T @ z / len(z)
        total += moment @ moment
    vectors = np.linalg.eigh(total)[1][:, -planes:] / view.scale[:, None]
    return np.asarray(np.linalg.qr(vectors)[0].astype(np.float32))


def soft_gradient(v: Floats, residuals: Floats, width: Floats) -> Floats:
    """Return the gradient of the soft between-region evidence by the projections v (n, d); ``width`` (d,) of signs."""
    d = v.shape[1]
    bits = (np.arange(2**d)[:, None] >> np.arange(d)) & 1  # (2^d, d)
    soft = np.tanh(v / width)
    halves = np.stack([(1 - soft) / 2, (1 + soft) / 2])  # (2, n, d) how far on either side
    sides = np.stack([halves[bits[:, j], :, j].T for j in range(d)])  # (d, n, 2^d)
    member = sides.prod(axis=0)  # (n, 2^d)
    means = (member.T @ residuals) / (member.sum(axis=0) + _SMALL * len(v))[:, None]
    slope = 2 * residuals @ means.T - (means**2).sum(axis=1)  # (n, 2^d)
    gradient = np.empty_like(v)
    for j in range(d):
        rest = np.delete(sides, j, axis=0).prod(axis=0)  # (n, 2^d)
        gradient[:, j] = (slope * rest) @ (bits[:, j] - np.float32(0.5))
    return np.asarray(gradient * (1 - soft**2) / width)


def ascend(view: OutsideView, q: Floats, steps: int) -> Floats:
    """Adam with QR retraction onto orthonormal frames, the soft signs sharpened along the way."""
    first, second = np.zeros_like(q), np.zeros_like(q)
    for step in range(steps):
        v = view.coordinates @ q
        width = np.maximum(v.std(axis=0), np.float32(1e-9)) * np.float32(0.8 * 0.15 ** (step / steps))
        gradient = view.coordinates.T @ soft_gradient(v, view.residuals, width)
        gradient -= q @ ((q.T @ gradient + gradient.T @ q) / 2)
        first, second = 0.9 * first + 0.1 * gradient, 0.99 * second + 0.01 * gradient**2
        move = first / (np.sqrt(second.mean()) + 1e-9)
        moved = q + 0.15 * (1 - 0.9 * step / steps) * move / np.sqrt(len(q))
        q = np.linalg.qr(moved)[0].astype(np.float32)
    return q


def climb(
    view: OutsideView,
    q: Floats,
    rng: np.random.Generator,
    *,
    patience: int = 150,
    stop: Callable[[], bool] = lambda: False,
) -> tuple[Floats, float]:
    """Hill climbing on the hard evidence: turn one normal towards a random direction of the span."""
    best, failures, angle = view.evidence(q), 0, 0.5
    while failures < patience and not stop():
        turned = q.copy()
        j = int(rng.integers(q.shape[1]))
        other = rng.standard_normal(len(q)).astype(np.float32)
        other -= q[:, j] * (q[:, j] @ other)
        other /= max(float(np.linalg.norm(other)), 1e-9)
        theta = angle * rng.standard_normal()
        turned[:, j] = np.cos(theta) * q[:, j] + np.sin(theta) * other
        u, _, vt = np.linalg.svd(turned, full_matrices=False)
        turned = (u @ vt).astype(np.float32)
        value = view.evidence(turned)
        if value > best:
            q, best, failures = turned, value, 0
        else:
            failures += 1
            angle = max(0.03, angle * 0.99)
    return q, best


def region_scores(regions: Integers, residuals: Floats, count: int) -> tuple[Doubles, Doubles]:
    """Rank rows by how significant their region is, and by the likelihood ratio of the region's (shrunk) shift."""
    means = np.zeros((count, residuals.shape[1]))
    sizes = np.bincount(regions, minlength=count)
    for region in np.flatnonzero(sizes):
        means[region] = residuals[regions == region].mean(axis=0)
    lengths = (means**2).sum(axis=1)
    excess = np.maximum(lengths - residuals.shape[1] / np.maximum(sizes, 1), 0)
    means *= np.where(lengths > 0, excess / np.maximum(lengths, 1e-12), 0)[:, None]
    ratio = (residuals * means[regions]).sum(axis=1) - (means**2).sum(axis=1)[regions] / 2
    return np.asarray(excess[regions]), np.asarray(ratio)


@dataclass(frozen=True)
class Angles(WholeDataAttack):
    """Search for the key's hyperplanes, and drop a share of the rows: those that look most marked.

    Attributes
    ----------
    planes
        Of the key, as far as the thief knows.
    span
        How many leading principal components the search is over; 4 fits the paper's keys, 32 our default.
    share
        Of the rows, to drop.
    starts, steps
        How often the search is begun, and how many steps it climbs each time.
    seed
        Of the starts.

    Examples
    --------
    >>> from regionmarker import load_encoder
    >>> from regionmarker.sample_corpus import python_sentences
    >>> texts, public = python_sentences(100), load_encoder("wordllama")
    >>> len(Angles(span=4, starts=1, steps=5, share=0.25).apply(StolenData(texts, public.encode(texts), public=public)))
    75
    """

    spec: ClassVar[str] = "angles"

    planes: int = 4
    span: int = 32
    share: float = 0.2
    starts: int = 3
    steps: int = 100
    seed: int = 0

    def __post_init__(self) -> None:
        self._check(1 <= self.planes <= 8, f"planes must be 1 to 8, but is {self.planes}")
        self._check(self.span >= self.planes, f"the span must hold the {self.planes} planes, but is {self.span}")
        self._check(0 < self.share < 1, f"the share must lie between 0 and 1, but is {self.share}")
        self._check(self.starts >= 1 and self.steps >= 1, "starts and steps must be at least 1")
        self._check(self.seed >= 0, f"the seed must not be negative, but is {self.seed}")

    def apply(self, stolen: StolenData, /) -> StolenData:
        check_rows_of(stolen, 3, attack=self.name)
        count = min(round(self.share * len(stolen)), len(stolen) - 1)
        order = np.argsort(-self.suspicion(stolen), kind="stable")
        return stolen.kept(np.sort(order[count:]))

    def suspicion(self, stolen: StolenData) -> Doubles:
        """Return how much each row looks marked, (n,)."""
        span = min(self.span, stolen.vectors.shape[1], len(stolen) - 1)
        view = OutsideView.of(stolen.vectors, public_features(stolen), span)
        frame = self.search(view)
        return region_scores(view.regions(frame), view.residuals, 2 ** frame.shape[1])[1]

    def search(self, view: OutsideView) -> Floats:
        """Return the frame (k, d) with the most evidence."""
        rng = np.random.default_rng(self.seed)
        span = view.coordinates.shape[1]
        planes = min(self.planes, span)
        first = hessian_frame(view, planes)
        starts = [first, *(random_frame(span, planes, rng) for _ in range(self.starts - 1))]
        best = max((ascend(view, start, self.steps) for start in starts), key=view.evidence)
        return climb(view, best, rng)[0]
