"""The portrait of a mark: regions, cosines, maps."""

from __future__ import annotations

import json

import numpy as np

from regionmarker.benchmark.grid import Grid
from regionmarker.benchmark.grid import experiment as module
from regionmarker.benchmark.grid.experiment import compute, uncentred_balance
from regionmarker.benchmark.grid.inputs import GridInputs
from regionmarker.benchmark.grid.parts import CellParts
from regionmarker.encoders import load_encoder
from regionmarker.vectors import normalised


def test_it_shows_what_the_mark_does(corpus_file, monkeypatch):
    monkeypatch.setattr(module, "_REDUCTIONS", ("pca", "none"))
    monkeypatch.setattr(module, "_MAPPED", 60)
    grid = Grid.parse(
        f'[[block]]\ncorpora = ["{corpus_file}"]\nprovider = "wordllama"\ndefenses = ["regionmarker:pool=128"]\n'
        'suspects = ["portrait"]\nqueries = [200]\nseeds = [3]\n'
    )
    inputs = GridInputs({}, {})
    inputs.gather(grid, None, load_encoder)
    row = compute(grid.cells[0], CellParts(inputs))
    assert row.get("error") is None
    extras = json.loads(row["extras"])
    assert 0.05 < extras["marked_share"] < 0.6
    quantiles = np.array(extras["cosine_quantiles"])
    assert (np.diff(quantiles) >= 0).all()
    assert quantiles[0] > 0.9  # strength 0.2
    assert extras["regions"].keys() == {"pca", "none", "pca, uncentred", "none, uncentred"}
    for shares in extras["regions"].values():
        assert len(shares) == 16
        assert abs(sum(shares) - 1) < 1e-3
    assert np.array(extras["map_before"]).shape == np.array(extras["map_after"]).shape == (60, 2)
    assert len(extras["map_marked"]) == 60


def test_regions_are_uneven_where_vectors_are_crowded_and_nobody_centres(embeddings):
    rows = embeddings[:1000]
    crowded = normalised(rows + 1.5 * np.eye(256, dtype=np.float32)[3])

    def largest(some):
        return float(np.mean([uncentred_balance(some, some, "none", seed).max() for seed in range(8)]))

    assert largest(crowded) > 1.5 * largest(rows)
    assert largest(crowded) > 0.3
    assert largest(crowded - crowded.mean(axis=0)) < 0.2
