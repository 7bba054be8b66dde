"""Which thieves are caught? Detection at level 1e-3 over the fidelity of the copy, before and after dimension attacks.

    python studies/statistic/detection.py --data-dir DIR --features all-MiniLM-L6-v2 --keys 20 --out DIR

Corpus, keys, thieves and attacks are those of scenes.py. Students differ in how many texts they buy and in what their
head sees: a public encoder's features, as a thief would have them, or the provider's own clean vectors cut to some
width. No thief has the latter; they stand for better students than this machine can train. Some rows vary the
number R of trigger regions. An innocent, the public encoder itself, is judged under the same keys.

Every (student, key) is a line of rows.jsonl in the output folder, so a run that was stopped goes on where it was;
detection.md and detection.png are made from these lines, at any time, with --summary alone.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # before NumPy

from curve import write_curve
from scenes import ATTACKS, Scene, Setting, load_corpus

from regionmarker.verification.decoy_test import DecoyTest

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
INNOCENT = "features"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    data = os.environ.get("REGIONMARKER_DATA")
    parser.add_argument("--data-dir", type=Path, default=data, help="or REGIONMARKER_DATA")
    parser.add_argument("--features", help="the thief's encoder: a sentence-transformers name or folder")
    parser.add_argument("--feature-cache", type=Path, help="an .npz to read its features from, or to write them to")
    parser.add_argument("--out", type=Path, default=Path("out/detection"))
    parser.add_argument("--keys", type=int, default=20)
    parser.add_argument("--summary", action="store_true", help="judge nothing, only write the table and the figure")
    options = parser.parse_args()
    if options.data_dir is None and not options.summary:
        parser.error("name the folder of the corpora: --data-dir DIR, or REGIONMARKER_DATA")
    return options


def finished(path: Path) -> list[dict[str, Any]]:
    """Return the rows that are there; a half-written line of a killed run does not count."""
    rows = []
    for line in path.read_text().splitlines() if path.exists() else []:
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError:
            continue
    return rows


def judge(scene: Scene) -> dict[str, Any]:
    """Return the p-values of the copy, attacked and not, and of an innocent, under one key."""
    p_values: dict[str, float] = {}
    for suspect in (*ATTACKS, INNOCENT):
        examination, _ = scene.ask(suspect)
        test = DecoyTest(examination.scores())
        p_values[suspect] = test.p_value(scene.marker.key_.provider_targets())  # looked up after the scores
    return {"fidelity": scene.copy.fidelity.cosine, "p": p_values}


def run(options: argparse.Namespace, path: Path) -> None:
    """Judge every (student, key) that is not judged yet."""
    rows = finished(path)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))  # without what a kill cut off
    done = {(row["student"], row["key"]) for row in rows}
    left = [(name, key) for name in STUDENTS for key in range(options.keys) if (name, key) not in done]
    if not left:
        return
    corpus = load_corpus("sst2", options.data_dir, options.features, options.feature_cache)
    started = time.monotonic()
    for number, (name, key) in enumerate(left, start=1):
        setting = Setting(corpus="sst2", features="public", **STUDENTS[name])
        row = {"student": name, "key": key, **judge(Scene(corpus, setting, key))}
        with path.open("a") as file:
            file.write(json.dumps(row) + "\n")
        minutes = (time.monotonic() - started) / number * (len(left) - number) / 60
        print(f"{name}, key {key}: {len(left) - number} left, {minutes:.0f} minutes", flush=True)


def main() -> None:
    options = arguments()
    options.out.mkdir(parents=True, exist_ok=True)
    path = options.out / "rows.jsonl"
    if not options.summary:
        run(options, path)
    write_curve([row for row in finished(path) if row["key"] < options.keys], list(STUDENTS), options.out)
    print((options.out / "detection.md").read_text())


if __name__ == "__main__":
    main()
