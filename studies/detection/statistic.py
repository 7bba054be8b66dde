"""How powerful is `decoy-1`? A thief with a head on a public encoder's features, before and after dimension attacks.

    python -m studies.detection.statistic --data-dir DIR --features all-MiniLM-L6-v2 --keys 8 --out DIR

The data folder holds `NAME.parquet` (column text) and `provider_mpnet768_NAME.npz` (rows, embeddings). For every key
the corpus is divided anew: the thief buys --queries texts, the key is made from the others. Beside the thief's copy,
four innocents are asked. Each gets two judgements: `decoy-1` and the paper's statistics.

Every (key, suspect) is a line of rows.jsonl in the output folder, so a run that was stopped goes on where it was;
table.md is made from these lines. With a --feature-cache that exists, torch and sentence-transformers are not needed.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from regionmarker.verification.decoy_test import DecoyTest
from regionmarker.verification.examination import Examination
from regionmarker.verification.paper_statistics import paper_statistics
from studies._study import Command, Log, Row, markdown
from studies.detection.trial import ATTACKS, INNOCENTS, POOL, Setting, Trial, load_corpus

PAGE = "docs/results/statistic.md"

SUSPECTS = (*ATTACKS, *INNOCENTS)
REDRAWS = 100_000
LEVEL = 1e-3
HEAD = (
    "suspect",
    "fidelity",
    "keys",
    "decoy-1: U/√R",
    "p ≤ 1e-3",
    "paper's p, median",
    "p ≤ 1e-3",
    "paper says copy",
    "decoy-1, targets redrawn: p ≤ 1e-3",
)


def judge(trial: Trial, suspect: str) -> dict[str, Any]:
    """Return what the two tests say of one suspect."""
    examination, learnt = trial.ask(suspect)
    key = trial.marker.key_
    test = DecoyTest(examination.scores())
    targets = key.provider_targets()  # looked up after the scores are there
    goals = examination.pool_answers[list(targets)]
    inside = [examination.inside(place) for place in range(len(key.regions))]
    paper = paper_statistics(inside, examination.outside(), goals)
    root = float(np.sqrt(len(targets)))
    return {
        "fidelity": learnt,
        "decoy_u": float(test.totals(np.array([targets]))[0]) / root,
        "decoy_p": test.p_value(targets),
        "paper_p": paper.p_value,
        "paper_copy": paper.copy,
        "redrawn": redrawn(test, examination, trial.seed) if suspect in INNOCENTS else None,
    }


def redrawn(test: DecoyTest, examination: Examination, seed: int) -> float:
    """Return how often random targets would have been convicted: a check of the p-value, for one set of answers."""
    rng = np.random.default_rng([seed, 11])
    tuples = rng.integers(test.pool_size, size=(REDRAWS, len(examination.regions)))
    ordered = np.sort(tuples, axis=1)
    distinct = (ordered[:, 1:] != ordered[:, :-1]).all(axis=1)
    return float(np.mean(test.p_values(tuples[distinct]) <= LEVEL))


def run(options: argparse.Namespace, setting: Setting, keys: range) -> list[Row]:
    """Judge every suspect under every key that is not judged yet, and return all rows of the setting."""
    log, fixed = Log(options.out / "rows.jsonl", quiet=True), {"setting": asdict(setting)}
    left = [(key, suspect) for key in keys for suspect in SUSPECTS if not log.has(**fixed, key=key, suspect=suspect)]
    corpus = load_corpus(options.corpus, options.data_dir, options.features, options.feature_cache) if left else None
    for key in dict.fromkeys(key for key, _ in left):
        trial = Trial(corpus, setting, key)
        for suspect in (suspect for other, suspect in left if other == key):
            started = time.perf_counter()
            log.once({**fixed, "key": key, "suspect": suspect}, lambda t=trial, s=suspect: judge(t, s))
            p = log.rows[-1]["decoy_p"]
            print(f"key {key}, {suspect}: p {p:.1e}, {time.perf_counter() - started:.1f} s", flush=True)
    return [row for row in log.of(**fixed) if row["key"] in keys]


def table(rows: Sequence[Row]) -> str:
    """Return the table of all finished rows, one line per suspect: the exact statistic beside the paper's p."""
    lines = []
    for suspect in SUSPECTS:
        found = [row for row in rows if row["suspect"] == suspect]
        if found:
            kind = "innocent" if suspect in INNOCENTS else "copy"
            lines.append([f"{kind}: {suspect}", *_cells(found)])
    return markdown(HEAD, lines) + "\n"


def _cells(found: Sequence[Row]) -> list[str]:
    learnt = [row["fidelity"] for row in found if row["fidelity"] is not None]
    redrawn = [row["redrawn"] for row in found if row["redrawn"] is not None]
    return [
        f"{np.mean(learnt):.3f}" if learnt else "",
        str(len(found)),
        _mean(found, "decoy_u"),
        _count(found, "decoy_p"),
        f"{np.median([row['paper_p'] for row in found]):.0e}",
        _count(found, "paper_p"),
        f"{sum(row['paper_copy'] for row in found)}",
        f"{np.mean(redrawn):.5f}" if redrawn else "",
    ]


def _mean(found: Sequence[Row], name: str) -> str:
    values = np.array([row[name] for row in found])
    error = f" ± {values.std(ddof=1) / np.sqrt(len(values)):.2f}" if len(values) > 1 else ""
    return f"{values.mean():.2f}{error}"


def _count(found: Sequence[Row], name: str) -> str:
    return str(sum(row[name] <= LEVEL for row in found))


def main() -> None:
    smoke = {"features": "wordllama", "keys": 1, "queries": 500, "budget": 500, "pool": 128, "hidden": 32}
    parser = Command(__doc__, PAGE, data=True, smoke=smoke)
    parser.add_argument("--features", help="the thief's encoder: a sentence-transformers name or folder")
    parser.add_argument("--feature-cache", type=Path, help="an .npz to read its features from, or to write them to")
    parser.add_argument("--out", type=Path, default=Path("out/statistic"))
    parser.add_argument("--keys", type=int, default=8)
    parser.add_argument("--first-key", type=int, default=0)
    parser.add_argument("--corpus", default="sst2")
    parser.add_argument("--queries", type=int, default=5000, help="how many texts the thief buys")
    parser.add_argument("--strength", type=float, default=0.2)
    parser.add_argument("--subspace", type=int, help="k; the package's default unless given")
    parser.add_argument("--budget", type=int, default=3000, help="how many texts a suspect is asked, pool included")
    parser.add_argument("--pool", type=int, default=POOL)
    parser.add_argument("--hidden", type=int, default=2048, help="units of the thief's head")
    options = parser.read()
    if options.features is None and options.feature_cache is None:
        parser.error("name the thief's encoder: --features NAME, or a --feature-cache that holds its features")
    setting = Setting(
        corpus=options.corpus,
        features=Path(options.features or options.feature_cache).name,
        queries=options.queries,
        strength=options.strength,
        subspace=options.subspace,
        budget=options.budget,
        hidden=options.hidden,
        pool=options.pool,
    )
    text = table(run(options, setting, range(options.first_key, options.first_key + options.keys)))
    (options.out / "table.md").write_text(text)
    print(f"\n{text}", end="")


if __name__ == "__main__":
    main()
