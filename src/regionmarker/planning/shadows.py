"""Thieves that nobody sent: heads on public features, as good as is wanted.

A thief sees of each text what anyone can compute (WordLlama's vector), and where that does not make it good enough, a
random projection of the clean embedding besides, the wider the better: a stand-in for the better encoder that a
stronger thief would start from. It learns by ridge regression on random hidden units: the everyday thief without its
last polish.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from regionmarker.benchmark.network import Network, OutputSolver
from regionmarker.measures import row_cosines
from regionmarker.planning.material import Material
from regionmarker.vectors import Floats, Integers, normalised

_HIDDEN = 1024
_PENALTY = 0.1
_MEASURED = 1000  # texts that the fidelity is measured on
_PUBLIC = (8, 16, 32, 64, 128, 256)


@dataclass(frozen=True)
class Quality:
    """How much a thief sees: so many numbers of the public vector, and so many of the clean one.

    Examples
    --------
    >>> str(Quality(256, 64))
    'public features of width 256 and 64 numbers of the clean vector'
    """

    public: int
    clean: int = 0

    def __str__(self) -> str:
        more = f" and {self.clean} numbers of the clean vector" if self.clean else ""
        return f"public features of width {self.public}{more}"


def qualities(width: int) -> Iterator[Quality]:
    """Yield thieves from the worst to the best, for clean vectors of a width."""
    yield from (Quality(public) for public in _PUBLIC)
    clean = 8
    while clean < width:
        yield Quality(_PUBLIC[-1], clean)
        clean *= 2


class Shadow:
    """A thief that has asked its texts; it can be served by any number of keys.

    Parameters
    ----------
    material
        Whose texts.
    quality
        What it sees.
    queries
        How many of the material's queries it asks; None for all.
    """

    def __init__(self, material: Material, quality: Quality, queries: int | None = None) -> None:
        rng = np.random.default_rng([material.seed, quality.public, quality.clean])
        self.quality = quality
        self.queries: Integers = material.queries[:queries]
        self._features = _seen(material, quality, rng)  # (n, F)
        asked = self._features[self.queries]
        self._solver = OutputSolver(Network.drawn(asked, material.width, _HIDDEN, rng), asked)
        held = material.own[:_MEASURED]
        clean = material.embeddings
        self.fidelity = float(row_cosines(self.steal(clean[self.queries])(held), clean[held]).mean())
        """Of a copy of the unmarked vectors, on texts that were not asked."""

    def steal(self, served: Floats) -> Copy:
        """Learn what was served for the queries, (q, D)."""
        return Copy(next(self._solver.solve(served, (_PENALTY,))), self._features)


@dataclass(frozen=True)
class Copy:
    """What a shadow has learnt; called with places of texts."""

    network: Network
    features: Floats

    def __call__(self, places: Integers) -> Floats:
        """Answer for texts of the material, (m, D)."""
        return normalised(self.network.answers(self.features[places]))


def find_shadow(material: Material, fidelity: float) -> tuple[Shadow, list[tuple[Quality, float]]]:
    """Return the first thief on the ladder that reaches a fidelity, or else the best, and all that were tried."""
    tried = []
    for quality in qualities(material.width):
        shadow = Shadow(material, quality)
        tried.append((quality, shadow.fidelity))
        if shadow.fidelity >= fidelity:
            break
    return shadow, tried


def _seen(material: Material, quality: Quality, rng: np.random.Generator) -> Floats:
    public = material.public
    parts = [public if quality.public >= public.shape[1] else _projected(public, quality.public, rng)]
    if quality.clean:
        parts.append(_projected(material.embeddings, quality.clean, rng))
    return np.hstack(parts)


def _projected(rows: Floats, width: int, rng: np.random.Generator) -> Floats:
    """Project rows at random to a smaller width, their lengths kept on average."""
    matrix = rng.standard_normal((rows.shape[1], width), dtype=np.float32) / np.float32(np.sqrt(width))
    projected: Floats = rows @ matrix
    return projected
