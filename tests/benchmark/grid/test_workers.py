"""Batches stay together, idle workers help, and a death costs one cell."""

from __future__ import annotations

from regionmarker.benchmark.grid import Cell
from regionmarker.benchmark.grid.workers import Died, run_batches


def cells(name, count):
    return [Cell(name, "p", "d", (), "s", "copy", queries=1, seed=seed) for seed in range(count)]


class Pretend:
    """Workers that answer in the order of their names, one at a time; some cells kill."""

    def __init__(self, workers, deadly=()):
        self.workers, self.deadly, self.busy, self.did, self.closed = workers, deadly, {}, [], False

    def start(self):
        return list(self.workers)

    def submit(self, worker, cell):
        assert worker not in self.busy
        self.busy[worker] = cell
        self.did.append((worker, cell.corpus))

    def wait(self):
        worker = min(self.busy)
        cell = self.busy.pop(worker)
        return [(worker, Died("signal 9") if cell in self.deadly else cell.columns())]

    def close(self):
        self.closed = True


def test_every_cell_is_done_once():
    pool, batches = Pretend("ab"), [cells("x", 5), [], cells("y", 1), cells("z", 4)]
    done = [cell for cell, _ in run_batches(pool, batches)]
    assert sorted(done) == sorted(cell for batch in batches for cell in batch)
    assert pool.closed


def test_a_batch_stays_with_a_worker_while_there_are_others():
    pool = Pretend("ab")
    list(run_batches(pool, [cells(name, 3) for name in "wxyz"]))
    first = [corpus for worker, corpus in pool.did if worker == "a"]
    assert first[:6] == ["w"] * 3 + ["y"] * 3


def test_idle_workers_take_half_of_what_another_has_left():
    pool = Pretend("ab")
    list(run_batches(pool, [cells("x", 8)]))
    assert {worker for worker, _ in pool.did} == {"a", "b"}


def test_a_death_is_a_row_that_says_so():
    deadly = cells("x", 3)[1]
    rows = dict(run_batches(Pretend("a", deadly=[deadly]), [cells("x", 3)]))
    assert rows[deadly]["error"] == "the worker died: signal 9"
    assert rows[deadly]["error_kind"] == "died"
    assert sum("error" in row for row in rows.values()) == 1


def test_workers_end_when_nobody_listens_any_more():
    pool = Pretend("ab")
    rows = run_batches(pool, [cells("x", 8)])
    next(rows)
    rows.close()  # what Ctrl-C does
    assert pool.closed
