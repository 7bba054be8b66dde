"""How much of the mark is in a copy that was trained on vectors in few bits.

    python -m studies.quantised --data-dir DATA --features MODEL --work quantised-rows [--corpora sst2 mind]

A customer asks the gateway for `int8` or `binary`, which are quantised after marking, trains a copy on what it gets,
and the copy answers in full numbers. The stealer is the everyday one: a network (ridge regression on 2,048 random ReLU
units) on what a public encoder (--features) says of the texts. Each copy is judged by the whole of decoy-2, as it is
and rotated; beside it stands a blameless one, trained on the same texts' unmarked vectors in the same type.
Interrupted, it goes on where it was.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from regionmarker import RegionMarker
from regionmarker.benchmark.stealers import FrozenHead
from regionmarker.gateway.dialects.vector_formats import quantised
from regionmarker.keys.key import Key
from regionmarker.marks.reduction import haar
from regionmarker.measures import row_cosines
from regionmarker.vectors import Floats, normalised
from regionmarker.verification.answers import Answers
from regionmarker.verification.judging import judge
from regionmarker.verification.questions import plan_questions
from studies._study import CORPORA, PROVIDER, Command, Log, Row, markdown, numbers
from studies.power import LEVEL, Provider, clopper_pearson

PAGE = "docs/results/quantised.md"
TYPES = ("float", "int8", "binary")
TRAINED_ON = ("marked", "unmarked")
ATTACKS = ("as it is", "rotated")


def as_bought(rows: Floats, output_type: str) -> Floats:
    """Return served vectors (n, D) as the numbers that a customer reads from an answer of this type."""
    if output_type == "float":
        return rows
    if output_type == "binary":
        return np.unpackbits(quantised(rows, "ubinary"), axis=1).astype(np.float32) * 2 - 1
    return quantised(rows, output_type).astype(np.float32)


def copy_judged(provider: Provider, key: Key, bought: np.ndarray, output_type: str, trained_on: str) -> Row:
    """Train one copy; return how good it is and what the key says of it."""
    marker, clean, features = RegionMarker.from_key(key), provider.clean, provider.features.astype(np.float32)
    sold = marker.transform(clean[bought]) if trained_on == "marked" else clean[bought]
    head = FrozenHead(hidden=128 if provider.options.smoke else 2048, epochs=0)
    had = normalised(as_bought(sold, output_type))
    copy = head.steal_from_features(features[bought], had, texts=[provider.texts[row] for row in bought])
    row_of = {text: row for row, text in enumerate(provider.texts)}
    questions = plan_questions(key, provider.options.budget, seed=0)
    asked = np.array([row_of[text] for text in questions.texts])
    answers, truth = copy.apply(features[asked]), clean[asked]
    turn = haar(np.random.default_rng(len(asked)), key.width, key.width).astype(np.float32)
    found: Row = {
        "bits": float(row_cosines(had, sold).mean()),
        "fidelity": float(row_cosines(answers - answers.mean(axis=0), truth - truth.mean(axis=0)).mean()),
    }
    for attack, said in zip(ATTACKS, (answers, answers @ turn), strict=True):
        verdict = judge(key, Answers("a copy", questions.texts, said), power=False)
        found |= {f"U {attack}": verdict.total, f"p {attack}": verdict.p_value}
    return found


def run_corpus(log: Log, name: str, provider: Provider, options: Any) -> None:
    """Train and judge what is missing."""
    for kept in options.kept:
        for seed in range(options.keys):
            cell = {"corpus": name, "kept": kept, "key": seed}
            if len(log.of(**cell)) == len(TYPES) * len(TRAINED_ON):
                continue
            key, bought = provider.key(seed, kept)
            for output_type in TYPES:
                for trained_on in TRAINED_ON:
                    work = partial(copy_judged, provider, key, bought, output_type, trained_on)
                    log.once({**cell, "type": output_type, "trained on": trained_on}, work)


def caught(rows: list[Row], attack: str) -> str:
    count = sum(p <= LEVEL for p in numbers(rows, f"p {attack}"))
    low, high = clopper_pearson(count, len(rows))
    return f"{count} of {len(rows)} ({low:.2f} to {high:.2f})"


def between(rows: list[Row], column: str) -> str:
    values = numbers(rows, column)
    return f"{np.mean(values):.1f} ({min(values):.1f} to {max(values):.1f})"


def table(log: Log, options: Any) -> str:
    """Return a row for every corpus, type and kind of copy, blameless ones below."""
    body = []
    for trained_on in TRAINED_ON:
        for kept in options.kept:
            for output_type in TYPES:
                for name in ("all", *options.corpora) if len(options.corpora) > 1 else options.corpora:
                    chosen = {} if name == "all" else {"corpus": name}
                    rows = log.of(kept=kept, type=output_type, **{"trained on": trained_on}, **chosen)
                    body.append([
                        trained_on, output_type, f"{kept:g}", CORPORA.get(name, "all"),
                        f"{np.mean(numbers(rows, 'bits')):.3f}", f"{np.mean(numbers(rows, 'fidelity')):.2f}",
                        between(rows, "U as it is"), caught(rows, "as it is"),
                        between(rows, "U rotated"), caught(rows, "rotated"),
                    ])  # fmt: skip
    header = [
        "trained on", "type", "kept", "corpus", "cosine bought to served", "fidelity",
        "U", "caught (95 %)", "U rotated", "caught rotated (95 %)",
    ]  # fmt: skip
    return markdown(header, body)


def main() -> None:
    smoke = {
        "features": "wordllama", "corpora": ["sst2"], "keys": 1, "kept": [0.8], "queries": 500, "budget": 300,
        "work": Path("quantised-rows"),
    }  # fmt: skip
    parser = Command(__doc__, PAGE, data=True, smoke=smoke)
    parser.add_argument("--features", metavar="MODEL", help="the public encoder, or a folder of its features")
    parser.add_argument("--provider", default=PROVIDER, metavar="NAME", help="whose stored vectors: mpnet768, nomic768")
    parser.add_argument("--corpora", nargs="+", default=["sst2", "mind"], choices=list(CORPORA))
    parser.add_argument("--keys", type=int, default=4, help="keys per corpus")
    parser.add_argument("--kept", type=float, nargs="+", default=[0.93])
    parser.add_argument("--queries", type=int, default=3000, help="texts that stealers buy")
    parser.add_argument("--budget", type=int, default=3000, help="texts that are asked")
    parser.add_argument("--work", type=Path, default=Path("quantised-rows"), help="the folder of finished rows")
    given = parser.read()
    if given.features is None:
        parser.error("name the public encoder that the stealer starts from: --features MODEL")
    log = Log(given.work / "rows.jsonl", quiet=given.smoke)
    for name in given.corpora:
        run_corpus(log, name, Provider.read(given.data_dir, name, given), given)
    print(table(log, given))


if __name__ == "__main__":
    main()
