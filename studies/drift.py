"""How far other texts lie from the corpus of a key: the distances behind the limit of the gateway's drift alarm.

    REGIONMARKER_DATA=FOLDER python studies/drift.py

Keys are fitted on 4,000 texts of one corpus; windows of 2,000 texts of every corpus, never those of the fit, are
counted by region. Printed are the least, mean and largest total variation distance over five keys.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from regionmarker import RegionMarker, load_encoder
from regionmarker.gateway.drift import LIMIT, total_variation
from regionmarker.marks.regions import region_shares

CORPORA = ("sst2", "mind", "ag_news", "enron")
FIT, WINDOW, KEYS = 4000, 2000, 5


def read(folder: Path, name: str) -> list[str]:
    texts = [text for text in pq.read_table(folder / f"{name}.parquet").column("text").to_pylist() if text.strip()]
    np.random.default_rng(0).shuffle(texts)
    return texts[: FIT + WINDOW]


def main() -> None:
    folder = Path(os.environ["REGIONMARKER_DATA"])
    encoder = load_encoder("wordllama")
    texts = {name: read(folder, name) for name in CORPORA}
    vectors = {name: encoder.encode(texts[name]) for name in CORPORA}
    print("fit on    " + "".join(f"{name:>20}" for name in CORPORA))
    beyond = {True: 0, False: 0}
    for fit in CORPORA:
        found: dict[str, list[float]] = {name: [] for name in CORPORA}
        for seed in range(KEYS):
            marker = RegionMarker(seed=seed, pool=512, reservoir=2048)
            marker.fit(texts[fit][:FIT], embeddings=vectors[fit][:FIT])
            for name in CORPORA:
                shares = region_shares(marker.regions(vectors[name][FIT:]), marker.dimension)
                found[name].append(total_variation(shares, marker.key_.mark.shares))
                beyond[name == fit] += found[name][-1] > LIMIT
        cells = (f"{min(values):.2f} {np.mean(values):.2f} {max(values):.2f}" for values in found.values())
        print(f"{fit:10}" + "".join(f"{cell:>20}" for cell in cells))
    same, other = KEYS * len(CORPORA), KEYS * len(CORPORA) * (len(CORPORA) - 1)
    print(f"beyond {LIMIT}: {beyond[True]} of {same} windows of the same corpus, {beyond[False]} of {other} of others")


if __name__ == "__main__":
    main()
