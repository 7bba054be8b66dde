"""Which `subspace` k should a key have by default? The study behind docs/results/subspace.md.

    python studies/subspace/subspace.py --data-dir DIR --out DIR [--minilm MODEL] [--tasks balance] [--keys 8]

DIR of the data holds, for every corpus, `NAME.parquet` (column text), `provider_mpnet768_NAME.npz` (rows, embeddings),
`paraphrases_NAME.parquet` (column row) and `paraphrases_mpnet768_NAME.npz` (embeddings). Every finished (task, corpus,
space, seed) is a line of rows.jsonl in the output folder, so a run that was stopped goes on where it was; tables.md,
the CSV files and the figure are made from these lines.

Outsiders and thieves use public encoders: WordLlama, whose weights come in its wheel, and with `--minilm` a model of
sentence-transformers as well, such as `all-MiniLM-L6-v2` or a folder that holds it.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before NumPy; the budgets are CPU seconds of one thread

import experiments
from corpora import NAMES, load_corpus
from tables import SPACES, report

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
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--data-dir", type=Path, default=os.environ.get("REGIONMARKER_DATA"), help="or REGIONMARKER_DATA"
    )
    parser.add_argument("--out", type=Path, default=Path("out/subspace"))
    parser.add_argument("--cache", type=Path, help="public encoders' vectors; OUT/cache unless told")
    parser.add_argument("--minilm", help="a second public encoder: a sentence-transformers name or folder")
    parser.add_argument("--tasks", default="balance,utility,power,angles,control", help=f"of {', '.join(TASKS)}")
    parser.add_argument("--corpora", default=",".join(NAMES))
    parser.add_argument("--spaces", default=",".join(SPACES), help="k, or full, or raw (full and not centred)")
    parser.add_argument("--keys", type=int, default=8)
    parser.add_argument("--report-only", action="store_true", help="make the tables again from rows.jsonl")
    options = parser.parse_args()
    if options.data_dir is None and not options.report_only:
        parser.error("name the folder of the corpora: --data-dir DIR, or REGIONMARKER_DATA")
    for given, known in ((options.tasks, TASKS), (options.corpora, NAMES), (options.spaces, SPACES)):
        for name in given.split(","):
            if name not in known:
                parser.error(f"{name!r} is none of {', '.join(known)}")
    options.cache = options.cache or options.out / "cache"
    return options


def finished(path: Path) -> set[tuple[str, str, str, str, int]]:
    if not path.exists():
        return set()
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return {(r["task"], r["public"], r["corpus"], r["space"], r["seed"]) for r in rows}


def run(options: argparse.Namespace) -> None:
    rows = options.out / "rows.jsonl"
    done = finished(rows)
    for name in options.corpora.split(","):
        corpus = load_corpus(name, options.data_dir, options.cache, options.minilm)
        for task in options.tasks.split(","):
            public = "" if task in PRIVATE else corpus.public_name
            jobs = [(seed, space) for seed in range(options.keys) for space in options.spaces.split(",")]
            for seed, space in jobs:
                if (task, public, name, space, seed) in done or (task, space) in experiments.LEFT_OUT:
                    continue
                started = time.time()
                result = TASKS[task](corpus, space, seed)
                line = {"task": task, "public": public, "corpus": name, "space": space, "seed": seed, **result}
                with rows.open("a") as file:
                    file.write(json.dumps(line) + "\n")
                print(task, public, name, space, seed, f"{time.time() - started:.1f} s", flush=True)


def main() -> None:
    options = arguments()
    options.out.mkdir(parents=True, exist_ok=True)
    if not options.report_only:
        options.cache.mkdir(parents=True, exist_ok=True)
        run(options)
    report(options.out)


if __name__ == "__main__":
    main()
