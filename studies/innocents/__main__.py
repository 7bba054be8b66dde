"""Does the verdict convict the innocent? A thousand keys, encoders that never saw a marked vector.

    python -m studies.innocents --data-dir DIR --out DIR [--models DIR]

The data folder holds `sst2.parquet` (column text) and `provider_mpnet768_sst2.npz` (rows, embeddings). The seeds of the
keys are 0, 1, 2, ..: fixed beforehand, none left out, none drawn again. Keys have the package's defaults (pool 1024,
reservoir 4096, three trigger regions), suspects are asked 3,000 texts. See suspects.py and further.py (--models) for
who they are, sabotage.py for the verifiers that have to fail, judging.py for what is computed. The thief's own key
comes last, as a control.

Every key is a line of rows.jsonl in the output folder, whole or not there, so a run that was stopped goes on where it
was. summary.md and uniformity.png are made from these lines, at any time, with --summary alone.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

from regionmarker.verification.decoy1 import STATISTIC
from regionmarker.verification.questions import DEFAULT_BUDGET
from studies._study import Command, Log, key_settings
from studies.innocents.judging import REDRAWS, TENANTS, judge_key
from studies.innocents.summary import write_summary
from studies.innocents.suspects import QUERIES, THIEFS_KEY, load_answers, load_corpus

PAGE = "docs/results/false-positives.md"

SETTING = {
    "statistic": STATISTIC,
    "budget": DEFAULT_BUDGET,
    "redraws": REDRAWS,
    "tenants": len(TENANTS),
}


def run(options: argparse.Namespace, log: Log, setting: dict[str, object]) -> None:
    """Judge every key that is not judged yet."""
    left = [seed for seed in (*range(options.keys), THIEFS_KEY) if not log.has(setting=setting, seed=seed)]
    if not left:
        return
    corpus = load_corpus(options.data_dir, options.queries, key_settings(options))
    answers = load_answers(corpus, options.minilm, options.paraphrase, options.out, options.hidden)
    if options.models is not None:
        from studies.innocents.further import further_answers

        answers |= further_answers(corpus, options.data_dir, options.models, options.out, options.epochs)
    started = time.monotonic()
    for number, seed in enumerate(left, start=1):
        log.once({"setting": setting, "seed": seed}, lambda seed=seed: judge_key(corpus, answers, seed))
        each = (time.monotonic() - started) / number
        minutes = each * (len(left) - number) / 60
        print(f"key {seed}: {each:.1f} s per key, {len(left) - number} left, {minutes:.0f} minutes", flush=True)


def main() -> None:
    smoke = {"keys": 1, "queries": 500, "minilm": "wordllama", "paraphrase": "wordllama", "hidden": 32}
    parser = Command(__doc__, PAGE, data=True, smoke=smoke)
    parser.add_argument("--out", type=Path, default=Path("out/innocents"))
    parser.add_argument("--keys", type=int, default=1000)
    parser.add_argument("--queries", type=int, default=QUERIES, help="texts that the copies learn from")
    parser.add_argument("--minilm", default="sentence-transformers:all-MiniLM-L6-v2", help="an encoder's spec")
    parser.add_argument(
        "--paraphrase",
        default="sentence-transformers:paraphrase-MiniLM-L3-v2",
        help="an encoder's spec, or onnx:MODEL.onnx#tokenizer.json",
    )
    parser.add_argument("--hidden", type=int, default=2048, help="units of the copies' heads")
    parser.add_argument("--models", type=Path, help="a folder of models: judges further encoders and tuned students")
    parser.add_argument("--epochs", type=int, default=3, help="passes of the students")
    parser.add_argument("--summary", action="store_true", help="judge nothing, only write the tables and the figure")
    options = parser.read()
    setting = {**SETTING, "queries": options.queries}
    if options.models is not None:  # rows of one log have the same suspects
        setting |= {"models": options.models.name, "epochs": options.epochs}
    log = Log(options.out / "rows.jsonl", quiet=True)
    if not options.summary:
        run(options, log, setting)
    rows = log.of(setting=setting)
    control = [row for row in rows if row["seed"] == THIEFS_KEY]
    write_summary([row for row in rows if row["seed"] < options.keys], control, options.out)
    print((options.out / "summary.md").read_text())


if __name__ == "__main__":
    main()
