"""The whole story in one object: a provider, its mark, a thief, two disguises, two innocents, and six verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from regionmarker.benchmark.attacks import AttackedModel
from regionmarker.benchmark.stealers import HashedGrams, TokenBag
from regionmarker.encoders import load_encoder
from regionmarker.marking.marker import RegionMarker
from regionmarker.measures import neighbour_overlap, row_cosines
from regionmarker.sample_corpus import python_sentences
from regionmarker.vectors import AnyArray, Doubles, Floats, Integers
from regionmarker.verification.suspects import load_suspect
from regionmarker.verification.verdict import Verdict, verify

_PROTECTED = 7000  # texts that the key is made from, and whose neighbours are counted
_SHIFT, _KEEP = "shift:100", "truncate:2/3"


@dataclass(frozen=True)
class Story:
    """What :command:`regionmarker demo` tells."""

    marker: RegionMarker
    region_of: Integers  # (n,)
    cosines: Doubles
    overlap: Doubles
    marked: AnyArray
    fidelity: float
    verdicts: dict[str, Verdict]
    guilty: tuple[str, ...]

    @classmethod
    def told(cls, say: Callable[[str], None], seed: int | None = None) -> Story:
        """Live through the story, saying what happens; with a seed the key is a TEST key, and the end is known."""
        say("reading the documentation of Python's standard library ...")
        texts = python_sentences()
        np.random.default_rng(0).shuffle(texts)
        ours, queries = texts[:_PROTECTED], texts[_PROTECTED:]
        encoder = load_encoder("wordllama")
        say(f"the provider makes a key from {len(ours)} sentences ...")
        clean = encoder.encode(ours)
        marker = RegionMarker(seed=seed).fit(ours, embeddings=clean)
        served = marker.transform(clean)
        say(f"a thief buys the vectors of {len(queries)} other sentences and trains a model on them ...")
        bought = encoder.encode(queries)
        copy = TokenBag().steal(queries, marker.transform(bought))
        unmarked = TokenBag().steal(queries, bought)
        suspects = {
            "the copy": copy.encode,
            f"the copy, {_SHIFT}": AttackedModel(copy, _SHIFT).encode,
            f"the copy, {_KEEP}": AttackedModel(copy, _KEEP).encode,
            "an unrelated encoder": letters,
            "a copy of unmarked vectors": unmarked.encode,
            "the unmarked original": encoder.encode,
        }
        verdicts = {}
        for name, suspect in suspects.items():
            say(f"asking {name} ...")
            verdicts[name] = verify(marker, load_suspect(suspect, name=name), power=False)
        regions = marker.regions(clean)
        return cls(
            marker=marker,
            region_of=regions,
            cosines=row_cosines(clean, served),
            overlap=neighbour_overlap(clean, served),
            marked=np.isin(regions, marker.key_.regions),
            fidelity=float(copy.fidelity.cosine),
            verdicts=verdicts,
            guilty=tuple(name for name in suspects if name.startswith("the copy")),
        )

    def utility(self) -> dict[str, object]:
        """Return what marking did to the provider's own texts."""
        return {
            "texts": len(self.region_of),
            "marked_share": round(float(self.marked.mean()), 4),
            "mean_cosine_of_marked_rows": round(float(self.cosines[self.marked].mean()), 4),
            "ten_nearest_neighbours_kept": round(float(self.overlap.mean()), 4),
            "fidelity_of_the_copy": round(self.fidelity, 4),
        }

    def regions(self) -> Iterator[tuple[str, ...]]:
        """Yield a line of the region table a region."""
        key = self.marker.key_
        for region in range(2**self.marker.dimension):
            rows = self.region_of == region
            mark = "provider" if region in key.regions else "tenant" if region in key.tenant_regions else ""
            values = (
                (f"{self.cosines[rows].mean():.4f}", f"{self.overlap[rows].mean():.1%}") if rows.any() else ("", "")
            )
            yield f"{region:04b}", str(rows.sum()), f"{rows.mean():.1%}", mark, *values


def letters(texts: list[str]) -> Floats:
    """Embed texts by hashed letter n-grams alone: an encoder that never saw another's vectors."""
    rows = np.full((len(texts), 512), 1e-6)
    for row, numbers in enumerate(HashedGrams(size=512).tokens(texts)):
        rows[row] += np.sqrt(np.bincount(numbers, minlength=512))
    unit: Floats = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return unit
