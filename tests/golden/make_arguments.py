"""Write what keys are made of the same arguments and seed: run by the version that a file is called after.

    PYTHONPATH=CHECKOUT/src python tests/golden/make_arguments.py v1-arguments.json

It uses names that 0.1.0 had. The rows are drawn alike everywhere; what is fitted may differ between machines in its
last bits, so the choices are kept as they are and the marked rows as numbers.
"""

from __future__ import annotations

import json
import sys
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from regionmarker import RegionMarker

FOLDER = Path(__file__).parent
WIDTH, TEXTS, SHOWN = 16, 5200, 8
SMALL = {"subspace": 8, "pool": 64, "reservoir": 256}
OF_0_1_0: dict[str, dict[str, Any]] = {
    "defaults": {},
    "small": SMALL,
    "paper": {"subspace": 4, "tenant_ratio": 0.0, "pool": 64, "reservoir": 256},
    "svd": {**SMALL, "reducer": "svd", "dimension": 5, "ratio": 0.25, "strength": 0.3},
    "none": {"reducer": "none", "pool": 64, "reservoir": 256},
}
"""Arguments, as programs gave them to 0.1.0."""


def rows() -> np.ndarray:
    """Return rows (n, D) of unit length with a few strong directions."""
    found = np.random.default_rng(1910).standard_normal((TEXTS, WIDTH)) * np.geomspace(4, 0.5, WIDTH)
    return (found / np.linalg.norm(found, axis=1, keepdims=True)).astype(np.float32)


def facts(arguments: dict[str, Any]) -> dict[str, Any]:
    """Make a key, and tell its choices and some rows that it marked."""
    vectors, texts = rows(), [f"text number {number}" for number in range(TEXTS)]
    marker = RegionMarker(**arguments, seed=7, grid="float32").fit(texts, embeddings=vectors)
    key = marker.key_
    tenant = "acme" if key.tenant_regions else ""
    clear = np.flatnonzero(marker.margins(vectors) > 1e-3)[:SHOWN]
    return {
        "id": key.id,
        "regions": list(key.regions),
        "tenant_regions": list(key.tenant_regions),
        "pool": sha256("\n".join(key.pool.texts).encode()).hexdigest(),
        "reservoir": sha256("\n".join(key.reservoir.texts).encode()).hexdigest(),
        "provider_targets": list(key.provider_targets()),
        "tenant_targets": list(key.tenant_targets(tenant)),
        "rows": clear.tolist(),
        "served": marker.transform(vectors[clear]).tolist(),
        "of_tenant": marker.transform(vectors[clear], tenant=tenant).tolist(),
    }


if __name__ == "__main__":
    found = {name: facts(arguments) for name, arguments in OF_0_1_0.items()}
    (FOLDER / sys.argv[1]).write_text(json.dumps(found) + "\n")
