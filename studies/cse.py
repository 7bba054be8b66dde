"""How long CSE takes on all of SST-2, and how much memory: 67,349 sentences embedded by all-MiniLM-L6-v2.

    python -m studies.cse --data-dir DIR (--cache DIR [--minilm MODEL] | --stand-in) [--method gmm] [--json FILE]

DIR of the data holds sst2.parquet (split, text). MODEL is a name or folder for sentence-transformers; its vectors are
made once and kept in the cache folder. With `--stand-in` WordLlama's vectors, mapped to the same width at random, take
their place: the cost hangs on the shape and the clusters' sizes alone, and no model has to run for minutes.

The thief's public encoder is WordLlama. Peak memory is that of the whole process, vectors and encoders included; BLAS
runs on one thread.
"""

from __future__ import annotations

import json
import os
import resource
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

from regionmarker import load_encoder
from regionmarker.benchmark.attacks import CSE
from regionmarker.benchmark.protocols import StolenData
from studies._study import Command

PAGE = "docs/results/detectors.md"


def sentences(folder: Path) -> list[str]:
    table = pq.read_table(folder / "sst2.parquet", columns=["split", "text"]).to_pydict()
    return [text for split, text in zip(table["split"], table["text"], strict=True) if split == "train"]


def embedded(texts: list[str], model: str, cache: Path) -> np.ndarray:
    path = cache / "minilm_sst2.npy"
    if not path.exists():
        cache.mkdir(parents=True, exist_ok=True)
        np.save(path, load_encoder(f"sentence-transformers:{model}").encode(texts))
    return np.load(path)


def stand_in(texts: list[str]) -> np.ndarray:
    rows = load_encoder("wordllama").encode(texts)
    rows = rows @ np.random.default_rng(0).standard_normal((rows.shape[1], 384)).astype(np.float32)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


class Remembered:
    """WordLlama's vectors, made before the clock starts."""

    def __init__(self, texts: list[str]) -> None:
        encoder = load_encoder("wordllama")
        self.name, self._rows = encoder.name, encoder.encode(texts)

    def encode(self, texts: list[str]) -> np.ndarray:
        """Answer for the texts, which come in the same order."""
        return self._rows[: len(texts)]


def main() -> None:
    parser = Command(__doc__, PAGE, data=True, smoke={"stand_in": True})
    parser.add_argument("--cache", type=Path)
    parser.add_argument("--stand-in", action="store_true")
    parser.add_argument("--minilm", default="all-MiniLM-L6-v2")
    parser.add_argument("--method", default="kmeans")
    parser.add_argument("--json", type=Path)
    given = parser.read()
    if given.stand_in == (given.cache is not None):
        parser.error("give --cache DIR or --stand-in")
    texts = sentences(given.data_dir)
    served = stand_in(texts) if given.stand_in else embedded(texts, given.minilm, given.cache)
    stolen = StolenData(tuple(texts), served, public=Remembered(texts))
    attack = CSE(method=given.method)
    begun, cpu = time.perf_counter(), time.process_time()
    suspicion = attack.suspects(stolen)
    pairs = time.process_time() - cpu
    attacked = attack.removed(stolen, suspicion)
    whole, wall = time.process_time() - cpu, time.perf_counter() - begun
    found = {
        "texts": len(texts),
        "width": served.shape[1],
        "provider": "stand-in" if given.stand_in else given.minilm,
        "method": given.method,
        "pairs": suspicion.pairs,
        "suspicious_texts": len(suspicion.rows),
        "rank_error": suspicion.error,
        "least_difference": float(suspicion.differences[-1]),
        "cpu_seconds": round(whole, 1),
        "cpu_seconds_of_clusters_and_pairs": round(pairs, 1),
        "wall_seconds": round(wall, 1),
        "load": os.getloadavg()[0],
        "peak_gigabytes": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2),
        "texts_left": len(attacked),
    }
    text = json.dumps(found, indent=2)
    print(text)
    if given.json:
        given.json.write_text(text)


if __name__ == "__main__":
    main()
