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
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from regionmarker.files import atomic_path
from regionmarker.verification.decoy_test import DecoyTest
from studies._study import Command, Log, markdown
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
LEVEL = 1e-3
LOOSE = 0.05
HEAD = ("student", "fidelity", "keys", *ATTACKS, "innocents at 1e-3", "innocents at 0.05")
Rows = Sequence[dict[str, Any]]


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


def write_curve(rows: Rows, students: Sequence[str], folder: Path) -> None:
    """Write `detection.md`, one line per student, and `detection.png`, the share that is caught over fidelity."""
    groups = {name: [row for row in rows if row["student"] == name] for name in students}
    groups = {name: found for name, found in groups.items() if found}
    table = markdown(HEAD, [[name, *_cells(found)] for name, found in groups.items()])
    with atomic_path(folder / "detection.md") as temporary:
        temporary.write_text(table + "\n")
    _draw({name: found for name, found in groups.items() if "R =" not in name}, folder / "detection.png")


def _cells(found: Rows) -> list[str]:
    caught = [str(_count(found, attack)) for attack in ATTACKS]
    innocent = np.array([p for row in found for name, p in row["p"].items() if name not in ATTACKS])
    rates = [f"{(innocent <= level).sum()} of {len(innocent)}" for level in (LEVEL, LOOSE)]
    return [f"{np.mean([row['fidelity'] for row in found]):.3f}", str(len(found)), *caught, *rates]


def _count(found: Rows, attack: str) -> int:
    return sum(row["p"][attack] <= LEVEL for row in found)


def _draw(groups: dict[str, Rows], path: Path) -> None:
    import matplotlib as mpl

    mpl.use("agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
    points = sorted((float(np.mean([row["fidelity"] for row in found])), found) for found in groups.values())
    for attack, marker in zip(ATTACKS, "osv^D", strict=True):
        shares = [_count(found, attack) / len(found) for _, found in points]
        axes.plot([fidelity for fidelity, _ in points], shares, marker=marker, label=attack, alpha=0.8)
    axes.set(xlabel="fidelity of the copy", ylabel="share of keys with p ≤ 1e-3", ylim=(-0.03, 1.03))
    axes.grid(alpha=0.3)
    axes.legend(title="attack", loc="lower right")
    with atomic_path(path) as temporary:
        figure.savefig(temporary, format="png", dpi=110)
    plt.close(figure)


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
