"""Do paraphrases stay in their region? By corpus, reducer, and distance of the original from the hyperplanes.

    python -m studies.paraphrases --data-dir DATA --cache embeddings.sqlite --work paraphrase-rows

Apertium round trips of four corpora (all-mpnet-base-v2 vectors of the data folder) and MRPC's pairs (embedded by
--encoder, once, into --cache). Interrupted, it goes on where it was. Tables go to stdout.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from regionmarker import RegionMarker, RegionMarkerError, load_encoder
from regionmarker.measures import row_cosines
from regionmarker.parquet import read_columns
from studies._judged_texts import SentencePairs
from studies._study import CORPORA, Command, Log, Row, key_settings, markdown, numbers, spread

PAGE = "docs/results/paraphrases.md"
SPACES: dict[str, dict[str, Any]] = {
    "PCA, subspace 32 (default)": {"reducer": "pca"},
    "PCA, subspace 4 (the paper)": {"reducer": "pca", "subspace": 4},
    "SVD, subspace 32": {"reducer": "svd"},
    "none": {"reducer": "none"},
    "auto-encoder": {"reducer": "autoencoder"},
    "UMAP": {"reducer": "umap"},
}
SLOW = ("auto-encoder", "UMAP")
Array = Any


@dataclass(frozen=True)
class Pairs:
    """A corpus to fit keys on, and texts with what was made of them."""

    name: str
    texts: Sequence[str]
    embeddings: Array  # (n, D)
    before: Array  # (p, D)
    after: Array  # (p, D)


def apertium(data: Path, name: str) -> Pairs:
    """Round trips through Spanish and Catalan."""
    stored = np.load(data / f"provider_mpnet768_{name}.npz")
    (texts,) = read_columns(data / f"{name}.parquet", ["text"])
    place = {int(row): position for position, row in enumerate(stored["rows"])}
    (rows,) = read_columns(data / f"paraphrases_{name}.parquet", ["row"])
    after = unit(np.load(data / f"paraphrases_mpnet768_{name}.npz")["embeddings"])
    known = np.array([row in place for row in rows])
    clean = unit(stored["embeddings"])
    before = clean[[place[row] for row in rows if row in place]]
    return Pairs(CORPORA[name], [texts[row] for row in stored["rows"]], clean, before, after[known])


def mrpc(data: Path, encoder: Any) -> list[Pairs]:
    """Pairs that people call paraphrases, and pairs of news sentences on one event that they do not."""
    found = SentencePairs.read(data / "mrpc.parquet", score="label")
    texts = list(dict.fromkeys([*found.first, *found.second]))
    own = encoder.encode(texts)
    first, second, same = encoder.encode(found.first), encoder.encode(found.second), np.array(found.scores) == 1
    return [
        Pairs("MRPC, paraphrases", texts, own, first[same], second[same]),
        Pairs("MRPC, no paraphrases", texts, own, first[~same], second[~same]),
    ]


def unit(rows: Array) -> Array:
    rows = rows.astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def measure(marker: RegionMarker, pairs: Pairs) -> Row:
    """Share of pairs in one region: all, near ones, by quarter of the original's margin, and of random pairs."""
    old, new = marker.regions(pairs.before), marker.regions(pairs.after)
    stays, near = old == new, row_cosines(pairs.before, pairs.after) >= 0.8
    quarter = np.argsort(np.argsort(marker.margins(pairs.before), kind="stable")) * 4 // len(old)
    shares = np.bincount(marker.regions(pairs.embeddings), minlength=2**marker.dimension) / len(pairs.embeddings)
    carries = np.isin(old, marker.key_.mark.regions)
    row: Row = {"stays": float(stays.mean()), "near": float(stays[near].mean()), "near_share": float(near.mean())}
    row |= {f"quarter {place + 1}": float(stays[quarter == place].mean()) for place in range(4)}
    return row | {"marked": float(stays[carries].mean()) if carries.any() else None, "chance": float((shares**2).sum())}


def run(log: Log, everything: Sequence[Pairs], keys: int, slow_keys: int, settings: dict[str, int]) -> None:
    """Go through the pairs key by key, the slow reducers last: a run that is stopped has about as many of each."""
    for spaces, count in (([name for name in SPACES if name not in SLOW], keys), (SLOW, slow_keys)):
        for seed, pairs, space in product(range(count), everything, spaces):

            def row(pairs: Pairs = pairs, seed: int = seed, space: str = space) -> Row:
                try:
                    marker = RegionMarker(dimension=4, seed=seed, **SPACES[space], **settings)
                    marker.fit(pairs.texts, embeddings=pairs.embeddings)
                except RegionMarkerError as error:
                    return {"failed": str(error)}
                return measure(marker, pairs)

            log.once({"pairs": pairs.name, "space": space, "seed": seed}, row)


def report(log: Log) -> None:
    names = list(dict.fromkeys(str(row["pairs"]) for row in log.rows))
    body = []
    for name in names:
        for space in SPACES:
            rows = log.of(pairs=name, space=space)
            if not rows:
                continue
            good = [row for row in rows if "failed" not in row]
            count = str(len(rows)) if len(good) == len(rows) else f"{len(good)} of {len(rows)}"
            columns = ("chance", "stays", "near", "marked", *(f"quarter {place}" for place in range(1, 5)))
            body.append([name, space, count, *(spread(numbers(good, column), 2) if good else "" for column in columns)])
    header = [
        "pairs",
        "reducer",
        "keys",
        "random pairs",
        "stay",
        "stay, cos ≥ 0.8",
        "stay, marked",
        "Q1",
        "Q2",
        "Q3",
        "Q4",
    ]
    print(markdown(header, body))


def main() -> None:
    parser = Command(__doc__, PAGE, data=True, smoke={"encoder": "wordllama", "keys": 1, "slow_keys": 0})
    parser.add_argument("--encoder", default="sentence-transformers:all-MiniLM-L6-v2")
    parser.add_argument("--cache", type=Path, help="a file that keeps what was embedded")
    parser.add_argument("--work", type=Path, default=Path("out/paraphrases"))
    parser.add_argument("--keys", type=int, default=10)
    parser.add_argument("--slow-keys", type=int, default=2, help="of the auto-encoder and of UMAP")
    options = parser.read()
    log = Log(options.work / "paraphrases.jsonl")
    everything = [apertium(options.data_dir, name) for name in CORPORA]
    everything += mrpc(options.data_dir, load_encoder(options.encoder, cache=options.cache))
    run(log, everything, options.keys, options.slow_keys, key_settings(options))
    report(log)


if __name__ == "__main__":
    main()
