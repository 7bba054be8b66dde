"""A long training in a grid: done once for all that is done to the copy later, kept, and gone on with."""

from __future__ import annotations

import math

import pytest

from regionmarker.benchmark.grid import Grid, Store, run_grid

GRID = """
[encoders]
tiny = "MODEL"

[[block]]
corpora = ["CORPUS"]
provider = "wordllama"
defenses = ["none:pool=128,high=0.1", "wet:pool=128,probes=64"]
attacks = ["none", "after:rotate:3", ["after:rotate:3", "after:shift:5"], "finetune:epochs=1,limit=40,CORPUS"]
stealers = ["backbone:@tiny,epochs=1,hidden=16,max_length=16,threads=1"]
suspects = ["copy"]
queries = [200]
seeds = [3]
"""

pytestmark = pytest.mark.usefixtures("quiet_torch")


def test_one_training_serves_all_that_is_done_to_the_copy(tmp_path, tiny_bert, corpus_file):
    text = GRID.replace("MODEL", tiny_bert).replace("CORPUS", str(corpus_file))
    grid = Grid.parse(text)
    assert len(grid.batches()) == 1  # one worker trains, and has the copy at hand
    run_grid(grid, tmp_path / "out", engine="here")
    rows = Store.reading(tmp_path / "out").rows()
    assert [row["error"] for row in rows] == [None] * 8
    kept = tmp_path / "out" / "cache" / "trainings"
    assert len(list((kept / "copies").iterdir())) == 2  # of two defenses
    assert list((kept / "states").iterdir()) == []
    log = (kept / "log.txt").read_text()
    assert log.count("takes about") == 2
    for defense in ("none:pool=128,high=0.1", "wet:pool=128,probes=64"):
        some = {row["attack"]: row for row in rows if row["defense"] == defense}
        assert len({row["fidelity"] for row in some.values()}) == 1
        assert all(-1 <= row["centred_fidelity"] <= 1 for row in some.values())
        turned = some["after:rotate:3"]
        assert math.isclose(turned["stolen_accuracy"], some["none"]["stolen_accuracy"], abs_tol=0.2)
    # Another run finds the copies and trains nothing.
    run_grid(Grid.parse(text.replace("after:shift:5", "after:shift:6")), tmp_path / "out", engine="here")
    assert (kept / "log.txt").read_text().count("takes about") == 2
    assert "trained before" in (kept / "log.txt").read_text()
