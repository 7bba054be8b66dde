"""A run: every cell a row, killed and resumed the same rows, and the same from every engine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pyarrow.parquet as pq
import pytest

from regionmarker.benchmark.grid import Grid, Store, run_grid
from regionmarker.benchmark.grid.inputs import GridInputs
from regionmarker.benchmark.grid.workers import Died, ProcessWorkers
from regionmarker.errors import InputError
from regionmarker.verification.decoy_test import DecoyTest

DEADLINE = 600.0


def command(grid_file, out, *options):
    return [sys.executable, "-m", "regionmarker", "bench", "run", str(grid_file), "--out", str(out), *options]


def test_every_cell_is_a_row_with_its_numbers(unbroken):
    rows = Store.reading(unbroken).rows()
    assert len(rows) == 18  # 3 attacks x (none: 1, two defenses: 2) and 3 providers
    assert [row["error"] for row in rows] == [None] * 18
    stolen = [row for row in rows if row["stealer"]]
    assert all(0.3 < row["fidelity"] <= 1 and 0 < row["stolen_accuracy"] <= 1 for row in stolen)
    assert all(row["served_accuracy"] > 0.5 and 0 < row["overlap"] <= 1 for row in rows)
    wet = {row["attack"]: row for row in rows if row["defense"].startswith("wet") and row["guilty"]}
    assert np.isnan(wet["truncate:0.5"]["decoy_p"])  # cannot be applied to another width
    assert wet["none"]["decoy_p"] == pytest.approx(1 / 128)


def test_the_published_rule_and_the_decoy_test_stand_beside_innocents(unbroken):
    rows = Store.reading(unbroken).rows()
    for defense in ("embmarker:pool=128,high=0.1", "wet:pool=128,probes=64"):
        suspects = {row["suspect"] for row in rows if row["defense"] == defense}
        assert suspects == {"copy", "unmarked copy", "provider"}
    assert not any(row["guilty"] for row in rows if row["suspect"] != "copy" or row["defense"].startswith("none"))


def test_scores_are_kept_so_that_p_can_be_computed_again(unbroken):
    store = Store.reading(unbroken)
    for row in store.rows():
        z, chosen = store.scores(row["digest"])
        if np.isfinite(z).any():
            assert DecoyTest(z).p_value(chosen) == row["decoy_p"]


def test_all_rows_are_one_table(unbroken):
    table = pq.read_table(unbroken / "results.parquet")
    assert table.num_rows == 18
    assert "z" not in table.column_names
    assert table["digest"].to_pylist() == Store.reading(unbroken).planned()


def test_killed_at_any_point_and_resumed_it_is_an_unbroken_run(tmp_path, grid_file, unbroken, comparable):
    out = tmp_path / "out"
    for wanted in (1, 4, 9):  # killed when so many cells are there, or while more are being written
        process = subprocess.Popen(
            command(grid_file, out, "--workers", "2"), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        limit = time.monotonic() + DEADLINE
        while len(list((out / "cells").glob("*.parquet"))) < wanted and process.poll() is None:
            assert time.monotonic() < limit
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert len(list((out / "cells").glob("*.parquet"))) >= min(wanted, 18)
    finished = subprocess.run(command(grid_file, out, "--json"), capture_output=True, text=True, timeout=DEADLINE)
    assert finished.returncode == 0, finished.stderr
    assert comparable(out) == comparable(unbroken)
    assert not list(out.rglob(".*.tmp"))


def test_a_second_run_computes_nothing(tmp_path, grid_file, unbroken):
    before = {path: path.stat().st_mtime_ns for path in (unbroken / "cells").iterdir()}
    summary = run_grid(Grid.read(grid_file), unbroken, engine="here")
    assert (summary.cells, summary.computed, summary.failed) == (18, 0, 0)
    assert {path: path.stat().st_mtime_ns for path in (unbroken / "cells").iterdir()} == before


def test_processes_give_the_same_rows(tmp_path, grid_file, unbroken, comparable):
    out = tmp_path / "out"
    finished = subprocess.run(
        command(grid_file, out, "--engine", "processes", "--workers", "2", "--json"),
        capture_output=True,
        text=True,
        timeout=DEADLINE,
    )
    assert finished.returncode == 0, finished.stderr
    assert comparable(out) == comparable(unbroken)


def test_a_cell_that_fails_is_a_row_and_is_not_tried_again_unless_asked(tmp_path, grid_file):
    text = grid_file.read_text().replace("embmarker:pool=128", "embmarker:pool=600")  # more than there are
    grid, out = Grid.parse(text), tmp_path / "out"
    summary = run_grid(grid, out, engine="here")
    failed = [row for row in Store.reading(out).rows() if row["error"]]
    assert summary.failed == len(failed) == 7
    assert all(
        row["defense"] == "embmarker:pool=600,high=0.1" and "400 distinct texts" in row["error"] for row in failed
    )
    assert run_grid(grid, out, engine="here").computed == 0
    assert run_grid(grid, out, engine="here", retry=True).computed == 7


def test_a_dead_worker_costs_its_cell_and_is_replaced(grid_file):
    grid = Grid.read(grid_file)
    pool = ProcessWorkers(GridInputs({}, {}), 1)
    (worker,) = pool.start()
    try:
        os.kill(pool._workers[worker].process.pid, signal.SIGKILL)
        pool._workers[worker].process.join()
        pool.submit(worker, grid.cells[0])
        ((name, row),) = pool.wait()
        assert (name, row) == (worker, Died("signal 9"))
        pool.submit(worker, grid.cells[0])
        ((name, row),) = pool.wait()
        assert "KeyError" in row["error"]  # the new one answers: it was given no corpus
    finally:
        pool.close()


def test_two_runs_in_one_folder_are_refused(tmp_path, grid_file):
    with Store.writing(tmp_path / "out"), pytest.raises(InputError, match="another run is writing"):
        run_grid(Grid.read(grid_file), tmp_path / "out", engine="here")
    assert not (tmp_path / "out").exists()  # nothing was in it
