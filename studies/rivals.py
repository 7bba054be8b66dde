"""How strongly each defense's decoy test sees one everyday thief, and whether salads help those with trigger words.

    python -m studies.rivals --data-dir DATA --features MODEL --feature-cache FILE [--seeds 0-3]

The provider is all-mpnet-base-v2 on SST-2 (`DATA/provider_mpnet768_sst2.npz`). For each seed its 8,872 texts are
divided anew: 4,700 make the secret, and the thief buys the others and trains a head on MODEL's features. MODEL is a
sentence-transformers name or folder; features are kept in FILE (SQLite). The figure is z of the true choice, over
sqrt(R) where there are several: 3.1 is the level of 1e-3 for a Gaussian.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import regionmarker as rm
from regionmarker.benchmark.defenses import load_defense
from regionmarker.benchmark.defenses.trigger_words import TriggerWordDefense, random_word_texts
from regionmarker.benchmark.defenses.words import TokenCounts
from regionmarker.benchmark.stealers import FrozenHead, HeadModel
from regionmarker.verification.answers import Answers
from regionmarker.verification.clean_space import to_clean_space
from regionmarker.verification.decoy1 import standardised
from studies._study import Command, encoder_spec, markdown, provider_rows

PAGE = "docs/results/defense-tests.md"
SPECS = ("none", "embmarker", "warden", "espew", "wet", "geomark", "regionmarker", "regionmarker:subspace=4")
OWN = 4700
RANDOM_TEXTS = 128
COLUMNS = ("caught at 1e-3", "decoy z", "salads alone", "both", "published p < 0.05", "Delta_cos", "fidelity")


def of_choice(z: np.ndarray, chosen: Sequence[int]) -> float:
    """Return the score of the true choice."""
    return float(z[np.arange(len(chosen)), list(chosen)].sum() / np.sqrt(len(chosen)))


def random_text_scores(defense: Any, copy: HeadModel, features: Any, counts: TokenCounts, seed: int) -> np.ndarray:
    """Score by salads: trigger words against other words of the same frequency, aligned and whitened like the rest."""
    band = counts.candidates(defense.options.low, defense.options.high)
    hits = defense._counter(band)  # which words of the band trigger which mark
    rng = np.random.default_rng(seed)

    def mean_answer(words: list[str]) -> np.ndarray:
        return np.asarray(
            copy.apply(features(random_word_texts(words, RANDOM_TEXTS, defense.options.full, rng))).mean(axis=0)
        )

    control = mean_answer([word for word, hit in zip(band, hits.any(axis=1), strict=True) if not hit])
    marks = range(hits.shape[1])
    groups = [[word for word, hit in zip(band, hits[:, mark], strict=True) if hit] for mark in marks]
    shift = np.stack([mean_answer(group) - control for group in groups])  # (R, D')
    pulls, texts = defense._target_scores, (*defense._pool.texts, *defense._natural.texts)
    S = copy.apply(features(list(texts)))
    raw = to_clean_space(shift, pulls._clean, S - S.mean(axis=0)) @ (pulls._candidates - pulls._clean.centre).T
    return standardised(raw, pulls._covariates, np.ones(raw.shape[1], dtype=bool))


def measure(
    spec: str, seed: int, texts: list[str], clean: np.ndarray, features: Any, counts: TokenCounts, own: int, hidden: int
) -> list[float]:
    """Return the figures of one defense and one seed."""
    order = np.random.default_rng(1000 + seed).permutation(len(texts))
    kept, bought = order[:own], order[own:]
    defense: Any = load_defense(spec, seed=seed, counts=counts).fit([texts[row] for row in kept], clean[kept])
    queries = [texts[row] for row in bought]
    head = FrozenHead(seed=seed, hidden=hidden)
    copy = head.steal_from_features(features(queries), defense.transform(clean[bought], queries))
    probes = tuple(defense.probes())
    finding = defense.judge(Answers("thief", probes, copy.apply(features(list(probes)))))
    z = finding.scores
    alone = both = np.nan
    if isinstance(defense, TriggerWordDefense):
        extra = random_text_scores(defense, copy, features, counts, seed)
        alone = of_choice(extra, finding.chosen)
        together = standardised(z + extra, np.empty((z.shape[1], 0)), np.ones(z.shape[1], dtype=bool))
        both = of_choice(together, finding.chosen)
    published = finding.published
    found = (finding.p_value <= 1e-3, of_choice(z, finding.chosen), alone, both, published.p_value < 0.05)
    return [float(value) for value in (*found, published.delta_cos, copy.fidelity.cosine)]


def main() -> None:
    """Measure and print a table, one row per defense."""
    small = ["embmarker:pool=128,low=0.001,high=0.1", "wet:pool=128,probes=64", "regionmarker:pool=128"]
    smoke = {"features": "wordllama", "seeds": "0-0", "own": 900, "hidden": 32, "specs": small}
    parser = Command(__doc__, PAGE, data=True, smoke=smoke)
    parser.add_argument("--features", default="all-MiniLM-L6-v2")
    parser.add_argument("--feature-cache", type=Path)
    parser.add_argument("--specs", nargs="+", default=SPECS, help="the defenses")
    parser.add_argument("--own", type=int, default=OWN, help="texts that make the secret")
    parser.add_argument("--hidden", type=int, default=2048, help="units of the thief's head")
    parser.add_argument("--seeds", default="0-3", help="first and last")
    given = parser.read()
    first, last = map(int, given.seeds.split("-"))
    _, texts, clean = provider_rows(given.data_dir, "sst2")
    encoder = rm.load_encoder(encoder_spec(given.features), cache=given.feature_cache)
    counts = TokenCounts.from_file(given.data_dir / "wikitext_token_counts.json")
    print(markdown(["defense", *COLUMNS], []))
    for spec in given.specs:
        rows = [
            measure(spec, seed, texts, clean, encoder.encode, counts, given.own, given.hidden)
            for seed in range(first, last + 1)
        ]
        mean = np.mean(rows, axis=0)
        counted = [f"{sum(row[place] for row in rows):.0f} of {len(rows)}" for place in (0, 4)]
        cells = [
            counted[0],
            *(f"{value:.1f}" for value in mean[1:4]),
            counted[1],
            *(f"{value:.2f}" for value in mean[5:]),
        ]
        print(f"| {spec} |", " | ".join(cells).replace("nan", "-"), "|", flush=True)


if __name__ == "__main__":
    main()
