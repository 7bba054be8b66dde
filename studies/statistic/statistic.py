"""How powerful is `decoy-1`? A thief with a head on a public encoder's features, before and after dimension attacks.

    python studies/statistic/statistic.py --data-dir DIR --features all-MiniLM-L6-v2 --keys 8 --out DIR

The data folder holds `NAME.parquet` (column text) and `provider_mpnet768_NAME.npz` (rows, embeddings). For every key
the corpus is divided anew: the thief buys --queries texts, the key is made from the others. Beside the thief's copy,
four innocents are asked. Each gets three judgements: `decoy-1`, the prototype that it replaced, the paper's statistics.

Every (key, suspect) is a line of rows.jsonl in the output folder, so a run that was stopped goes on where it was;
table.md is made from these lines. With a --feature-cache that exists, torch and sentence-transformers are not needed.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy

import numpy as np
from prototype import prototype_scores
from scenes import ATTACKS, INNOCENTS, Scene, Setting, load_corpus
from tables import LEVEL, markdown

from regionmarker.verification.decoy_test import DecoyTest
from regionmarker.verification.examination import Examination
from regionmarker.verification.paper_statistics import paper_statistics

SUSPECTS = (*ATTACKS, *INNOCENTS)
REDRAWS = 100_000


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    data = os.environ.get("REGIONMARKER_DATA")
    parser.add_argument("--data-dir", type=Path, default=data, help="or REGIONMARKER_DATA")
    parser.add_argument("--features", help="the thief's encoder: a sentence-transformers name or folder")
    parser.add_argument("--feature-cache", type=Path, help="an .npz to read its features from, or to write them to")
    parser.add_argument("--out", type=Path, default=Path("out/statistic"))
    parser.add_argument("--keys", type=int, default=8)
    parser.add_argument("--first-key", type=int, default=0)
    parser.add_argument("--corpus", default="sst2")
    parser.add_argument("--queries", type=int, default=5000, help="how many texts the thief buys")
    parser.add_argument("--strength", type=float, default=0.2)
    parser.add_argument("--subspace", type=int, help="k; the package's default unless told")
    parser.add_argument("--budget", type=int, default=3000, help="how many texts a suspect is asked, pool included")
    options = parser.parse_args()
    if options.data_dir is None:
        parser.error("name the folder of the corpora: --data-dir DIR, or REGIONMARKER_DATA")
    if options.features is None and options.feature_cache is None:
        parser.error("name the thief's encoder: --features NAME, or a --feature-cache that holds its features")
    return options


def judge(scene: Scene, suspect: str) -> dict[str, Any]:
    """Return what the three tests say of one suspect."""
    examination, learnt = scene.ask(suspect)
    key = scene.marker.key_
    new, old = DecoyTest(examination.scores()), DecoyTest(prototype_scores(examination))
    targets = key.provider_targets()  # looked up after the scores are there
    goals = examination.pool_answers[list(targets)]
    inside = [examination.inside(region) for region in key.mark.regions]
    paper = paper_statistics(inside, examination.outside(), goals)
    root = float(np.sqrt(len(targets)))
    return {
        "fidelity": learnt,
        "decoy_u": float(new.totals(np.array([targets]))[0]) / root,
        "decoy_p": new.p_value(targets),
        "prototype_u": float(old.totals(np.array([targets]))[0]) / root,
        "prototype_p": old.p_value(targets),
        "paper_p": paper.p_value,
        "paper_copy": paper.copy,
        "redrawn": redrawn(new, examination, scene.seed) if suspect in INNOCENTS else None,
    }


def redrawn(test: DecoyTest, examination: Examination, seed: int) -> float:
    """Return how often random targets would have been convicted: a check of the p-value, for one set of answers."""
    rng = np.random.default_rng([seed, 11])
    tuples = rng.integers(test.pool_size, size=(REDRAWS, len(examination.regions)))
    ordered = np.sort(tuples, axis=1)
    distinct = (ordered[:, 1:] != ordered[:, :-1]).all(axis=1)
    return float(np.mean(test.p_values(tuples[distinct]) <= LEVEL))


def finished(path: Path) -> list[dict[str, Any]]:
    """Return the rows that are there; a line that a killed run left half-written is removed."""
    rows = []
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return rows


def run(options: argparse.Namespace, setting: Setting, keys: range) -> list[dict[str, Any]]:
    """Judge every suspect under every key that is not judged yet, and return all rows of the setting."""
    path = options.out / "rows.jsonl"
    rows = [row for row in finished(path) if row["setting"] == asdict(setting) and row["key"] in keys]
    done = {(row["key"], row["suspect"]) for row in rows}
    left = {key: [suspect for suspect in SUSPECTS if (key, suspect) not in done] for key in keys}
    if not any(left.values()):
        return rows
    corpus = load_corpus(options.corpus, options.data_dir, options.features, options.feature_cache)
    for key, suspects in left.items():
        if not suspects:
            continue
        scene = Scene(corpus, setting, key)
        for suspect in suspects:
            started = time.perf_counter()
            row = {"setting": asdict(setting), "key": key, "suspect": suspect, **judge(scene, suspect)}
            rows.append(row)
            with path.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(f"key {key}, {suspect}: p {row['decoy_p']:.1e}, {time.perf_counter() - started:.1f} s", flush=True)
    return rows


def main() -> None:
    options = arguments()
    setting = Setting(
        corpus=options.corpus,
        features=Path(options.features or options.feature_cache).name,
        queries=options.queries,
        strength=options.strength,
        subspace=options.subspace,
        budget=options.budget,
    )
    options.out.mkdir(parents=True, exist_ok=True)
    rows = run(options, setting, range(options.first_key, options.first_key + options.keys))
    table = markdown(rows, SUSPECTS, INNOCENTS)
    (options.out / "table.md").write_text(table)
    print(f"\n{table}", end="")


if __name__ == "__main__":
    main()
