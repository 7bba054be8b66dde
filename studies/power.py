"""Promised power beside the rate at which real stealers are caught.

    python -m studies.power --data-dir DATA --features MODEL --work power-rows [--provider NAME] [--corpora sst2 mind]

Real stealers are heads on what a public encoder (--features) says of the texts: a network (ridge regression on random
ReLU units) or linear, on all of its numbers or on few random combinations of them, which makes worse copies. Each buys
what a key serves, with targets of its own, and is judged by the whole of decoy-2, as it is and rotated. Beside the rate
stands what `plan` promises for a thief of that fidelity, and what `verify` says of a run with that key, read off its
curve. --features is a model, or a folder with CORPUS.npz: features `F` of the texts of rows `rows`. Interrupted, it
goes on where it was. --short-way compares the first-order judgement of simulated copies with decoy-2, and takes times.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from regionmarker import RegionMarker, load_encoder
from regionmarker.crypto.secret import Secret
from regionmarker.keys.key import Key
from regionmarker.marks.reduction import haar
from regionmarker.measures import row_cosines
from regionmarker.planning import Choices, Goals, PlanningCorpus, plan
from regionmarker.verification.answers import Answers
from regionmarker.verification.examination import laid_out
from regionmarker.verification.graded_copies import PENALTY, GradedCopies
from regionmarker.verification.judging import judge
from regionmarker.verification.power import BLURS, HIDDEN, Power, estimate_power
from regionmarker.verification.questions import plan_questions
from regionmarker.verification.simulated_stealer import SimulatedStealer, Student
from studies._study import CORPORA, PROVIDER, Command, Log, Row, encoder_spec, markdown, numbers, provider_rows
from studies.verdict import best

PAGE = "docs/results/power.md"
LEVEL = 1e-3
STUDENTS = {"network": (2048, 0.1), "linear": (0, 0.03)}
ATTACKS = {"as it is": "matched", "rotated": "unknown"}


@dataclass
class Provider:
    """One corpus with public features, divided between a stealer and keys."""

    texts: list[str]
    clean: np.ndarray
    features: np.ndarray
    options: Any

    @classmethod
    def read(cls, data: Path, name: str, options: Any) -> Provider:
        rows, texts, clean = provider_rows(data, name, options.provider)
        folder = Path(options.features)
        if not (folder / f"{name}.npz").exists():
            return cls(texts, clean, load_encoder(encoder_spec(options.features)).encode(texts), options)
        with np.load(folder / f"{name}.npz") as stored:
            place = {int(row): number for number, row in enumerate(stored["rows"])}
            known = [number for number, row in enumerate(rows) if int(row) in place]
            features = stored["F"][[place[int(rows[number])] for number in known]]
        return cls([texts[number] for number in known], clean[known], features, options)

    def key(self, seed: int, kept: float) -> tuple[Key, np.ndarray]:
        """Make a key of the texts that stealers of this seed do not buy; return it and what they buy."""
        order = np.random.default_rng([seed, 7]).permutation(len(self.texts))
        bought, own = np.sort(order[: self.options.queries]), order[self.options.queries :]
        marker = RegionMarker(seed=seed, kept=kept)
        return marker.fit([self.texts[row] for row in own], embeddings=self.clean[own]).key_, bought

    def seen(self, width: int, seed: int) -> np.ndarray:
        """Return all public features, or some random combinations of them."""
        if width >= self.features.shape[1]:
            return self.features
        return self.features @ np.random.default_rng([seed, width]).standard_normal((self.features.shape[1], width))

    def judged(self, key: Key, bought: np.ndarray, width: int, student: str, number: int) -> Row:
        """Let one stealer copy targets of its own; return its fidelity and its p-values."""
        rng, (hidden, penalty) = np.random.default_rng([number, width]), STUDENTS[student]
        redrawn = replace(key, master=Secret(rng.bytes(32)))
        chosen = np.sort(rng.permutation(bought)[: round(0.8 * len(bought))])
        features = self.seen(width, number).astype(np.float32)
        hidden = min(hidden, 128) if self.options.smoke else hidden
        drawn = Student.drawn(features[chosen], self.clean.shape[1], hidden, rng)
        stealer = SimulatedStealer(features, chosen, drawn, penalty)
        copy = stealer.steal(RegionMarker.from_key(redrawn).transform(self.clean[chosen]))
        questions = plan_questions(key, self.options.budget, seed=0)
        row_of = {text: row for row, text in enumerate(self.texts)}
        asked = np.array([row_of[text] for text in questions.probes.texts])
        answers, clean = copy(asked), self.clean[asked]
        turn = haar(rng, answers.shape[1], answers.shape[1]).astype(np.float32)
        found: Row = {
            "fidelity": float(row_cosines(answers - answers.mean(axis=0), clean - clean.mean(axis=0)).mean()),
            "plain": float(row_cosines(answers, clean).mean()),
        }
        for attack, said in (("as it is", answers), ("rotated", answers @ turn)):
            examination = laid_out(key, questions, lambda _texts, said=said: said)
            test, targets = examination.test(examination.scores()), redrawn.provider_targets()
            found |= {f"U {attack}": float(test.totals(np.array([targets]))[0]), f"p {attack}": test.p_value(targets)}
        return found


def read_off(power: Power, fidelity: float) -> tuple[float, float]:
    """Return the interval of a curve at a fidelity, by interpolation; what lies below its first point is nought."""
    low, high = (np.interp(fidelity, power.fidelities, ends, left=0.0) for ends in (power.low, power.high))
    return float(low), float(high)


def clopper_pearson(caught: int, trials: int) -> tuple[float, float]:
    from scipy.stats import beta

    low = beta.ppf(0.025, caught, trials - caught + 1) if caught else 0.0
    high = beta.ppf(0.975, caught + 1, trials - caught) if caught < trials else 1.0
    return float(low), float(high)


def run_corpus(log: Log, name: str, provider: Provider, options: Any) -> None:
    """Let real stealers steal from several keys, and note what a verdict with each key promises."""
    for kept in options.kept:
        for seed in range(options.keys):
            cell = {"corpus": name, "kept": kept, "key": seed}
            if len(log.of(kind="real", **cell)) == len(options.widths) * len(STUDENTS) * options.draws:
                continue
            key, bought = provider.key(seed, kept)
            questions = plan_questions(key, options.budget, seed=0)
            for axes in ATTACKS.values():
                estimated = partial(estimate_power, key, questions, LEVEL, axes=axes, seed=seed)
                log.once({"kind": "curve", "axes": axes, **cell}, lambda curve=estimated: curve().to_dict())
            for width in options.widths:
                for student in STUDENTS:
                    for draw in range(options.draws):
                        one = {"kind": "real", "width": width, "student": student, "draw": draw, **cell}
                        log.once(one, partial(provider.judged, key, bought, width, student, 100 * seed + draw))


def promised(log: Log, name: str, provider: Provider, options: Any) -> None:
    """Ask `plan` about a thief of every fidelity that was seen."""
    corpus = PlanningCorpus(provider.texts, provider.clean, queries=options.queries)
    store = (options.work or Path("power-rows")) / f"plan-{name}.jsonl"
    for width in options.widths:
        for student in STUDENTS:
            rows = log.of(kind="real", corpus=name, width=width, student=student)
            fidelity = round(float(np.mean(numbers(rows, "fidelity"))), 3)
            wish = partial(
                plan, corpus, Goals(fidelity, options.budget, LEVEL), Choices(tuple(options.kept), (True,)), store=store
            )
            log.once(
                {"kind": "plan", "corpus": name, "width": width, "student": student},
                lambda made=wish: made().to_dict(),
            )


@dataclass(frozen=True)
class Cell:
    """What was promised of one kind of copy, and what became of real ones."""

    fidelity: float
    plan: tuple[float, float]
    verify: tuple[float, float] | None  # None below the curve
    U: float
    caught: int
    trials: int

    @classmethod
    def of(cls, log: Log, name: str, width: int, student: str, kept: float, attack: str) -> Cell:
        kind = {"corpus": name, "width": width, "student": student}
        rows = log.of(kind="real", kept=kept, **kind)
        (made,) = log.of(kind="plan", **kind)
        outcome = next(one for one in made["outcomes"] if one["kept"] == kept)
        share = outcome["rotated" if attack == "rotated" else "unrotated"]
        fidelity = float(np.mean(numbers(rows, "fidelity")))
        curves = [_power(row) for row in log.of(kind="curve", corpus=name, kept=kept, axes=ATTACKS[attack])]
        below = fidelity < min(min(curve.fidelities) for curve in curves)
        ends = np.mean([read_off(curve, fidelity) for curve in curves], axis=0)
        return cls(
            fidelity, (share["low"], share["high"]), None if below else (float(ends[0]), float(ends[1])),
            float(np.mean(numbers(rows, f"U {attack}"))), sum(p <= LEVEL for p in numbers(rows, f"p {attack}")),
            len(rows),
        )  # fmt: skip

    @classmethod
    def pooled(cls, cells: list[Cell]) -> Cell:
        """Return several corpora as one: promises are averaged, copies are added up."""
        known = [cell.verify for cell in cells if cell.verify is not None]
        plan_low, plan_high = np.mean([cell.plan for cell in cells], axis=0)
        ends = np.mean(known, axis=0) if len(known) == len(cells) else None
        return cls(
            float(np.mean([cell.fidelity for cell in cells])), (float(plan_low), float(plan_high)),
            None if ends is None else (float(ends[0]), float(ends[1])), float(np.mean([cell.U for cell in cells])),
            sum(cell.caught for cell in cells), sum(cell.trials for cell in cells),
        )  # fmt: skip

    def cells(self) -> list[str]:
        low, high = clopper_pearson(self.caught, self.trials)
        promises = {"plan": self.plan, "verify": self.verify}
        missed = [who for who, ends in promises.items() if ends is not None and ends[0] > high]
        return [
            *("below its curve" if ends is None else f"{ends[0]:.2f} to {ends[1]:.2f}" for ends in promises.values()),
            f"{self.U:.1f}, {self.caught} of {self.trials}", f"{low:.2f} to {high:.2f}",
            f"promised too much: {', '.join(missed)}" if missed else "",
        ]  # fmt: skip


def table(log: Log, corpora: list[str], options: Any) -> str:
    """Return a row for every kind of copy, over all corpora, and below it the rows of each corpus."""
    body = []
    for width, student, kept, attack in product(options.widths, STUDENTS, options.kept, ATTACKS):
        found = {CORPORA[name]: Cell.of(log, name, width, student, kept, attack) for name in corpora}
        for name, cell in ({"all": Cell.pooled(list(found.values()))} | found).items():
            body.append([f"{student}, {width}", f"{kept:g}", attack, name, f"{cell.fidelity:.2f}", *cell.cells()])
    header = [
        "head, numbers seen", "kept", "copy", "corpus", "fidelity", "`plan` promises", "`verify` promises",
        "real: U, caught at 1e-3", "95 % interval", "",
    ]  # fmt: skip
    return markdown(header, body)


def _power(row: Row) -> Power:
    fields = {name: value for name, value in row.items() if name in Power.__dataclass_fields__}
    return Power(**{name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()})


def short_way(provider: Provider, options: Any) -> str:
    """Judge the same simulated stealers with the same targets the short way and by decoy-2; take times."""
    key, _ = provider.key(0, 0.8 if options.smoke else 0.93)
    questions, mark = plan_questions(key, options.budget, seed=0), key.mark
    asked = set(questions.probes.texts)
    unasked = key.reservoir.embeddings[[text not in asked for text in key.reservoir.texts]]
    clean, bought = questions.probes.embeddings, np.vstack([unasked, key.pool.embeddings])
    copies, found = GradedCopies(mark, clean, bought, key.pool.embeddings), []
    turn = haar(np.random.default_rng(0), key.width, key.width).astype(np.float32)
    for number, blur in product(range(1 if options.smoke else 4), BLURS):
        rng = np.random.default_rng([4, number, round(10 * blur)])
        features = copies.view(HIDDEN[number % len(HIDDEN)], rng).features(blur)
        chosen, redrawn = (
            np.sort(rng.permutation(len(bought))[: len(bought) * 4 // 5]),
            replace(key, master=Secret(rng.bytes(32))),
        )
        drawn = np.zeros(len(mark.weights), dtype=np.int64)
        drawn[mark.settings.places("provider")] = redrawn.provider_targets()
        drawn[mark.settings.places("tenants")] = redrawn.tenant_targets("")
        copy, rows = copies.copy(features, chosen), len(clean) + chosen
        stealer = SimulatedStealer(features, rows, Student.drawn(features[rows], key.width, 0, rng), PENALTY)
        answers = stealer.steal(RegionMarker.from_key(redrawn).transform(bought[chosen]))(np.arange(len(clean)))
        for matched, said in ((True, answers), (False, answers @ turn)):
            examination = laid_out(key, questions, lambda _texts, said=said: said)
            U = examination.test(examination.scores()).totals(np.array([redrawn.provider_targets()]))[0]
            found.append((matched, copies.totals(copy, [drawn], LEVEL, matched)[0][0], U))
    lines = []
    for matched, axes, said in ((True, "matched", clean), (False, "unknown", clean @ turn)):
        short, whole = np.array([row[1:] for row in found if row[0] == matched]).T
        answers = Answers("a copy", questions.probes.texts, said)
        power, judged, bare = (
            best(1 if options.smoke else 5, work)[0]
            for work in (
                partial(estimate_power, key, questions, LEVEL, axes=axes, seed=0), partial(judge, key, answers),
                partial(judge, key, answers, power=False),
            )
        )  # fmt: skip
        lines.append(
            f"axes {axes}: U {whole.min():.1f} to {whole.max():.1f}; short way less statistic "
            f"{np.mean(short - whole):.2f} ± {np.std(short - whole):.2f}, "
            f"correlation {np.corrcoef(short, whole)[0, 1]:.3f}, {len(short)} copies; "
            f"power {power:.2f} s, verdict {judged:.2f} s, without power {bare:.2f} s"
        )
    return "\n".join(lines)


def main() -> None:
    smoke = {
        "features": "wordllama", "corpora": ["sst2"], "keys": 1, "draws": 1, "kept": [0.8], "widths": [32],
        "queries": 500, "budget": 300, "work": None,
    }  # fmt: skip
    parser = Command(__doc__, PAGE, data=True, smoke=smoke)
    parser.add_argument("--features", metavar="MODEL", help="the public encoder, or a folder of its features")
    parser.add_argument("--provider", default=PROVIDER, metavar="NAME", help="whose stored vectors: mpnet768, nomic768")
    parser.add_argument("--corpora", nargs="+", default=["sst2", "mind"], choices=list(CORPORA))
    parser.add_argument("--keys", type=int, default=2, help="keys per corpus")
    parser.add_argument("--draws", type=int, default=4, help="stealers per key, each with targets of its own")
    parser.add_argument("--kept", type=float, nargs="+", default=[0.97, 0.93])
    parser.add_argument("--widths", type=int, nargs="+", default=[384, 64, 24], help="numbers that the stealer sees")
    parser.add_argument("--queries", type=int, default=3000, help="texts that stealers buy from")
    parser.add_argument("--budget", type=int, default=3000, help="texts that are asked")
    parser.add_argument("--work", type=Path, help="the folder of finished rows")
    parser.add_argument("--short-way", action="store_true", help="compare the short way with the statistic instead")
    given = parser.read()
    if given.features is None:
        parser.error("name the public encoder that the stealer starts from: --features MODEL")
    if given.short_way or given.smoke:
        for name in given.corpora:
            print(f"{CORPORA[name]}\n{short_way(Provider.read(given.data_dir, name, given), given)}")
    if given.short_way:
        return
    log = Log((given.work or Path("power-rows")) / "rows.jsonl", quiet=given.smoke)
    for name in given.corpora:
        provider = Provider.read(given.data_dir, name, given)
        run_corpus(log, name, provider, given)
        promised(log, name, provider, given)
    print(table(log, given.corpora, given))


if __name__ == "__main__":
    main()
