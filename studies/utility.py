"""What marking costs: classification, sentence similarity, retrieval; unmarked against marked, over several keys.

    python -m studies.utility --data-dir DATA --cache embeddings.sqlite --work utility-rows

The marks are the default (with tenants and without) and that of 0.1.0.

Classification uses the provider embeddings that lie in the data folder (all-mpnet-base-v2); STS-B and Cranfield are
embedded by --encoder, once, into --cache. Interrupted, it goes on where it was. Tables go to stdout.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from regionmarker import RegionMarker, load_encoder
from regionmarker.benchmark.classification import classify
from regionmarker.measures import ndcg, neighbour_overlap, row_cosines, similarity
from regionmarker.parquet import read_columns
from studies._judged_texts import Retrieval, SentencePairs
from studies._study import CORPORA, Command, Log, Row, markdown, numbers, spread

PAGE = "docs/results/utility.md"
NEIGHBOURS_AMONG = 2500
Array = Any
Settings = dict[str, Any]
MARKS: dict[str, tuple[Settings, str]] = {
    "graded, without tenants": ({"tenants": False}, ""),
    "graded, a tenant": ({}, "a customer"),
    "0.1.0's": ({"dimension": 4}, ""),
}
"""The settings of a key, and for whom it marks."""


class Corpus:
    """Texts, labels and clean vectors of one corpus, train rows first."""

    def __init__(self, data: Path, name: str) -> None:
        stored = np.load(data / f"provider_mpnet768_{name}.npz")
        texts, labels, splits = read_columns(data / f"{name}.parquet", ["text", "label", "split"])
        self.name = name
        self.texts = [texts[row] for row in stored["rows"]]
        self.labels = np.array([labels[row] for row in stored["rows"]])
        self.train = np.array([splits[row] == "train" for row in stored["rows"]])
        vectors = stored["embeddings"].astype(np.float32)
        self.clean = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    def key(self, seed: int, settings: Settings) -> RegionMarker:
        """Fit a key on the training texts; the probes, which marking does not use, must leave room in the smallest."""
        texts = [text for text, train in zip(self.texts, self.train, strict=True) if train]
        return fitted(texts, self.clean[self.train], seed, settings)

    def score(self, vectors: Array, seed: int) -> Row:
        """Train and test the paper's classifier on these vectors, in per cent."""
        train, dropout = self.train, 0.0 if self.name == "ag_news" else 0.2  # as published
        found = classify(
            vectors[train], self.labels[train], vectors[~train], self.labels[~train], seed=seed, dropout=dropout
        )
        return {"accuracy": 100 * found.accuracy, "macro_f1": 100 * found.macro_f1, "texts": found.texts}


def fitted(texts: list[str], rows: Array, seed: int, settings: Settings) -> RegionMarker:
    """Fit a key; the published mark does not make its lists fit a small corpus by itself."""
    small = (
        {"pool": min(4096, len(texts) // 2), "reservoir": min(2048, len(texts) // 4)} if "dimension" in settings else {}
    )
    return RegionMarker(seed=seed, **settings, **small).fit(texts, embeddings=rows)


def moved(before: Array, after: Array) -> Row:
    """How far marking moved the vectors; neighbours are looked for among a few thousand of them."""
    chosen = np.random.default_rng(0).permutation(len(before))[:NEIGHBOURS_AMONG]
    before, after = before[chosen], after[chosen]
    cosines = row_cosines(before, after)
    marked = cosines < 0.9999
    kept = neighbour_overlap(before, after)
    return {
        "marked": float(marked.mean()),
        "cosine": float(cosines.mean()),
        "cosine_marked": float(cosines[marked].mean()) if marked.any() else None,
        "lowest": float(cosines.min()),
        "overlap": float(kept.mean()),
        "overlap_marked": float(kept[marked].mean()) if marked.any() else None,
    }


def classification(log: Log, corpora: dict[str, Corpus], keys: int) -> None:
    """Go through the corpora seed by seed, so that a run that is stopped has about as many keys of each."""
    for seed in range(keys):
        for name, corpus in corpora.items():
            common: Row = {"task": name, "seed": seed}
            log.once(common | {"vectors": "unmarked"}, partial(corpus.score, corpus.clean, seed))
            for vectors in MARKS:
                log.once(common | {"vectors": vectors}, partial(served, corpus, seed, vectors))


def served(corpus: Corpus, seed: int, vectors: str) -> Row:
    settings, tenant = MARKS[vectors]
    rows = corpus.key(seed, settings).transform(corpus.clean, tenant=tenant)
    return corpus.score(rows, seed) | moved(corpus.clean, rows)


def similarity_and_retrieval(log: Log, data: Path, encoder: Any, keys: int) -> None:
    pairs, task = SentencePairs.read(data / "stsb.parquet", split="test"), Retrieval.read(data)
    news = SentencePairs.read(data / "mrpc.parquet", score="label")
    texts = list(dict.fromkeys([*news.first, *task.documents]))  # one of two sentences that mean the same
    own = encoder.encode(texts)
    first, second = encoder.encode(pairs.first), encoder.encode(pairs.second)
    queries, documents = encoder.encode(task.queries), encoder.encode(task.documents)

    def score(mark: Any) -> Row:
        return {
            "sts": 100 * similarity(mark(first), mark(second), pairs.scores),
            "ndcg": 100 * ndcg(mark(queries), mark(documents), task.relevant),
        }

    def marked(seed: int, vectors: str) -> Row:
        settings, tenant = MARKS[vectors]
        key = fitted(texts, own, seed, settings)
        return score(lambda rows: key.transform(rows, tenant=tenant)) | {
            f"{name} {column}": value
            for name, rows in (("sts", np.vstack([first, second])), ("documents", documents))
            for column, value in moved(rows, key.transform(rows, tenant=tenant)).items()
        }

    log.once({"task": "sts and retrieval", "seed": 0, "vectors": "unmarked"}, lambda: score(lambda rows: rows))
    for seed in range(keys):
        for vectors in MARKS:
            asked = {"task": "sts and retrieval", "seed": seed, "vectors": vectors}
            log.once(asked, partial(marked, seed, vectors))


def differences(log: Log, task: str, vectors: str, control: str, column: str) -> list[float]:
    """Subtract unmarked from marked, seed by seed; where the control has one seed it serves all."""
    plain = {row["seed"]: float(row[column]) for row in log.of(task=task, vectors=control)}  # type: ignore[arg-type]
    return [
        float(row[column]) - plain.get(row["seed"], plain[0])  # type: ignore[arg-type]
        for row in log.of(task=task, vectors=vectors)
    ]


def change(values: list[float]) -> str:
    """Say the mean with its 95 % interval (Student's t over the keys)."""
    wide = stats.t.ppf(0.975, len(values) - 1) * stats.sem(values)
    return f"{np.mean(values):+.2f} ({np.mean(values) - wide:+.2f} to {np.mean(values) + wide:+.2f})"


def report(log: Log) -> None:
    measures = [(name, title, column) for name, title in CORPORA.items() for column in ("accuracy", "macro_f1")]
    body = []
    for task, title, column in [
        *measures,
        ("sts and retrieval", "STS-B", "sts"),
        ("sts and retrieval", "Cranfield", "ndcg"),
    ]:
        label = {"accuracy": "accuracy", "macro_f1": "macro-F1", "sts": "Spearman", "ndcg": "nDCG@10"}[column]
        plain = numbers(log.of(task=task, vectors="unmarked"), column)
        line = [title, label, spread(plain, 2) if len(plain) > 1 else f"{plain[0]:.2f}"]
        line += [change(differences(log, task, vectors, "unmarked", column)) for vectors in MARKS]
        body.append([*line, str(len(log.of(task=task, vectors=next(iter(MARKS)))))])
    print(markdown(["corpus", "measure", "unmarked", *MARKS, "keys"], body), "\n")
    body = []
    for task, title, prefix in [
        *((name, title, "") for name, title in CORPORA.items()),
        ("sts and retrieval", "STS-B", "sts "),
        ("sts and retrieval", "Cranfield", "documents "),
    ]:
        for vectors in MARKS:
            rows = log.of(task=task, vectors=vectors)
            cells = {
                name: numbers(rows, prefix + name)
                for name in ("marked", "cosine", "cosine_marked", "lowest", "overlap", "overlap_marked")
            }
            body.append(
                [
                    title,
                    vectors,
                    spread(cells["marked"], 3),
                    spread(cells["cosine"], 4),
                    spread(cells["cosine_marked"], 4),
                    f"{min(cells['lowest']):.4f}",
                    spread(cells["overlap"], 3),
                    spread(cells["overlap_marked"], 3),
                ]
            )
    print(
        markdown(
            [
                "corpus",
                "mark",
                "share marked",
                "cos(e, e_p)",
                "of marked",
                "lowest of all",
                "neighbours kept",
                "of marked",
            ],
            body,
        )
    )


def main() -> None:
    smoke = {"encoder": "wordllama", "keys": 2, "classification_keys": 2}
    parser = Command(__doc__, PAGE, data=True, smoke=smoke)
    parser.add_argument("--encoder", default="sentence-transformers:all-mpnet-base-v2")
    parser.add_argument("--cache", type=Path, help="a file that keeps what was embedded")
    parser.add_argument("--work", type=Path, default=Path("out/utility"))
    parser.add_argument("--keys", type=int, default=20, help="for STS-B and Cranfield")
    parser.add_argument("--classification-keys", type=int, default=20)
    options = parser.read()
    log = Log(options.work / "utility.jsonl")
    encoder = load_encoder(options.encoder, cache=options.cache)
    similarity_and_retrieval(log, options.data_dir, encoder, options.keys)
    corpora = {name: Corpus(options.data_dir, name) for name in CORPORA}
    classification(log, corpora, options.classification_keys)
    report(log)


if __name__ == "__main__":
    main()
