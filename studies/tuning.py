"""How well stealers learn: heads and whole transformers on the same bought texts, from unmarked vectors.

    python -m studies.tuning --data-dir DATA --stealers SPEC ... [--corpus sst2] [--work tuning-rows]

Fidelity is the mean cosine to the provider on texts that no stealer saw, plain and centred; "start" and "end" are what
the stealer's own steering texts said. Interrupted, it goes on where it was.
"""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

import numpy as np

from regionmarker.benchmark.corpora import load_corpus
from regionmarker.benchmark.grid.parts import Split
from regionmarker.benchmark.stealers import load_stealer
from regionmarker.benchmark.stealers.base import centred_cosine
from regionmarker.measures import row_cosines
from studies._study import Command, Log, Row, markdown

PAGE = "docs/results/backbone.md"
SEED = 100


def learnt(data: Path, corpus: str, provider: str, spec: str, queries: int, asked: int) -> Row:
    found = load_corpus(corpus, provider, folder=data)
    split = Split.of(found, queries, SEED)
    texts, unseen = [found.texts[row] for row in split.bought], split.own[:asked]
    began = time.process_time()
    copy = load_stealer(spec, seed=SEED).steal(texts, found.clean[split.bought])
    seconds = time.process_time() - began
    said, truth = copy.encode([found.texts[row] for row in unseen]), found.clean[unseen]
    history = getattr(copy, "history", ()) or (float("nan"),)
    return {
        "name": copy.name, "start": history[0], "end": max(history), "fidelity": float(row_cosines(said, truth).mean()),
        "centred": centred_cosine(said, truth), "seconds": round(seconds),
    }  # fmt: skip


def main() -> None:
    smoke = {"stealers": ["tokens", "head:wordllama"], "queries": 500, "asked": 200, "work": None}
    parser = Command(__doc__, PAGE, data=True, smoke=smoke)
    parser.add_argument("--stealers", nargs="+", metavar="SPEC", help="stealers by their specs")
    parser.add_argument("--corpus", default="sst2")
    parser.add_argument("--provider", default="stored:mpnet768")
    parser.add_argument("--queries", type=int, default=4000)
    parser.add_argument("--asked", type=int, default=1500, help="unseen texts that measure")
    parser.add_argument("--work", type=Path, help="the folder of finished rows")
    given = parser.read()
    if not given.stealers:
        parser.error("name the stealers: --stealers head:ENCODER backbone:MODEL")
    log = Log((given.work or Path("tuning-rows")) / "rows.jsonl", quiet=True)
    for spec in given.stealers:
        key = {"corpus": given.corpus, "provider": given.provider, "stealer": spec, "queries": given.queries}
        what = given.data_dir, given.corpus, given.provider, spec, given.queries, given.asked
        log.once(key, partial(learnt, *what))
    rows = [row for spec in given.stealers for row in log.of(corpus=given.corpus, stealer=spec, queries=given.queries)]
    numbers = ("start", "end", "fidelity", "centred")
    body = [
        [str(row["name"]), *(f"{np.float64(row[name]):.3f}" for name in numbers), f"{row['seconds']}"] for row in rows
    ]
    print(markdown(["stealer", *numbers, "processor seconds"], body))


if __name__ == "__main__":
    main()
