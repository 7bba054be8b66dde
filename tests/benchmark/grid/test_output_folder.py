"""The store: rows whole or not there, nothing left by the killed, failures told from deaths."""

from __future__ import annotations

import numpy as np
import pytest

from regionmarker.benchmark.grid import Store
from regionmarker.benchmark.grid.cell import DIED, failed
from regionmarker.errors import InputError


def test_what_killed_writers_left_goes_before_and_after(tmp_path):
    (tmp_path / "cells").mkdir()
    stale = [tmp_path / ".results.parquet.abc.tmp", tmp_path / "cells" / ".d1.parquet.def.tmp"]
    for path in stale:
        path.write_text("half")
    with Store.writing(tmp_path) as store:
        assert not any(path.exists() for path in stale)
        stale[1].write_text("half")
        store.plan(["d1"])
    assert not any(path.exists() for path in stale)


def test_dead_cells_are_tried_again_and_failed_ones_are_not(tmp_path):
    with Store.writing(tmp_path) as store:
        store.add("good", {"decoy_p": 0.5})
        store.add("failed", failed({}, "too few texts"))
        store.add("died", failed({}, "signal 9", DIED))
        digests = ["good", "failed", "died", "new"]
        assert store.missing(digests) == ["died", "new"]
        assert store.missing(digests, retry=True) == ["failed", "died", "new"]


def test_rows_of_other_grids_in_the_folder_do_not_count(tmp_path):
    with Store.writing(tmp_path) as store:
        for name in ("old", "b", "a"):
            store.add(name, {"seed": 1})
        store.plan(["a", "b", "missing"])
        assert [row["digest"] for row in store.rows()] == ["a", "b"]


def test_scores_come_back_bit_for_bit(tmp_path):
    z = np.random.default_rng(0).standard_normal((3, 50))
    with Store.writing(tmp_path) as store:
        store.add("a", {"z": z.ravel().tolist(), "z_rows": 3, "chosen": [4, 5, 6]})
        store.add("b", {})
        found, chosen = store.scores("a")
        assert (found == z).all()
        assert chosen == (4, 5, 6)
        assert store.scores("b") is None
        assert "z" not in store.row("a")


def test_a_run_that_wrote_nothing_leaves_no_folder(tmp_path):
    with pytest.raises(InputError), Store.writing(tmp_path / "out"):
        raise InputError("the hub is down")
    assert not (tmp_path / "out").exists()


def test_a_folder_without_results_is_told(tmp_path):
    with pytest.raises(InputError, match="holds no results: run regionmarker bench run"):
        Store.reading(tmp_path)
