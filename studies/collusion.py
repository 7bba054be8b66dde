"""Tenants who compare notes: who is named after they average, project out or strip what they differ in.

    python -m studies.collusion --data-dir DATA --features MODEL --work collusion-rows [--corpora sst2 mind] [--keys 2]

Every pair of tenants buys the same texts from a key with marks for tenants and attacks what it was served; the stealer
is the ridge start of the everyday head, on random hidden units over what a public encoder (--features) says of the
texts. The copy is traced among the colluders, a third tenant and 200 innocent ones, by the product's own `trace`, as it
is and rotated. Beside it: a copy of clean vectors. `strip` regresses out the tenants' carriers, which are the left
singular vectors of the differences. Further rows: other shares of energy for the tenants, and tracing over
10,000 places, with 1,000 redraws of all their targets. --features is a model, or a folder with CORPUS.npz: features `F`
of the texts of rows `rows`. Interrupted, it goes on where it was; --summary prints the tables of what is there.
"""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from regionmarker import RegionMarker
from regionmarker.keys.key import Key
from regionmarker.marks.reduction import haar
from regionmarker.measures import row_cosines
from regionmarker.vectors import normalised
from regionmarker.verification.decoy_test import holm
from regionmarker.verification.examination import Examination, laid_out
from regionmarker.verification.questions import plan_questions
from regionmarker.verification.simulated_stealer import SimulatedStealer, Student
from regionmarker.verification.tracing import trace_examined
from studies._study import CORPORA, PROVIDER, Command, Log, Row, markdown, numbers
from studies.power import Provider

PAGE = "docs/results/collusion.md"
LEVEL = 1e-3
SHARES = (0.3, 0.5, 0.7)
ATTACKS = {
    "alone": 1, "average": 2, "project": 2, "strip": 2, "average of 3": 3, "project of 3": 3, "strip of 3": 3,
    "clean": 0,
}  # fmt: skip
"""How many tenants take part."""


class Scene:
    """One key with marks for tenants, and a stealer who bought some texts."""

    def __init__(self, provider: Provider, seed: int, options: Any) -> None:
        self.key, bought = provider.key(seed, options.kept)
        self.clean, self.bought, self.seed = provider.clean, bought, seed
        features = provider.features.astype(np.float32)
        student = Student.drawn(
            features[bought], provider.clean.shape[1], options.hidden, np.random.default_rng([seed, 1])
        )
        self.stealer = SimulatedStealer(features, bought, student, 0.1)
        self.questions = plan_questions(self.key, options.budget, seed=0)
        row_of = {text: row for row, text in enumerate(provider.texts)}
        self.asked = np.array([row_of[text] for text in self.questions.probes.texts])

    def served(self, key: Key, tenant: str) -> np.ndarray:
        return RegionMarker.from_key(key).transform(self.clean[self.bought], tenant=tenant)

    def examined(self, key: Key, vectors: np.ndarray, *, rotated: bool) -> tuple[Examination, float]:
        """Let the stealer copy vectors; return the copy's examination and its centred fidelity."""
        answers, clean = self.stealer.steal(vectors)(self.asked), self.clean[self.asked]
        fidelity = float(row_cosines(answers - answers.mean(axis=0), clean - clean.mean(axis=0)).mean())
        if rotated:
            answers = answers @ haar(np.random.default_rng(self.seed), *answers.shape[1:] * 2).astype(np.float32)
        return laid_out(key, self.questions, lambda _texts: answers), fidelity


def attacked(attack: str, served: list[np.ndarray], carriers: int) -> np.ndarray:
    """Return what colluders make of the vectors that each was served, (n, D) each."""
    first, *others = served
    if not others:
        return first
    if attack.startswith("average"):
        return normalised(np.mean(served, axis=0))
    differences = [(first - other).astype(np.float64) for other in others]
    if attack.startswith("project"):  # the span of the differences of targets
        wide = np.vstack(differences)
        span = np.linalg.eigh(wide.T @ wide)[1][:, -carriers * len(others) :]  # (D, k)
        return normalised((first - (first @ span) @ span.T).astype(np.float32))
    tall = np.hstack(differences)  # the left singular vectors are the carriers' values on these texts
    values = np.linalg.eigh(tall @ tall.T)[1][:, -carriers:]  # (n, J)
    centred = first - first.mean(axis=0)
    return normalised((first - values @ (values.T @ centred)).astype(np.float32))


def colluded(scene: Scene, attack: str, pair: int, options: Any) -> Row:
    """Let one group of tenants collude; say who is named, as the copy is and rotated."""
    count = ATTACKS[attack]
    names = [f"pair {pair} colluder {number}" for number in range(3)]
    innocents = [f"pair {pair} innocent {number}" for number in range(options.innocents)]
    labels = {name: name for name in (*names, *innocents)}
    carriers = len(scene.key.tenant_targets(""))
    clean = scene.clean[scene.bought]
    vectors = attacked(attack, [scene.served(scene.key, name) for name in names[:count]] or [clean], carriers)
    row: Row = {"cosine": float(row_cosines(vectors, clean).mean())}
    for how in ("known", "rotated"):
        examination, row["fidelity"] = scene.examined(scene.key, vectors, rotated=how == "rotated")
        ranking = {one.tenant: one for one in trace_examined(scene.key, examination, labels, level=LEVEL)}
        test, targets = examination.test(examination.scores()), scene.key.provider_targets()
        row[f"provider {how}"] = test.p_value(targets)
        row[f"provider U {how}"] = float(test.totals(np.array([targets]))[0])
        row[f"named {how}"] = sum(ranking[name].accused for name in names[:count])
        row[f"others named {how}"] = sum(ranking[name].accused for name in [*names[count:], *innocents])
        row[f"U {how}"] = [round(ranking[name].total, 2) for name in names[:count]]
    return row


def shared(scene: Scene, share: float, draw: int) -> Row:
    """Give the tenants another share of the same energy; report U of the provider and of those who leaked."""
    mark = scene.key.mark
    key = replace(scene.key, mark=replace(mark, settings=replace(mark.settings, tenant_share=share)))
    names = [f"share {draw} {number}" for number in range(2)]
    row: Row = {}
    for attack in ("alone", "average"):
        vectors = attacked(attack, [scene.served(key, name) for name in names[: ATTACKS[attack]]], 0)
        for how in ("known", "rotated"):
            examination, _ = scene.examined(key, vectors, rotated=how == "rotated")
            test = examination.test(examination.scores())
            row[f"provider {attack} {how}"] = float(test.totals(np.array([key.provider_targets()]))[0])
            traced = trace_examined(key, examination, {name: name for name in names}, level=LEVEL)
            found = {one.tenant: one.total for one in traced}
            row[f"tenant {attack} {how}"] = float(np.mean([found[name] for name in names[: ATTACKS[attack]]]))
    return row


def many_places(scene: Scene, options: Any) -> Row:
    """Trace one leaking tenant among many places; then redraw all targets many times on innocent and leaked answers."""
    labels = {f"place-{number:04d}": f"place-{number:04d}" for number in range(1, options.places + 1)}
    leaker = f"place-{options.places // 2:04d}"
    leaked, _ = scene.examined(scene.key, scene.served(scene.key, leaker), rotated=False)
    started = time.process_time()
    ranking = trace_examined(scene.key, leaked, labels, level=LEVEL)
    seconds = time.process_time() - started
    innocent, _ = scene.examined(scene.key, scene.clean[scene.bought], rotated=False)
    row: Row = {"seconds": seconds, "right": ranking[0].tenant == leaker and ranking[0].accused}
    row["others"] = sum(one.accused for one in ranking[1:])
    rng = np.random.default_rng(scene.seed)
    for name, examination in (("innocent", innocent), ("another leaked", leaked)):
        test = examination.tenant_test(examination.tenant_scores())
        starts = test.list_size * np.arange(test.carriers)
        alarms = {0.05: 0, LEVEL: 0}
        for _ in range(options.runs):
            tuples = starts + rng.integers(test.list_size, size=(options.places, test.carriers))
            least = holm(test.p_values(tuples)).min()
            alarms = {level: count + int(least <= level) for level, count in alarms.items()}
        row |= {f"{name} at {level:g}": count for level, count in alarms.items()}
    return row


def run_corpus(log: Log, name: str, provider: Provider, options: Any) -> None:
    for seed in range(options.keys):
        cell = {"corpus": name, "key": seed}
        scene = Scene(provider, seed, options)
        for pair in range(options.pairs):
            for attack in ATTACKS:
                one = {"kind": "pair", "attack": attack, "pair": pair, **cell}
                log.once(one, partial(colluded, scene, attack, pair, options))
        if seed == 0:
            for share in SHARES:
                log.once({"kind": "share", "share": share, **cell}, partial(shared, scene, share, 0))
            log.once({"kind": "places", "places": options.places, **cell}, partial(many_places, scene, options))


def summary(log: Log) -> str:
    """Return the tables of the page."""
    parts = []
    for how in ("known", "rotated"):
        body = []
        for attack, count in ATTACKS.items():
            rows = log.of(kind="pair", attack=attack)
            if not rows:
                continue
            named = [int(row[f"named {how}"]) for row in rows]
            others = sum(int(row[f"others named {how}"]) > 0 for row in rows)
            caught = sum(row[f"provider {how}"] <= LEVEL for row in rows)
            totals = [value for row in rows for value in row[f"U {how}"]]
            body.append(
                [
                    attack,
                    f"{np.mean(numbers(rows, 'cosine')):.3f}",
                    f"{np.mean(numbers(rows, 'fidelity')):.3f}",
                    f"{caught} of {len(rows)}",
                    f"{sum(one > 0 for one in named)} of {len(rows)}" if count else "-",
                    f"{sum(one == count for one in named)} of {len(rows)}" if count else "-",
                    f"{others} of {len(rows)}",
                    f"{np.mean(totals):.1f} ({np.min(totals):.1f})" if totals else "-",
                ]
            )
        header = ["attack", "cosine", "fidelity", "theft proven", "one named", "all named", "an innocent named", "U"]
        parts.append(f"Axes {how}:\n\n{markdown(header, body)}")
    keys = [f"{who} {attack} {how}" for attack in ("alone", "average") for who in ("provider", "tenant")
            for how in ("known", "rotated")]  # fmt: skip
    body = [
        [f"{share:g}", *(f"{np.mean(numbers(rows, name)):.1f}" for name in keys)]
        for share in SHARES
        if (rows := log.of(kind="share", share=share))
    ]
    parts.append("Share of the tenants, mean U:\n\n" + markdown(["share", *keys], body))
    rows = log.of(kind="places")
    names = ["seconds", "right", "others", "innocent at 0.05", "innocent at 0.001", "another leaked at 0.05",
             "another leaked at 0.001"]  # fmt: skip
    body = [[CORPORA[row["corpus"]], str(row["places"]), *(f"{row[name]:.3g}" for name in names)] for row in rows]
    parts.append("Tracing over many places:\n\n" + markdown(["corpus", "places", *names], body))
    return "\n\n".join(parts)


def main() -> None:
    smoke = {
        "features": "wordllama", "corpora": ["sst2"], "keys": 1, "pairs": 1, "queries": 400, "budget": 300,
        "hidden": 64, "innocents": 5, "places": 50, "runs": 5,
    }  # fmt: skip
    command = Command(__doc__, PAGE, data=True, smoke=smoke)
    command.add_argument("--features", default="all-MiniLM-L6-v2", help="a public encoder, or a folder of its features")
    command.add_argument("--provider", default=PROVIDER, metavar="NAME", help="whose stored vectors")
    command.add_argument("--work", type=Path, help="a folder for finished rows")
    command.add_argument("--corpora", nargs="+", default=list(CORPORA), choices=list(CORPORA))
    command.add_argument("--keys", type=int, default=2, help="per corpus")
    command.add_argument("--pairs", type=int, default=5, help="per key")
    command.add_argument("--innocents", type=int, default=200)
    command.add_argument("--places", type=int, default=10_000)
    command.add_argument("--runs", type=int, default=1000, help="redraws of all places' targets")
    command.add_argument("--queries", type=int, default=2500)
    command.add_argument("--budget", type=int, default=3000)
    command.add_argument("--hidden", type=int, default=2048)
    command.add_argument("--kept", type=float, default=0.93)
    command.add_argument("--summary", action="store_true", help="only print the tables of what is there")
    options = command.read()
    log = Log((options.work or Path("collusion-rows")) / "rows.jsonl")
    if not options.summary:
        for name in options.corpora:
            run_corpus(log, name, Provider.read(options.data_dir, name, options), options)
    print(summary(log))


if __name__ == "__main__":
    main()
