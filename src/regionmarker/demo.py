"""The whole story in one run: a provider, its mark, a thief, two disguises, two innocents, six verdicts, a picture."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from regionmarker.benchmark.attacks import AttackedModel
from regionmarker.benchmark.stealers import HashedGrams, TokenBag
from regionmarker.encoders import load_encoder
from regionmarker.marking.marker import RegionMarker
from regionmarker.measures import neighbour_overlap, row_cosines
from regionmarker.sample_corpus import python_sentences
from regionmarker.vectors import AnyArray, Doubles, Floats, Integers
from regionmarker.verification.judging import verify
from regionmarker.verification.suspects import load_suspect
from regionmarker.verification.verdict import Verdict

_PROTECTED = 7000  # texts that the key is made from, and whose neighbours are counted
_DISGUISES = ("shift:100", "truncate:2/3")


@dataclass(frozen=True)
class Story:
    """What :command:`regionmarker demo` shows; arrays have one row per text of the provider, (n,)."""

    marker: RegionMarker
    region_of: Integers
    cosines: Doubles
    overlap: Doubles
    marked: AnyArray
    fidelity: float
    verdicts: dict[str, Verdict]
    guilty: tuple[str, ...]

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
        """Yield one line of the region table per region."""
        key = self.marker.key_
        for region in range(2**self.marker.dimension):
            rows = self.region_of == region
            mark = "provider" if region in key.mark.regions else "tenant" if region in key.mark.tenant_regions else ""
            values = (
                (f"{self.cosines[rows].mean():.4f}", f"{self.overlap[rows].mean():.1%}") if rows.any() else ("", "")
            )
            yield f"{region:04b}", str(rows.sum()), f"{rows.mean():.1%}", mark, *values

    def draw(self, path: Path) -> None:
        """Draw how the texts fill the regions, and how many of their nearest neighbours marking kept."""
        from regionmarker.plots import MARKED, PLAIN, Figure

        figure = Figure(figsize=(10, 3.6), layout="constrained")
        left, right = figure.subplots(1, 2)
        count = 2**self.marker.dimension
        shares = np.bincount(self.region_of, minlength=count) / len(self.region_of)
        colours = [MARKED if region in self.marker.key_.mark.regions else PLAIN for region in range(count)]
        left.bar(range(count), shares * 100, color=colours)
        left.set(title="Texts per region (trigger regions in red)", xlabel="region", ylabel="share of texts, %")
        groups = [self.overlap[~self.marked], self.overlap[self.marked]]
        right.hist(
            groups,
            bins=np.linspace(-0.05, 1.05, 12),
            weights=[np.full(len(group), 100 / max(len(group), 1)) for group in groups],
            color=[PLAIN, MARKED],
            label=["unmarked texts", "marked texts"],
        )
        right.set(title="Ten nearest neighbours kept by marking", xlabel="share kept", ylabel="share of texts, %")
        right.legend(frameon=False)
        for axes in (left, right):
            axes.spines[["top", "right"]].set_visible(False)
        figure.savefig(path, dpi=150)


def run_demo(say: Callable[[str], None], seed: int | None = None) -> Story:
    """Mark, steal, disguise and judge, saying what happens.

    Parameters
    ----------
    say
        Called with a sentence before each step.
    seed
        Makes the key a TEST key, so that the outcome is known beforehand.
    """
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
    guilty = {
        "the copy": copy.encode,
        **{f"the copy, {disguise}": AttackedModel(copy, disguise).encode for disguise in _DISGUISES},
    }
    innocent = {
        "an unrelated encoder": letters,
        "a copy of unmarked vectors": TokenBag().steal(queries, bought).encode,
        "the unmarked original": encoder.encode,
    }
    verdicts = {}
    for name, suspect in {**guilty, **innocent}.items():
        say(f"asking {name} ...")
        verdicts[name] = verify(marker, load_suspect(suspect, name=name), power=False)
    regions = marker.regions(clean)
    return Story(
        marker=marker,
        region_of=regions,
        cosines=row_cosines(clean, served),
        overlap=neighbour_overlap(clean, served),
        marked=np.isin(regions, marker.key_.mark.regions),
        fidelity=float(copy.fidelity.cosine),
        verdicts=verdicts,
        guilty=tuple(guilty),
    )


def letters(texts: Sequence[str]) -> Floats:
    """Embed texts by hashed letter n-grams alone: an encoder that never saw another's vectors."""
    rows = np.full((len(texts), 512), 1e-6)
    for row, numbers in enumerate(HashedGrams(size=512).tokens(texts)):
        rows[row] += np.sqrt(np.bincount(numbers, minlength=512))
    unit: Floats = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return unit
