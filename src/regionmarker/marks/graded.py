"""The graded mark: hyperplanes with graded sides, half of the carriers pairs of hyperplanes, targets in a band.

A *carrier* says how much of its target a vector gets. With u_a = n_a . (e - mu) / sd, the scaled signed distance of e
from hyperplane a, it is, scaled to unit variance over the key's own texts,

    a *single*:  c = clip(u_a, -2, 2)               a *pair*:  c = clip(u_a u_b, -2, 2) - mean

A single is odd: one side gets the target, the other side its opposite. A pair is even: two opposite quadrants against
the other two; it has no linear part, so that no unknown rotation can absorb it. The mark is everywhere and has no
border. Every carrier j has one target text t_j, of which only a band of principal components is used: below the band
lie the hyperplanes and what a removal of common directions takes, above it copies do not vary.

    d_t = unit(B (w_t - mu)),    e_p = n(e + lambda (J_s^-1/2 sum_singles c_j d_tj + J_p^-1/2 sum_pairs c_j d_tj))

The pool is cut into one list of candidates per carrier, and t_j is a uniform draw from list j. The draws are
independent of each other and of everything else: that is all that the exact test needs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from regionmarker.corpus import TextSet
from regionmarker.crypto.derive import below, subkey, words
from regionmarker.crypto.secret import Sealed, Secret
from regionmarker.errors import InputError
from regionmarker.marks.corpus_summary import CorpusSummary
from regionmarker.marks.number_format import NumberFormat
from regionmarker.marks.plan import CLIP, GradedPlan
from regionmarker.marks.reduction import array_stream, haar, top_eigenvectors
from regionmarker.measures import nearest
from regionmarker.specs import from_known
from regionmarker.vectors import AnyArray, Doubles, Floats, Integers, normalised

_INDEX, _QUERIES, _NEIGHBOURS, _DRAWS = 5000, 1000, 10, 3
_STRENGTHS, _HALVINGS = (1e-3, 1.0), 12
_TINY = 1e-12


@dataclass(frozen=True)
class GradedSettings:
    """The open choices of the mark; none of them is secret.

    Attributes
    ----------
    singles, pairs
        J_s and J_p, the number of carriers of each kind.
    single_span, pair_span
        Normals of singles lie among this many top principal components; those of pairs among this many, whitened.
    band_start, band_end
        The principal components that targets are kept to, counted from 0, the end left out.
    kept
        The share of the ten nearest neighbours that marking shall leave as they are.
    """

    singles: int = 8
    pairs: int = 16
    single_span: int = 32
    pair_span: int = 16
    band_start: int = 32
    band_end: int = 256
    kept: float = 0.93

    @property
    def carriers(self) -> int:
        """J, the number of carriers, and so of targets."""
        return self.singles + self.pairs

    @classmethod
    def within(cls, width: int, **chosen: Any) -> GradedSettings:
        """Return settings whose spans fit embeddings of a width.

        Examples
        --------
        >>> narrow = GradedSettings.within(64)
        >>> GradedSettings.within(768).band_end, narrow.band_start, narrow.band_end
        (256, 8, 64)
        """
        span = min(32, max(4, width // 8))
        defaults = {
            "single_span": span,
            "pair_span": min(16, span),
            "band_start": span,
            "band_end": min(256, width),
        }
        found = cls(**{**defaults, **chosen})
        if not found.pair_span <= found.band_start < found.band_end <= width or found.singles > found.single_span:
            raise InputError(f"embeddings of width {width} are too narrow for this mark: give at least 32 dimensions")
        return found

    @classmethod
    def from_document(cls, document: Mapping[str, Any]) -> GradedSettings:
        """Read settings from a key file's document, which may hold more than this version knows."""
        return from_known(cls, document)


@dataclass(frozen=True, repr=False, eq=False)
class GradedMark(Sealed):
    """Principal components, hyperplanes and the carriers' scales: all but the targets."""

    kind: ClassVar[str] = "graded"

    settings: GradedSettings
    strength: float  # lambda
    mean: Doubles  # mu (D,)
    components: Doubles  # P (K, D): principal directions, largest first, K = band_end
    deviations: Doubles  # (K,): the standard deviation of each
    planes: Doubles  # (h, D): scaled so that u = planes (e - mu) has unit variance; the singles' first
    pairs: Integers  # (J_p, 2): rows of `planes`
    centres: Doubles  # (J,): subtracted from each carrier
    scales: Doubles  # (J,): and divided by

    @classmethod
    def fit(
        cls,
        summary: CorpusSummary,
        master: Secret,
        settings: GradedSettings,
        samples: Sequence[TextSet],
        strength: float = 0.07,
    ) -> GradedMark:
        """Find the principal components on a summary of the corpus and draw the hyperplanes."""
        covariance = summary.moments.covariance()
        components = top_eigenvectors(covariance, settings.band_end)  # (K, D)
        variances = np.einsum("kd,de,ke->k", components, covariance, components)
        deviations = np.sqrt(np.maximum(variances, _TINY))
        return cls._draw(master, settings, strength, summary.moments.mean(), components, deviations, samples)

    def redrawn(self, master: Secret, samples: Sequence[TextSet]) -> GradedMark:
        """Return a mark on the same components, with the hyperplanes that ``master`` draws."""
        return self._draw(master, self.settings, self.strength, self.mean, self.components, self.deviations, samples)

    @classmethod
    def _draw(
        cls,
        master: Secret,
        settings: GradedSettings,
        strength: float,
        mean: Doubles,
        components: Doubles,
        deviations: Doubles,
        samples: Sequence[TextSet],
    ) -> GradedMark:
        rng = array_stream(master, "graded hyperplanes")
        single = haar(rng, settings.singles, settings.single_span) @ components[: settings.single_span]
        whitened = haar(rng, settings.pair_span, settings.pair_span) / deviations[: settings.pair_span]
        planes = np.vstack([single, whitened @ components[: settings.pair_span]])  # (h, D)
        rows = np.vstack([part.embeddings for part in samples]).astype(np.float64)
        planes /= np.maximum(((rows - mean) @ planes.T).std(axis=0), _TINY)[:, None]
        first, second = np.triu_indices(settings.pair_span, 1)
        chosen = rng.permutation(len(first))[: settings.pairs]
        pairs = settings.singles + np.stack([first[chosen], second[chosen]], axis=1)
        nothing = np.zeros(settings.carriers)
        mark = cls(settings, strength, mean, components, deviations, planes, pairs, nothing, nothing + 1.0)
        carriers = mark.carriers(rows)
        centres = np.concatenate([nothing[: settings.singles], carriers[:, settings.singles :].mean(axis=0)])
        return cls(settings, strength, mean, components, deviations, planes, pairs, centres, carriers.std(axis=0))

    # ---- where a vector lies

    def signed_distances(self, embeddings: AnyArray) -> Doubles:
        """Return u, the scaled signed distance of every row to every hyperplane, (n, h)."""
        return np.asarray((embeddings - self.mean) @ self.planes.T)

    def carriers(self, embeddings: AnyArray) -> Doubles:
        """Return every carrier of every row, (n, J), of unit variance over the key's own texts."""
        return self.carriers_of(self.signed_distances(embeddings))

    def carriers_of(self, u: Doubles) -> Doubles:
        """Return the carriers of rows with signed distances u (n, h), (n, J)."""
        singles = u[:, : self.settings.singles]
        products = u[:, self.pairs[:, 0]] * u[:, self.pairs[:, 1]]
        clipped = np.clip(np.hstack([singles, products]), -CLIP, CLIP)
        return np.asarray((clipped - self.centres) / self.scales)

    @cached_property
    def weights(self) -> Doubles:
        """The weight of each carrier in the mark and in the statistic: J_s^-1/2 or J_p^-1/2, (J,)."""
        counts = np.repeat([self.settings.singles, self.settings.pairs], [self.settings.singles, self.settings.pairs])
        return np.asarray(1.0 / np.sqrt(counts))

    # ---- targets: places in the key's pool, one from each carrier's list

    def list_size(self, pool_size: int) -> int:
        """Return how many candidates each carrier's list has."""
        size = pool_size // self.settings.carriers
        if size < 2:
            raise InputError(f"a pool of {pool_size} texts has no two candidates for each of {self.settings.carriers}")
        return size

    def provider_targets(self, master: Secret, salt: bytes, pool_size: int) -> tuple[int, ...]:
        """Draw the tuple that every tenant's vectors carry: carrier j's from list j, uniformly."""
        size, stream = self.list_size(pool_size), words(subkey(master, "targets", "graded provider", salt=salt))
        return tuple(carrier * size + below(stream, size) for carrier in range(self.settings.carriers))

    def band_coordinates(self, vectors: AnyArray) -> Doubles:
        """Return unit(B (w - mu)) in coordinates of the principal components, (m, K): zero outside the band."""
        coordinates = (vectors - self.mean) @ self.components.T
        coordinates[:, : self.settings.band_start] = 0.0
        lengths = np.linalg.norm(coordinates, axis=1, keepdims=True)
        return np.asarray(coordinates / np.maximum(lengths, _TINY))

    def directions(self, vectors: AnyArray) -> Doubles:
        """Return d_t for targets with these clean embeddings (m, D), (m, D)."""
        return self.band_coordinates(vectors) @ self.components

    def mark_rows(self, embeddings: AnyArray, targets: AnyArray) -> Doubles:
        """Return e_p for rows (n, D) and the targets' clean embeddings (J, D), in float64: the formula as it stands."""
        pulled = (self.carriers(embeddings) * self.weights) @ self.directions(targets)
        moved = embeddings + self.strength * pulled
        return np.asarray(moved / np.linalg.norm(moved, axis=1, keepdims=True))

    def at_strength_for(self, kept: float, rows: Floats, seed: int) -> GradedMark:
        """Return this mark at the strength that leaves a share ``kept`` of the ten nearest neighbours as they are.

        Neighbours are looked for by cosine among up to 5,000 of ``rows`` (n, D), for 1,000 of them, over fresh random
        draws of targets: the secret ones are not used, so that nothing which the verdict uses depends on them.
        """
        rng = np.random.default_rng(seed)
        index = rows[rng.permutation(len(rows))[:_INDEX]]
        before = nearest(index[:_QUERIES], _NEIGHBOURS, among=index)
        amounts = self.carriers(index) * self.weights  # (n, J)
        draws = [index[rng.permutation(len(index))[: self.settings.carriers]] for _ in range(_DRAWS)]
        pulled = [(amounts @ self.directions(targets)).astype(np.float32) for targets in draws]
        low, high = _STRENGTHS
        for _ in range(_HALVINGS):
            strength = float(np.sqrt(low * high))
            share = np.mean([_share_kept(before, normalised(index + np.float32(strength) * one)) for one in pulled])
            low, high = (strength, high) if share > kept else (low, strength)
        return replace(self, strength=low)

    def served(self, pool: Floats, provider: tuple[int, ...]) -> ServedCarriers:
        """Return what marking needs and no more, given the targets' places in ``pool`` (M, D)."""
        return ServedCarriers(
            settings=self.settings,
            strength=self.strength,
            planes=self.planes,
            offsets=self.planes @ self.mean,
            pairs=self.pairs,
            centres=self.centres,
            amounts=self.strength * self.weights / self.scales,
            directions=self.directions(pool[list(provider)]).astype(np.float32),
        )

    # ---- what a key file stores, and what may be told

    def describe(self) -> dict[str, object]:
        """Return the facts that are not secret."""
        return {**asdict(self.settings), "strength": self.strength}


@dataclass(frozen=True, repr=False, eq=False)
class ServedCarriers(Sealed):
    """Hyperplanes, carriers and the directions that they pull along; no texts, no places in the pool."""

    kind: ClassVar[str] = "graded"

    settings: GradedSettings
    strength: float
    planes: Doubles  # (h, D)
    offsets: Doubles  # (h,)
    pairs: Integers  # (J_p, 2)
    centres: Doubles  # (J,)
    amounts: Doubles  # (J,)
    directions: Floats  # (J, D)

    @property
    def width(self) -> int:
        """The embeddings' width D."""
        return int(self.planes.shape[1])

    def signed_distances(self, embeddings: AnyArray) -> Doubles:
        """Return u, the scaled signed distance of every row to every hyperplane, (n, h)."""
        return np.asarray(embeddings @ self.planes.T - self.offsets)

    def plan(self, number_format: NumberFormat) -> GradedPlan:
        """Lay the mark out for an engine."""
        singles = np.arange(self.settings.singles)
        return GradedPlan(
            planes=self.planes.astype(np.float32),
            offsets=self.offsets,
            first=np.concatenate([singles, self.pairs[:, 0]]),
            second=np.concatenate([np.full(len(singles), -1), self.pairs[:, 1]]),
            centres=self.centres,
            amounts=self.amounts,
            directions=self.directions,
            number_format=number_format,
        )


def _share_kept(before: Integers, moved: Floats) -> float:
    after = nearest(moved[: len(before)], _NEIGHBOURS, among=moved)
    return float((before[:, :, None] == after[:, None, :]).any(axis=2).mean())
