"""Does the verdict convict the innocent? A thousand keys, seven encoders that never saw a marked vector.

    python -m studies.innocents --data-dir DIR --out DIR [--models DIR]

The data folder holds `sst2.parquet` (text, label) and `provider_mpnet768_sst2.npz` (rows, embeddings). The seeds of
the keys are 0, 1, 2, ..: fixed beforehand, none left out, none drawn again. Keys have the package's defaults: the
graded mark, tenants on. Suspects are asked 3,000 texts, and all 4,096 probes where their axes are unknown. See
suspects.py for who they are, keys.py for how keys are made, sabotage.py for the verifiers that have to fail, judging.py
for what is computed. The thief's own key comes last, as a control.

Every key is a line of rows-I-of-N.jsonl in the output folder, whole or not there, so a run that was stopped goes on
where it was; --shard I/N judges every N-th key, for several processes at a time. summary.md and
uniformity.png are made from these lines, at any time, with --summary alone.
"""

from __future__ import annotations

import argparse
import json
import time
from functools import partial
from pathlib import Path

from regionmarker.verification.decoy2 import STATISTIC
from regionmarker.verification.questions import DEFAULT_BUDGET
from studies._study import Command, Log, Row
from studies.innocents.judging import REDRAWS, TENANTS, judge_key
from studies.innocents.keys import Keys
from studies.innocents.summary import write_summary
from studies.innocents.suspects import PROVIDERS, QUERIES, THIEFS_KEY, forms_of, load_answers, load_corpus

PAGE = "docs/results/false-positives.md"

SETTING = {
    "statistic": STATISTIC,
    "budget": DEFAULT_BUDGET,
    "redraws": REDRAWS,
    "tenants": len(TENANTS),
}


def run(options: argparse.Namespace, log: Log, setting: dict[str, object]) -> None:
    """Judge every key that is not judged yet."""
    mine, shards = options.shard
    seeds = [*range(options.keys), THIEFS_KEY][mine::shards]
    done = {row["seed"] for row in finished(options.out) if row["setting"] == setting}  # by whatever shards
    left = [seed for seed in seeds if seed not in done]
    if not left:
        return
    corpus = load_corpus(options.data_dir, options.queries, options.provider)
    cache = options.out / options.provider
    cache.mkdir(parents=True, exist_ok=True)
    answers, keys = load_answers(corpus, options.minilm, options.paraphrase, cache, options.hidden), Keys(corpus)
    if options.models is not None:
        from studies.innocents.further import further_answers

        further = further_answers(corpus, options.data_dir, options.models, cache, options.epochs)
        answers |= forms_of(further, corpus)
    started = time.process_time()
    for number, seed in enumerate(left, start=1):
        made = partial(judge_key, corpus, answers, keys.made(seed), seed)
        log.once({"setting": setting, "seed": seed}, made)
        each, rest = (time.process_time() - started) / number, len(left) - number
        print(f"key {seed}: {each:.2f} s of a core per key, {rest} left, {each * rest / 60:.0f} minutes", flush=True)


def finished(folder: Path) -> list[Row]:
    """Read the rows of all shards, some of which may still be at work."""
    lines = [line for path in folder.glob("rows-*.jsonl") for line in path.read_text().split("\n")[:-1]]
    return sorted((json.loads(line) for line in lines), key=lambda row: row["seed"])


def shard(text: str) -> tuple[int, int]:
    """Read I/N.

    Examples
    --------
    >>> shard("1/3")
    (1, 3)
    """
    mine, _, shards = text.partition("/")
    if not 0 <= int(mine) < int(shards):
        raise ValueError(text)
    return int(mine), int(shards)


def main() -> None:
    smoke = {"keys": 2, "queries": 500, "minilm": "wordllama", "paraphrase": "wordllama", "hidden": 32}
    parser = Command(__doc__, PAGE, data=True, smoke=smoke)
    parser.add_argument("--out", type=Path, default=Path("out/innocents"))
    parser.add_argument("--provider", choices=PROVIDERS, default=PROVIDERS[0], help="whose vectors keys are made of")
    parser.add_argument("--keys", type=int, default=1000)
    parser.add_argument("--shard", type=shard, default=(0, 1), metavar="I/N", help="every N-th key, from the I-th on")
    parser.add_argument("--queries", type=int, default=QUERIES, help="texts that the copies learn from")
    parser.add_argument("--minilm", default="all-MiniLM-L6-v2", help="an encoder's spec, name or folder")
    parser.add_argument("--paraphrase", default="paraphrase-MiniLM-L3-v2", help="an encoder's spec, name or folder")
    parser.add_argument("--hidden", type=int, default=2048, help="units of the copies' heads")
    parser.add_argument("--models", type=Path, help="a folder of models: judges further encoders and tuned students")
    parser.add_argument("--epochs", type=int, default=3, help="passes of the students")
    parser.add_argument("--summary", action="store_true", help="judge nothing, only write the tables and the figure")
    options = parser.read()
    setting = {**SETTING, "provider": options.provider, "queries": options.queries}
    if options.models is not None:  # rows of one log have the same suspects
        setting |= {"models": options.models.name, "epochs": options.epochs}
    if not options.summary:
        mine, shards = options.shard
        run(options, Log(options.out / f"rows-{mine}-of-{shards}.jsonl", quiet=True), setting)
    rows = [row for row in finished(options.out) if row["setting"] == setting]
    control = [row for row in rows if row["seed"] == THIEFS_KEY]
    write_summary([row for row in rows if row["seed"] < options.keys], control, options.out)
    print((options.out / "summary.md").read_text())


if __name__ == "__main__":
    main()
