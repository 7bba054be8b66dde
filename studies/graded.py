"""The graded mark and the statistic decoy-2 on real corpora: copies, attacked and rotated, beside blameless ones.

    python -m studies.graded --data-dir DATA --features MODEL --work graded-rows [--corpora sst2 mind] [--keys 3]

A copy is ridge regression on random ReLU units over what a public encoder (--features) says of the texts. It learns
from what was served, after CSE or residual regression where the row says so. Every copy is judged as it is and after a
rotation, which costs the stealer nothing. U is about a standard normal number where nothing was stolen, and 3.29 is
the two-sided level 1e-3. Interrupted, it goes on where it was.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from regionmarker import load_encoder
from regionmarker.benchmark.attacks import load_attack
from regionmarker.benchmark.protocols import StolenData
from regionmarker.corpus import TextSet
from regionmarker.crypto.secret import Secret
from regionmarker.encoders.base import LookupEncoder
from regionmarker.marks.corpus_summary import CorpusSummary
from regionmarker.marks.graded import GradedMark, GradedSettings
from regionmarker.marks.reduction import haar
from regionmarker.measures import neighbour_overlap, row_cosines
from regionmarker.verification.decoy2 import graded_scores
from regionmarker.verification.list_test import ListTest
from regionmarker.verification.simulated_stealer import SimulatedStealer, Student
from studies._study import CORPORA, Command, Log, Row, encoder_spec, markdown, numbers, provider_rows

PAGE = "docs/results/graded.md"
ATTACKS = {
    "none": "none",
    "CSE, 50 components": "cse:components=50",
    "residuals, 64 directions": "residuals:clusters=64,components=64",
}
CLEAN = "unmarked (blameless)"
LEVEL, PENALTY = 1e-3, 0.1


class Provider:
    """One corpus divided, and one key of it."""

    def __init__(self, data: Path, name: str, seed: int, features: np.ndarray, options: Any) -> None:
        _, self.texts, self.clean = provider_rows(data, name)
        self.features = features
        order = np.random.default_rng([seed, 7]).permutation(len(self.texts))
        self.bought, own = np.sort(order[: options.queries]), order[options.queries :]
        self.pool, self.asked = own[: options.pool], own[options.pool : options.pool + options.budget]
        summary, master = CorpusSummary(Secret(bytes(32)), 10), Secret(np.random.default_rng(seed).bytes(32))
        summary.update([self.texts[row] for row in own], self.clean[own])
        samples = [
            TextSet(tuple(self.texts[row] for row in part), self.clean[part]) for part in (self.pool, self.asked)
        ]
        mark = GradedMark.fit(summary, master, GradedSettings.within(self.clean.shape[1]), samples)
        self.mark = mark.at_strength_for(options.kept, self.clean[own], seed)
        self.targets = self.mark.provider_targets(master, b"", len(self.pool))
        self.goals = self.clean[self.pool[list(self.targets)]]
        self.kept = float(neighbour_overlap(self.clean[own], self.served(own)).mean())

    def served(self, rows: np.ndarray) -> np.ndarray:
        return self.mark.mark_rows(self.clean[rows], self.goals).astype(np.float32)

    def judged(self, attack: str, hidden: int, seed: int) -> Row:
        """Let a stealer copy what it was served, and judge the copy twice."""
        held = self.served(self.bought) if attack != CLEAN else self.clean[self.bought]
        texts = tuple(self.texts[row] for row in self.bought)
        public = LookupEncoder("features", texts, self.features[self.bought])
        stolen = load_attack(ATTACKS.get(attack, "none")).apply(StolenData(texts, held, public=public))
        rng = np.random.default_rng([seed, 99])
        row_of = dict(zip(texts, self.bought, strict=True))
        bought = np.array([row_of[text] for text in stolen.texts])  # an attack may drop rows
        student = Student.drawn(self.features[bought], stolen.vectors.shape[1], hidden, rng)
        copy = SimulatedStealer(self.features, bought, student, PENALTY).steal(stolen.vectors)
        answers = copy(self.asked)
        turn = haar(np.random.default_rng([seed, 3]), answers.shape[1], answers.shape[1])
        row: Row = {"fidelity": round(float(row_cosines(answers, self.clean[self.asked]).mean()), 3), "kept": self.kept}
        for name, said in (("known", answers), ("rotated", answers @ turn)):
            found = graded_scores(self.mark, self.clean[self.asked], said, self.clean[self.pool])
            test = ListTest(found.scores, self.mark.weights / np.sqrt(2))
            row |= {
                f"U_{name}": float(test.totals(np.array([self.targets]))[0]),
                f"p_{name}": test.p_value(self.targets),
            }
        return row


def judge_key(log: Log, provider: Provider, corpus: str, seed: int, students: dict[str, int]) -> None:
    """Try every attack and every student on one key."""
    for attack in (*ATTACKS, CLEAN):
        for student, hidden in students.items():
            key = {"corpus": corpus, "key": seed, "attack": attack, "student": student}
            log.once(key, partial(provider.judged, attack, hidden, seed))


def table(log: Log, students: dict[str, int]) -> str:
    body = []
    for attack in (*ATTACKS, CLEAN):
        for student in students:
            rows = log.of(attack=attack, student=student)
            cells = [attack, student, f"{np.mean(numbers(rows, 'fidelity')):.2f}"]
            for name in ("known", "rotated"):
                U, caught = numbers(rows, f"U_{name}"), sum(p <= LEVEL for p in numbers(rows, f"p_{name}"))
                cells.append(f"{np.mean(U):.1f} ({min(U):.1f} to {max(U):.1f}), {caught} of {len(U)}")
            body.append(cells)
    header = ["attack", "student", "fidelity to clean", "axes known: U (range), caught at 1e-3", "rotated"]
    return markdown(header, body)


def main() -> None:
    smoke = {
        "features": "wordllama", "corpora": ["sst2"], "keys": 1, "pool": 240, "budget": 500, "queries": 500,
        "work": None,
    }  # fmt: skip
    parser = Command(__doc__, PAGE, data=True, smoke=smoke)
    parser.add_argument("--features", metavar="MODEL", help="the public encoder that the stealer starts from")
    parser.add_argument("--corpora", nargs="+", default=list(CORPORA), choices=list(CORPORA))
    parser.add_argument("--keys", type=int, default=3, help="keys per corpus")
    parser.add_argument("--kept", type=float, default=0.93, help="the share of neighbours that stays")
    parser.add_argument("--pool", type=int, default=1536, help="candidates in all")
    parser.add_argument("--budget", type=int, default=3000, help="texts that are asked")
    parser.add_argument("--queries", type=int, default=2500, help="texts that the stealer buys")
    parser.add_argument("--work", type=Path, help="the folder of finished rows")
    given = parser.read()
    if given.features is None:
        parser.error("name the public encoder that the stealer starts from: --features MODEL")
    encoder = load_encoder(encoder_spec(given.features))
    students = {"hidden layer": 64 if given.smoke else 2048, "linear": 0}
    log = Log((given.work or Path("graded-rows")) / "rows.jsonl", quiet=given.smoke)
    for name in given.corpora:
        features = encoder.encode(provider_rows(given.data_dir, name)[1])
        for seed in range(given.keys):
            judge_key(log, Provider(given.data_dir, name, seed, features, given), name, seed, students)
    print(table(log, students))
    kept = numbers(log.rows, "kept")
    print(f"\nNeighbours kept: {np.mean(kept):.3f} ({min(kept):.3f} to {max(kept):.3f})")


if __name__ == "__main__":
    main()
