"""Which thieves are caught? Detection at level 1e-3 over the fidelity of the copy, before and after dimension attacks.

    python -m studies.detection --data-dir DIR --features all-MiniLM-L6-v2 --keys 20 --out DIR

Corpus, keys, thieves and attacks are those of trial.py. Students differ in how many texts they buy and in what their
head sees: a public encoder's features, as a thief would have them, or the provider's own clean vectors cut to some
width. No thief has the latter; they stand for better students than this machine can train. Some rows vary the
number R of trigger regions. An innocent, the public encoder itself, is judged under the same keys.

Every (student, key) is a line of rows.jsonl in the output folder, so a run that was stopped goes on where it was;
detection.md and detection.png are made from these lines, at any time, with --summary alone.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

from regionmarker.verification.decoy_test import DecoyTest
from studies._study import Command, Log
from studies.detection.curve import write_curve
from studies.detection.trial import ATTACKS, POOL, Setting, Trial, load_corpus

PAGE = "docs/results/detection.md"

STUDENTS: dict[str, dict[str, Any]] = {
    "public features, 800 queries": {"queries": 800},
    "public features, 1,500 queries": {"queries": 1500},
    "public features, 5,000 queries": {"queries": 5000},
    "provider cut to 128, 1,500 queries": {"queries": 1500, "projection": 128, "hidden": 1024},
    "provider cut to 192, 1,500 queries": {"queries": 1500, "projection": 192, "hidden": 1024},
    "provider cut to 192, 5,000 queries": {"queries": 5000, "projection": 192, "hidden": 1024},
    "provider cut to 384, 1,500 queries": {"queries": 1500, "projection": 384, "hidden": 1024},
    "public features, 1,500 queries, R = 5": {"queries": 1500, "ratio": 5 / 16},
    "public features, 1,500 queries, R = 6": {"queries": 1500, "ratio": 6 / 16},
}
SMOKE_STUDENTS: dict[str, dict[str, Any]] = {
    "public features, 500 queries": {"queries": 500, "hidden": 32},
    "provider cut to 32, 500 queries": {"queries": 500, "projection": 32, "hidden": 32},
}
INNOCENT = "features"


def judge(trial: Trial) -> dict[str, Any]:
    """Return the p-values of the copy, attacked and not, and of an innocent, under one key."""
    p_values: dict[str, float] = {}
    for suspect in (*ATTACKS, INNOCENT):
        examination, _ = trial.ask(suspect)
        test = DecoyTest(examination.scores())
        p_values[suspect] = test.p_value(trial.marker.key_.provider_targets())  # looked up after the scores
    return {"fidelity": trial.copy.fidelity.cosine, "p": p_values}


def run(options: argparse.Namespace, log: Log, students: dict[str, dict[str, Any]]) -> None:
    """Judge every (student, key) that is not judged yet."""
    pairs = [(name, key) for name in students for key in range(options.keys)]
    left = [(name, key) for name, key in pairs if not log.has(student=name, key=key)]
    if not left:
        return
    corpus = load_corpus("sst2", options.data_dir, options.features, options.feature_cache)
    started = time.monotonic()
    for number, (name, key) in enumerate(left, start=1):
        setting = Setting(corpus="sst2", features="public", pool=options.pool, **students[name])
        log.once({"student": name, "key": key}, lambda setting=setting, key=key: judge(Trial(corpus, setting, key)))
        minutes = (time.monotonic() - started) / number * (len(left) - number) / 60
        print(f"{name}, key {key}: {len(left) - number} left, {minutes:.0f} minutes", flush=True)


def main() -> None:
    parser = Command(__doc__, PAGE, data=True, smoke={"features": "wordllama", "keys": 1, "pool": 128})
    parser.add_argument("--features", help="the thief's encoder: a sentence-transformers name or folder")
    parser.add_argument("--feature-cache", type=Path, help="an .npz to read its features from, or to write them to")
    parser.add_argument("--out", type=Path, default=Path("out/detection"))
    parser.add_argument("--keys", type=int, default=20)
    parser.add_argument("--pool", type=int, default=POOL)
    parser.add_argument("--summary", action="store_true", help="judge nothing, only write the table and the figure")
    options = parser.read()
    students = SMOKE_STUDENTS if options.smoke else STUDENTS
    log = Log(options.out / "rows.jsonl", quiet=True)
    if not options.summary:
        run(options, log, students)
    write_curve([row for row in log.rows if row["key"] < options.keys], list(students), options.out)
    print((options.out / "detection.md").read_text())


if __name__ == "__main__":
    main()
