"""Write the golden files of the present format: run once for a new format version, never to make a test pass.

python tests/golden/make.py v1
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

from regionmarker import RegionMarker
from regionmarker.keys.commitment import commit
from regionmarker.keys.files import save_serving

FOLDER = Path(__file__).parent
WIDTH, TEXTS = 24, 400


def main(version: str) -> None:
    rows = np.random.default_rng(2026).standard_normal((TEXTS + 100, WIDTH)).astype(np.float32)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    texts = [f"golden text number {number}" for number in range(TEXTS)]
    marker = RegionMarker(pool=32, reservoir=128, subspace=8).fit(texts, embeddings=rows[:TEXTS])
    marker = RegionMarker.from_key(marker.key_.with_salt(b"public randomness of the golden key"))
    marker.save(FOLDER / f"{version}.rmkey")
    serving = marker.key_.serving(["acme", "zenith"])
    save_serving(FOLDER / f"{version}-serving.rmkey", serving, None)
    inputs = rows[TEXTS:]
    clear = marker.margins(inputs) > 1e-4  # on a hyperplane, float32 arithmetic may fall either way
    inputs = inputs[clear]
    np.savez(
        FOLDER / f"{version}.npz",
        inputs=inputs,
        served=marker.transform(inputs),
        acme=marker.transform(inputs, tenant="acme"),
        regions=marker.regions(inputs),
    )
    facts = {"id": marker.key_.id, "commitment": commit(marker.key_), "created": marker.key_.created}
    (FOLDER / f"{version}.json").write_text(json.dumps(facts, indent=2) + "\n")


if __name__ == "__main__":
    main(sys.argv[1])
