"""The whole story in one run: a provider, twenty customers, a thief, two disguises, three innocents, six verdicts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from regionmarker.benchmark.attacks import AttackedModel
from regionmarker.benchmark.stealers import HashedGrams, TokenBag
from regionmarker.encoders import load_encoder
from regionmarker.marking.marker import RegionMarker
from regionmarker.measures import neighbour_overlap, row_cosines
from regionmarker.sample_corpus import python_sentences
from regionmarker.vectors import Floats
from regionmarker.verification.asking import ask
from regionmarker.verification.judging import verify
from regionmarker.verification.suspects import load_suspect
from regionmarker.verification.tracing import Trace, trace
from regionmarker.verification.verdict import Verdict

_PROTECTED = 7000  # texts that the key is made from, and whose neighbours are counted
_DISGUISES = {"cut to 2/3": "truncate:2/3", "rotated": "rotate"}
_TENANTS = tuple(f"customer-{number:02d}" for number in range(1, 21))
_LEAKED = _TENANTS[6]


@dataclass(frozen=True)
class Story:
    """What :command:`regionmarker demo` shows."""

    marker: RegionMarker
    texts: int
    cosine: float
    kept: float
    fidelity: float
    verdicts: dict[str, Verdict]
    guilty: tuple[str, ...]
    traces: list[Trace]

    def utility(self) -> dict[str, object]:
        """Return what marking did to the provider's own texts, and how good the copy is."""
        return {
            "texts": self.texts,
            "mean_cosine_of_marked_and_clean": round(self.cosine, 4),
            "ten_nearest_neighbours_kept": round(self.kept, 4),
            "fidelity_of_the_copy": round(self.fidelity, 4),
            "leaked_by": _LEAKED,
        }

    @property
    def accused(self) -> tuple[str, ...]:
        """The customers whom tracing names."""
        return tuple(row.tenant for row in self.traces if row.accused)

    def draw(self, path: Path) -> None:
        """Draw everyone's p-value by the paper's test and by ours."""
        from regionmarker.plots import draw_verdicts

        rows = [
            (name, name in self.guilty, verdict.paper.p_value, verdict.p_value)
            for name, verdict in self.verdicts.items()
        ]
        level = next(iter(self.verdicts.values())).level
        draw_verdicts(rows, level).savefig(path, dpi=150)


def run_demo(say: Callable[[str], None], seed: int | None = None) -> Story:
    """Mark, steal, disguise, judge and trace, saying what happens.

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
    say(
        f"{_LEAKED} of {len(_TENANTS)} buys the vectors of {len(queries)} other sentences and trains a copy on them ..."
    )
    bought = encoder.encode(queries)
    copy = TokenBag().steal(queries, marker.transform(bought, tenant=_LEAKED))
    guilty = {
        "the copy": copy.encode,
        **{f"the copy, {name}": AttackedModel(copy, attack).encode for name, attack in _DISGUISES.items()},
    }
    innocent = {
        "an unrelated encoder": letters,
        "a copy without mark": TokenBag().steal(queries, bought).encode,
        "the original itself": encoder.encode,
    }
    verdicts: dict[str, Verdict] = {}
    traces: list[Trace] = []
    for name, suspect in {**guilty, **innocent}.items():
        say(f"asking {name} ...")
        answers = ask(marker, load_suspect(suspect, name=name))
        verdicts[name] = verify(marker, answers, power=False)
        traces = traces or trace(marker, answers, _TENANTS)
    return Story(
        marker=marker,
        texts=len(ours),
        cosine=float(row_cosines(clean, served).mean()),
        kept=float(neighbour_overlap(clean, served).mean()),
        fidelity=float(copy.fidelity.cosine),
        verdicts=verdicts,
        guilty=tuple(guilty),
        traces=traces,
    )


def letters(texts: Sequence[str]) -> Floats:
    """Embed texts by hashed letter n-grams alone: an encoder that never saw another's vectors."""
    rows = np.full((len(texts), 512), 1e-6)
    for row, numbers in enumerate(HashedGrams(size=512).tokens(texts)):
        rows[row] += np.sqrt(np.bincount(numbers, minlength=512))
    unit: Floats = (rows / np.linalg.norm(rows, axis=1, keepdims=True)).astype(np.float32)
    return unit
