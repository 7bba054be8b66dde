"""The graded mark: hyperplanes with graded sides, half of the carriers pairs of hyperplanes, targets in a band.

A *carrier* says how much of its target a vector gets. With u_a = n_a . (e - mu) / sd, the scaled signed distance of e
from hyperplane a, it is, scaled to unit variance over the key's own texts,

    a *single*:  c = clip(u_a, -2, 2)               a *pair*:  c = clip(u_a u_b, -2, 2) - mean

A single is odd: one side gets the target, the other side its opposite. A pair is even: two opposite quadrants against
the other two; it has no linear part, so that no unknown rotation can absorb it. The mark is everywhere and has no
border. Every carrier j has one target text t_j, of which only a band of principal components is used: below the band
lie the hyperplanes and what a removal of common directions takes, above it copies do not vary.

    d_t = unit(B (w_t - mu)),    e_p = n(e + lambda (J_s^-1/2 sum_singles c_j d_tj + J_p^-1/2 sum_pairs c_j d_tj))

There are two groups of carriers. The provider's have the same targets in every vector that is served. The tenants' are
the same functions for all tenants, and each tenant has targets of its own: what two accounts differ in is then
sum_j c_j (d_tj - d_t'j), and whoever takes that span away keeps the mean of both marks. Tenant "" is an account like
any other, so that nothing is served which lacks the tenants' carriers. The groups share the energy lambda^2.

The pool is cut into one list of candidates per carrier of a group, and t_j is a uniform draw from list j. The draws are
independent of each other and of everything else: that is all that the exact test needs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from regionmarker.corpus import TextSet
from regionmarker.crypto.derive import below, draw_distinct, subkey, words
from regionmarker.crypto.secret import Sealed, Secret
from regionmarker.errors import InputError
from regionmarker.marks.corpus_summary import CorpusSummary
from regionmarker.marks.graded_settings import GradedSettings
from regionmarker.marks.plan import CLIP
from regionmarker.marks.reduction import array_stream, haar, top_eigenvectors
from regionmarker.marks.regions import region_numbers, region_shares
from regionmarker.marks.served_carriers import WATCHED, ServedCarriers
from regionmarker.measures import nearest
from regionmarker.progress import Progress
from regionmarker.vectors import AnyArray, Doubles, Floats, Integers, normalised

_INDEX, _QUERIES, _NEIGHBOURS, _DRAWS = 5000, 1000, 10, 3
_STRENGTHS, _HALVINGS = (1e-3, 1.0), 12
_TINY = 1e-12


def _no_progress(_done: int, _total: int) -> None: ...


@dataclass(frozen=True, repr=False, eq=False)
class GradedMark(Sealed):
    """Principal components, hyperplanes and the carriers' scales: all but the targets.

    Carriers stand in the order: the provider's singles, the tenants' singles, the provider's pairs, the tenants' pairs.
    """

    kind: ClassVar[str] = "graded"

    settings: GradedSettings
    strength: float  # lambda
    mean: Doubles  # mu (D,)
    components: Doubles  # P (K, D): principal directions, largest first, K = band_end
    deviations: Doubles  # (K,): the standard deviation of each
    planes: Doubles  # (h, D): scaled so that u = planes (e - mu) has unit variance; the singles' first
    planes_of: Integers  # (J, 2): the hyperplanes of each carrier; -1 where a single has no second one
    centres: Doubles  # (J,): subtracted from each carrier
    scales: Doubles  # (J,): and divided by
    shares: Doubles  # (2^WATCHED,): how the corpus fills the signatures of the first hyperplanes

    @classmethod
    def fit(
        cls,
        summary: CorpusSummary,
        master: Secret,
        settings: GradedSettings,
        samples: Sequence[TextSet],
        progress: Progress = _no_progress,
    ) -> GradedMark:
        """Find the components on a summary of the corpus, draw the hyperplanes, find the strength."""
        moments = summary.moments
        spread = moments.covariance() if settings.reducer == "pca" else moments.second_moment()
        components = top_eigenvectors(spread, settings.band_end)  # (K, D)
        variances = np.einsum("kd,de,ke->k", components, moments.covariance(), components)
        deviations = np.sqrt(np.maximum(variances, _TINY))
        return cls._draw(master, settings, moments.mean(), components, deviations, samples, progress)

    def redrawn(self, master: Secret, samples: Sequence[TextSet], progress: Progress = _no_progress) -> GradedMark:
        """Return a mark on the same components, with the hyperplanes that ``master`` draws."""
        return self._draw(master, self.settings, self.mean, self.components, self.deviations, samples, progress)

    @classmethod
    def _draw(
        cls,
        master: Secret,
        settings: GradedSettings,
        mean: Doubles,
        components: Doubles,
        deviations: Doubles,
        samples: Sequence[TextSet],
        progress: Progress,
    ) -> GradedMark:
        planes = _draw_planes(master, settings, components, deviations)  # (h, D)
        rows = np.vstack([part.embeddings for part in samples]).astype(np.float64)
        planes /= np.maximum(((rows - mean) @ planes.T).std(axis=0), _TINY)[:, None]
        planes_of = carriers_planes(master, settings)
        nothing = np.zeros(len(planes_of))
        shares = region_shares(region_numbers((rows - mean) @ planes[:WATCHED].T), WATCHED)
        bare = cls(settings, 1.0, mean, components, deviations, planes, planes_of, nothing, nothing + 1.0, shares)
        carriers = bare.carriers(rows)
        centres = np.where(planes_of[:, 1] < 0, 0.0, carriers.mean(axis=0))
        drawn = replace(bare, centres=centres, scales=np.maximum(carriers.std(axis=0), _TINY))
        seed = int.from_bytes(subkey(master, "strength").reveal()[:8], "little")
        return drawn.at_strength_for(settings.kept, rows.astype(np.float32), seed, progress)

    # ---- where a vector lies

    def signed_distances(self, embeddings: AnyArray) -> Doubles:
        """Return u, the scaled signed distance of every row to every hyperplane, (n, h)."""
        return np.asarray((embeddings - self.mean) @ self.planes.T)

    def carriers(self, embeddings: AnyArray) -> Doubles:
        """Return every carrier of every row, (n, J), of unit variance over the key's own texts."""
        return self.carriers_of(self.signed_distances(embeddings))

    def carriers_of(self, u: Doubles) -> Doubles:
        """Return the carriers of rows with signed distances u (n, h), (n, J)."""
        first, second = self.planes_of.T
        product = u[:, first] * np.where(second < 0, 1.0, u[:, second])
        return np.asarray((np.clip(product, -CLIP, CLIP) - self.centres) / self.scales)

    @cached_property
    def weights(self) -> Doubles:
        """The weight of each carrier in the mark, (J,): the square root of its share of the energy, times sqrt(2)."""
        return self.settings.weights()

    # ---- targets: places in the key's pool, one from each carrier's list

    def provider_targets(self, master: Secret, salt: bytes, pool_size: int) -> tuple[int, ...]:
        """Draw the tuple that every tenant's vectors carry: carrier j's from list j, uniformly."""
        return self._drawn_targets(subkey(master, "targets", "graded provider", salt=salt), pool_size, "provider")

    def tenant_targets(self, master: Secret, salt: bytes, pool_size: int, tenant: str) -> tuple[int, ...]:
        """Draw the tuple that belongs to one account; none where the key has no tenants' carriers."""
        if not len(self.settings.places("tenants")):
            if tenant:
                raise InputError("this key has no marks for tenants: make one without tenants=False to mark by tenant")
            return ()
        return self._drawn_targets(subkey(master, "targets", "graded tenant", tenant, salt=salt), pool_size, "tenants")

    def _drawn_targets(self, key: Secret, pool_size: int, group: str) -> tuple[int, ...]:
        size, stream = self.settings.list_size(pool_size), words(key)
        return tuple(number * size + below(stream, size) for number in range(len(self.settings.places(group))))

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

    def at_strength_for(self, kept: float, rows: Floats, seed: int, progress: Progress = _no_progress) -> GradedMark:
        """Return this mark at the strength that leaves a share ``kept`` of the ten nearest neighbours as they are.

        Neighbours are looked for by cosine among up to 5,000 of ``rows`` (n, D), for 1,000 of them, over fresh random
        draws of targets: the secret ones are not used, so that nothing which the verdict uses depends on them.
        """
        rng = np.random.default_rng(seed)
        index = rows[rng.permutation(len(rows))[:_INDEX]]
        before = nearest(index[:_QUERIES], _NEIGHBOURS, among=index)
        amounts = self.carriers(index) * self.weights  # (n, J)
        draws = [index[rng.permutation(len(index))[: len(self.weights)]] for _ in range(_DRAWS)]
        pulled = [(amounts @ self.directions(targets)).astype(np.float32) for targets in draws]
        low, high = _STRENGTHS
        for step in range(_HALVINGS):
            strength = float(np.sqrt(low * high))
            share = np.mean([_share_kept(before, normalised(index + np.float32(strength) * one)) for one in pulled])
            low, high = (strength, high) if share > kept else (low, strength)
            progress(step + 1, _HALVINGS)
        if low == _STRENGTHS[0]:
            raise InputError(f"kept is {kept:g}, but the weakest mark moves more neighbours on these texts: give less")
        return replace(self, strength=low)

    def served(self, pool: Floats, provider: tuple[int, ...], tenants: Mapping[str, tuple[int, ...]]) -> ServedCarriers:
        """Return what marking needs and no more, given the targets' places in ``pool`` (M, D)."""
        places = sorted({*provider, *(place for drawn in tenants.values() for place in drawn)})
        row_of = {place: row for row, place in enumerate(places)}
        return ServedCarriers(
            strength=self.strength,
            planes=self.planes,
            offsets=self.planes @ self.mean,
            planes_of=self.planes_of,
            centres=self.centres,
            amounts=self.strength * self.weights / self.scales,
            provider=self.settings.places("provider"),
            vectors=self.directions(pool[places]).astype(np.float32),
            provider_rows=np.array([row_of[place] for place in provider], dtype=np.int64),
            names=tuple(tenants),
            tenant_rows=np.array(
                [[row_of[place] for place in drawn] for drawn in tenants.values()], dtype=np.int64
            ).reshape(len(tenants), -1),
            shares=self.shares,
        )

    # ---- what a key file stores, and what may be told

    def describe(self) -> dict[str, object]:
        """Return the facts that are not secret."""
        return {"mark": self.kind, **self.settings.describe(), "strength": round(self.strength, 4)}

    def document(self) -> dict[str, object]:
        return {"settings": asdict(self.settings), "strength": self.strength}

    def arrays(self) -> dict[str, AnyArray]:
        return {name: getattr(self, name) for name in _ARRAYS}

    @classmethod
    def from_parts(cls, document: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> GradedMark:
        return cls(
            settings=GradedSettings.from_document(document["settings"]),
            strength=float(document["strength"]),
            **{name: arrays[name] for name in _ARRAYS},
        )


_ARRAYS = ("mean", "components", "deviations", "planes", "planes_of", "centres", "scales", "shares")


def _draw_planes(master: Secret, settings: GradedSettings, components: Doubles, deviations: Doubles) -> Doubles:
    """Draw the hyperplanes (h, D): the provider's singles, the tenants', the provider's pairs', the tenants'.

    Two tenants who compare their vectors find the tenants' carriers, so those say nothing about the provider's: each
    group has hyperplanes of its own, drawn independently.
    """
    among = components[settings.single_start : settings.single_end]
    top, whiten = components[: settings.pair_span], deviations[: settings.pair_span]
    singles, pairs = [], []
    for group, (count, _) in settings.counts().items():
        rng = array_stream(master, f"graded hyperplanes {group}")
        singles.append(haar(rng, count, len(among)) @ among)
        pairs.append(haar(rng, settings.pair_planes, settings.pair_span) / whiten @ top)
    return np.vstack([*singles, *pairs])


def carriers_planes(master: Secret, settings: GradedSettings) -> Integers:
    """Return the hyperplanes of every carrier, (J, 2): one of its own for a single, no two twice for pairs."""
    first, second = np.triu_indices(settings.pair_planes, 1)
    singles = np.stack([np.arange(settings.all_singles), np.full(settings.all_singles, -1)], axis=1)
    found, start = [singles], settings.all_singles
    for group, (_, count) in settings.counts().items():
        chosen = list(draw_distinct(subkey(master, "graded pairs", group), len(first), count))
        found.append(start + np.stack([first[chosen], second[chosen]], axis=1))
        start += settings.pair_planes
    return np.vstack(found).astype(np.int64)


def _share_kept(before: Integers, moved: Floats) -> float:
    after = nearest(moved[: len(before)], _NEIGHBOURS, among=moved)
    return float((before[:, :, None] == after[:, None, :]).any(axis=2).mean())
