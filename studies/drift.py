"""How far other texts lie from the corpus of a key: the distances behind the limit of the gateway's drift alarm.

    python -m studies.drift --data-dir DIR

Keys are fitted on 4,000 texts of one corpus; windows of 2,000 texts of every corpus, never those of the fit, are
counted by region. Printed are the least, mean and largest total variation distance over five keys.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from regionmarker import RegionMarker, load_encoder
from regionmarker.gateway.drift import LIMIT, total_variation
from regionmarker.marks.regions import region_shares
from studies._study import Command

PAGE = "docs/how-to/roll-out.md"
CORPORA = ("sst2", "mind", "ag_news", "enron")
FIT, WINDOW, KEYS = 4000, 2000, 5


def read(folder: Path, name: str, count: int) -> list[str]:
    texts = [text for text in pq.read_table(folder / f"{name}.parquet").column("text").to_pylist() if text.strip()]
    np.random.default_rng(0).shuffle(texts)
    return texts[:count]


def main() -> None:
    parser = Command(__doc__, PAGE, data=True, smoke={"fit": 700, "window": 300, "keys": 1})
    parser.add_argument("--fit", type=int, default=FIT, help="texts that a key is made from")
    parser.add_argument("--window", type=int, default=WINDOW, help="texts that are counted")
    parser.add_argument("--keys", type=int, default=KEYS)
    given = parser.read()
    encoder = load_encoder("wordllama")
    texts = {name: read(given.data_dir, name, given.fit + given.window) for name in CORPORA}
    vectors = {name: encoder.encode(texts[name]) for name in CORPORA}
    print("fitted on " + "".join(f"{name:>20}" for name in CORPORA))
    beyond = {True: 0, False: 0}
    for fitted in CORPORA:
        found: dict[str, list[float]] = {name: [] for name in CORPORA}
        for seed in range(given.keys):
            marker = RegionMarker(seed=seed)
            marker.fit(texts[fitted][: given.fit], embeddings=vectors[fitted][: given.fit])
            for name in CORPORA:
                mark = marker.serving_.mark
                watched = marker.regions(vectors[name][given.fit :]) & (2**mark.watched_bits - 1)
                found[name].append(total_variation(region_shares(watched, mark.watched_bits), mark.shares))
                beyond[name == fitted] += found[name][-1] > LIMIT
        cells = (f"{min(values):.2f} {np.mean(values):.2f} {max(values):.2f}" for values in found.values())
        print(f"{fitted:10}" + "".join(f"{cell:>20}" for cell in cells))
    same, other = given.keys * len(CORPORA), given.keys * len(CORPORA) * (len(CORPORA) - 1)
    print(f"beyond {LIMIT}: {beyond[True]} of {same} windows of the same corpus, {beyond[False]} of {other} of others")


if __name__ == "__main__":
    main()
