"""The portrait of a mark: regions, cosines, maps."""

from __future__ import annotations

import json

import numpy as np

from regionmarker.benchmark.grid import Grid
from regionmarker.benchmark.grid import experiment as module
from regionmarker.benchmark.grid.experiment import compute
from regionmarker.benchmark.grid.inputs import GridInputs
from regionmarker.benchmark.grid.parts import CellParts
from regionmarker.encoders import load_encoder


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
    for shares in extras["regions"].values():
        assert len(shares) == 16
        assert abs(sum(shares) - 1) < 1e-3
    assert np.array(extras["map_before"]).shape == np.array(extras["map_after"]).shape == (60, 2)
    assert len(extras["map_marked"]) == 60
