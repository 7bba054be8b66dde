"""Which `subspace` k should a key have by default? The study behind docs/results/subspace.md.

    python -m studies.subspace --data-dir DIR --out DIR [--minilm MODEL] [--tasks balance] [--keys 8]

DIR of the data holds, for every corpus, `NAME.parquet` (column text), `provider_mpnet768_NAME.npz` (rows, embeddings),
`paraphrases_NAME.parquet` (column row) and `paraphrases_mpnet768_NAME.npz` (embeddings). Every finished (task, corpus,
space, seed) is a line of rows.jsonl in the output folder, so a run that was stopped goes on where it was; tables.md,
the CSV files and the figure are made from these lines.

Outsiders and thieves use public encoders: WordLlama, whose weights come in its wheel, and with `--minilm` a model of
sentence-transformers as well, such as `all-MiniLM-L6-v2` or a folder that holds it.
"""

from __future__ import annotations

import argparse
import time
from functools import partial
from pathlib import Path

from studies._study import Command, Log
from studies.subspace import experiments
from studies.subspace.corpora import NAMES, load_corpus
from studies.subspace.tables import SPACES, report

PAGE = "docs/results/subspace.md"

TASKS = {
    "balance": experiments.balance,
    "utility": experiments.utility,
    "power": experiments.power,
    "angles": experiments.angles,
    "angles_more": experiments.angles_more,
    "control": experiments.control,
}
PRIVATE = ("balance", "utility")  # no public encoder takes part


def arguments() -> argparse.Namespace:
    smoke = {"tasks": "balance,utility,power", "corpora": "sst2,mind", "spaces": "4,32", "keys": 1, "pool": 128}
    parser = Command(__doc__, PAGE, data=True, smoke=smoke)
    parser.add_argument("--out", type=Path, default=Path("out/subspace"))
    parser.add_argument("--cache", type=Path, help="public encoders' vectors; OUT/cache unless given")
    parser.add_argument("--minilm", help="a second public encoder: a sentence-transformers name or folder")
    parser.add_argument("--tasks", default="balance,utility,power,angles,control", help=f"of {', '.join(TASKS)}")
    parser.add_argument("--corpora", default=",".join(NAMES))
    parser.add_argument("--spaces", default=",".join(SPACES), help="k, or full, or raw (full and not centred)")
    parser.add_argument("--keys", type=int, default=8)
    parser.add_argument("--pool", type=int, default=1024, help="texts that may be targets")
    parser.add_argument("--summary", action="store_true", help="only make the tables again from rows.jsonl")
    options = parser.read()
    for given, known in ((options.tasks, TASKS), (options.corpora, NAMES), (options.spaces, SPACES)):
        for name in given.split(","):
            if name not in known:
                parser.error(f"{name!r} is none of {', '.join(known)}")
    options.cache = options.cache or options.out / "cache"
    return options


def run(options: argparse.Namespace) -> None:
    log = Log(options.out / "rows.jsonl", quiet=True)
    for name in options.corpora.split(","):
        corpus = load_corpus(name, options.data_dir, options.cache, options.minilm, options.pool)
        for task in options.tasks.split(","):
            public = "" if task in PRIVATE else corpus.public_name
            jobs = [(seed, space) for seed in range(options.keys) for space in options.spaces.split(",")]
            for seed, space in jobs:
                if (task, space) in experiments.LEFT_OUT:
                    continue
                started = time.time()
                key = {"task": task, "public": public, "corpus": name, "space": space, "seed": seed}
                log.once(key, partial(TASKS[task], corpus, space, seed))
                print(task, public, name, space, seed, f"{time.time() - started:.1f} s", flush=True)


def main() -> None:
    options = arguments()
    options.out.mkdir(parents=True, exist_ok=True)
    if not options.summary:
        options.cache.mkdir(parents=True, exist_ok=True)
        run(options)
    report(options.out)


if __name__ == "__main__":
    main()
