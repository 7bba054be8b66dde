"""Does the verdict convict the innocent? A thousand keys, seven encoders that never saw a marked vector.

    python studies/innocents/innocents.py --data-dir DIR --out DIR

The data folder holds `sst2.parquet` (column text) and `provider_mpnet768_sst2.npz` (rows, embeddings). The seeds of the
keys are 0, 1, 2, ..: fixed beforehand, none left out, none drawn again. Keys have the package's defaults (pool 1024,
reservoir 4096, three trigger regions), suspects are asked 3,000 texts. See suspects.py for who they are, sabotage.py
for the verifiers that have to fail, judging.py for what is computed. The thief's own key comes last, as a control.

Every key is a line of rows.jsonl in the output folder, whole or not there, so a run that was stopped goes on where it
was. summary.md and uniformity.png are made from these lines, at any time, with --summary alone.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy

from judging import REDRAWS, TENANTS, judge_key
from suspects import QUERIES, THIEFS_KEY, load_answers, load_corpus

from regionmarker.verification.decoy1 import STATISTIC
from regionmarker.verification.questions import DEFAULT_BUDGET

SETTING = {
    "statistic": STATISTIC,
    "budget": DEFAULT_BUDGET,
    "redraws": REDRAWS,
    "tenants": len(TENANTS),
    "queries": QUERIES,
}


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    data = os.environ.get("REGIONMARKER_DATA")
    parser.add_argument("--data-dir", type=Path, default=data, help="or REGIONMARKER_DATA")
    parser.add_argument("--out", type=Path, default=Path("out/innocents"))
    parser.add_argument("--keys", type=int, default=1000)
    parser.add_argument("--minilm", default="sentence-transformers:all-MiniLM-L6-v2", help="an encoder's spec")
    parser.add_argument(
        "--paraphrase",
        default="sentence-transformers:paraphrase-MiniLM-L3-v2",
        help="an encoder's spec, or onnx:MODEL.onnx#tokenizer.json",
    )
    parser.add_argument("--summary", action="store_true", help="judge nothing, only write the tables and the figure")
    options = parser.parse_args()
    if options.data_dir is None and not options.summary:
        parser.error("name the folder of the corpora: --data-dir DIR, or REGIONMARKER_DATA")
    return options


def finished(path: Path) -> list[dict[str, Any]]:
    """Return the keys that are done under this setting; a half-written line of a killed run does not count."""
    rows = []
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return [row for row in rows if row["setting"] == SETTING]


def run(options: argparse.Namespace, path: Path) -> None:
    """Judge every key that is not judged yet."""
    rows = finished(path)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))  # without what a kill cut off
    done = {row["seed"] for row in rows}
    left = [seed for seed in (*range(options.keys), THIEFS_KEY) if seed not in done]
    if not left:
        return
    corpus = load_corpus(options.data_dir)
    answers = load_answers(corpus, options.minilm, options.paraphrase, options.out)
    started = time.monotonic()
    for number, seed in enumerate(left, start=1):
        row = {"setting": SETTING, **judge_key(corpus, answers, seed)}
        with path.open("a") as file:
            file.write(json.dumps(row) + "\n")
        each = (time.monotonic() - started) / number
        minutes = each * (len(left) - number) / 60
        print(f"key {seed}: {each:.1f} s a key, {len(left) - number} left, {minutes:.0f} minutes", flush=True)


def main() -> None:
    options = arguments()
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "rows.jsonl"
    if not options.summary:
        run(options, path)
    from summary import write_summary

    rows = finished(path)
    control = [row for row in rows if row["seed"] == THIEFS_KEY]
    write_summary([row for row in rows if row["seed"] < options.keys], control, options.out)
    print((options.out / "summary.md").read_text())


if __name__ == "__main__":
    main()
