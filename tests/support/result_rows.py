"""Rows of results as a grid would give them, for tables, figures and the page."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest

from regionmarker.benchmark.grid.cell import NUMBERS
from regionmarker.benchmark.tables import make_tables

ATTACKS = {"none": [], "cse": ["cse"], "shift:100": ["shift:100"], "paraphrase:stored": ["paraphrase:stored"]}


def result(defense, attack="none", suspect="copy", *, seed=0, corpus="sst2", p=0.5, copy=False, queries=4000, **more):
    numbers = dict.fromkeys(NUMBERS, 0.5) | {"clean_accuracy": 0.93, "served_accuracy": 0.93, "stolen_accuracy": 0.9}
    numbers["overlap"] = 0.95
    return {
        **numbers, "digest": f"{defense}{attack}{suspect}{seed}{corpus}{queries}", "corpus": corpus, "provider": "p",
        "limit": 0, "defense": defense, "attack": attack, "attacks": ATTACKS[attack], "stealer": "head", "public": "",
        "suspect": suspect, "queries": queries, "seed": seed, "parameters": "{}",
        "guilty": suspect == "copy" and not defense.startswith("none"), "decoy_p": p,
        "published_copy": copy, "error": None, "error_kind": None, "extras": None, **more,
    }  # fmt: skip


@pytest.fixture(scope="session")
def result_row():
    return result


@pytest.fixture(scope="session")
def rows():
    """Two seeds of three defenses: RegionMarker is caught except after CSE, WET except after shift."""
    found = []
    for seed, attack in itertools.product((0, 1), ATTACKS):
        found.append(result("none", attack, seed=seed, copy=True))
        for defense, hole in (("regionmarker", "cse"), ("wet", "shift:100")):
            p = 0.4 if attack == hole else 1e-6
            found.append(result(defense, attack, seed=seed, p=p, copy=True, fidelity=0.7 + 0.1 * seed))
            found.append(result(defense, attack, "unmarked copy", seed=seed, copy=defense == "regionmarker"))
    for strength, attack in itertools.product((0.1, 0.3), ("none", "cse")):
        chosen = json.dumps({"strength": strength})
        spec = f"regionmarker:strength={strength}"
        found.append(result(spec, attack, p=1e-5 if strength > 0.2 else 0.2, parameters=chosen, served_accuracy=0.9))
        found.append(result(spec, attack, "unmarked copy", parameters=chosen, served_accuracy=0.9))
    found.append(result("warden", error="too few <texts>", error_kind="failed", decoy_p=None, published_copy=None))
    rng = np.random.default_rng(0)
    extras = {
        "cosine_quantiles": np.linspace(0.95, 1, 101).tolist(),
        "marked_share": 0.2,
        "regions": {name: [1 / 16] * 16 for name in ("pca", "svd", "autoencoder", "none", "none, uncentred")}
        | {"umap": "too few regions"},
        "map_before": rng.standard_normal((20, 2)).tolist(),
        "map_after": rng.standard_normal((20, 2)).tolist(),
        "map_marked": [True] * 4 + [False] * 16,
    }
    found.append(result("regionmarker", suspect="portrait", extras=json.dumps(extras), stealer="", guilty=False))
    return found


@pytest.fixture(scope="module")
def tables(rows):
    return {table.name: table for table in make_tables(rows)}


def column(table, row, *heads):
    """Return the entries of the row that begins so, under these headings; of equal headings, the first."""
    (line,) = [line for line in table.rows if line[: len(row)] == row]
    return tuple(line[table.columns.index(head)] for head in heads)
