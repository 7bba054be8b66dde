"""Who computes cells: this process, or a few processes on this machine.

Cells come in batches that share an unmarked copy, and a batch stays with one worker as long as there are batches
left; then idle workers take half of what the busiest one still has. A worker that dies costs the cell that it was at.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
from collections import deque
from collections.abc import Generator, Hashable, Iterator, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Protocol, cast

from regionmarker.benchmark.grid.cell import DIED, Cell, failed
from regionmarker.benchmark.grid.experiment import compute
from regionmarker.benchmark.grid.inputs import GridInputs
from regionmarker.benchmark.grid.parts import CellParts
from regionmarker.errors import InputError

ENGINES = ("processes", "here")
_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "TOKENIZERS_PARALLELISM")
_PATIENCE = 10.0  # seconds until a worker that was asked to end is killed

Row = dict[str, Any]


@dataclass(frozen=True)
class Died:
    """In place of a row: the worker is gone."""

    why: str


class Workers(Protocol):
    """Workers that compute one cell at a time each."""

    def start(self) -> list[Hashable]:
        """Start all workers; return their names."""

    def submit(self, worker: Hashable, cell: Cell) -> None:
        """Give an idle worker a cell."""

    def wait(self) -> list[tuple[Hashable, Row | Died]]:
        """Wait until at least one busy worker is done or dead; a dead one has been replaced under the same name."""

    def close(self) -> None:
        """End all workers, busy or not."""


def run_batches(workers: Workers, batches: Sequence[Sequence[Cell]]) -> Generator[tuple[Cell, Row], None, None]:
    """Yield every cell with its row, in the order in which they are done."""
    waiting = deque(deque(batch) for batch in batches if batch)
    try:
        queues: dict[Hashable, deque[Cell]] = {worker: deque() for worker in workers.start()}
        busy: dict[Hashable, Cell] = {}
        while True:
            for worker, queue in queues.items():
                if worker not in busy and (cell := _next(queue, waiting, queues)) is not None:
                    workers.submit(worker, cell)
                    busy[worker] = cell
            if not busy:
                return
            for worker, row in workers.wait():
                cell = busy.pop(worker)
                if isinstance(row, Died):
                    row = failed(cell.columns(), f"the worker died: {row.why}", DIED)
                yield cell, row
    finally:
        workers.close()


def _next(queue: deque[Cell], waiting: deque[deque[Cell]], queues: dict[Hashable, deque[Cell]]) -> Cell | None:
    """Return the next cell of a worker: of its own batch, of the next batch, or of the longest queue of another."""
    if not queue:
        if waiting:
            queue.extend(waiting.popleft())
        else:
            longest = max(queues.values(), key=len)
            queue.extend(reversed([longest.pop() for _ in range((len(longest) + 1) // 2)]))
    return queue.popleft() if queue else None


class SerialWorkers:
    """One worker: this process computes the cells, one after the other."""

    def __init__(self, inputs: GridInputs) -> None:
        self._parts = CellParts(inputs)
        self._cells: dict[Hashable, Cell] = {}

    def start(self) -> list[Hashable]:
        return ["this process"]

    def submit(self, worker: Hashable, cell: Cell) -> None:
        self._cells[worker] = cell

    def wait(self) -> list[tuple[Hashable, Row | Died]]:
        return [(worker, compute(self._cells.pop(worker), self._parts)) for worker in list(self._cells)]

    def close(self) -> None: ...


@dataclass
class _Worker:
    process: BaseProcess
    connection: Connection


class ProcessWorkers:
    """Processes on this machine, each with a pipe to us.

    They are spawned, not forked: a fork of a process that has used threads, as torch does, may hang. Each has one
    thread, because threads of several processes on few cores wait for each other more than they work.
    """

    def __init__(self, inputs: GridInputs, count: int) -> None:
        self._inputs, self._count = inputs, count
        self._context = multiprocessing.get_context("spawn")
        self._workers: dict[Hashable, _Worker] = {}
        self._busy: set[Hashable] = set()

    def start(self) -> list[Hashable]:
        for number in range(self._count):
            self._workers[number] = self._spawn()
        return list(self._workers)

    def _spawn(self) -> _Worker:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_work, args=(theirs,), daemon=True)
        with _single_threaded():
            process.start()
        theirs.close()
        with contextlib.suppress(OSError):  # one that died at once is found by wait()
            ours.send(self._inputs)
        return _Worker(process, ours)

    def submit(self, worker: Hashable, cell: Cell) -> None:
        self._busy.add(worker)
        with contextlib.suppress(OSError):
            self._workers[worker].connection.send(cell)

    def wait(self) -> list[tuple[Hashable, Row | Died]]:
        """Wait for rows; a closed pipe is a dead worker."""
        names = {self._workers[name].connection: name for name in self._busy}
        found: list[tuple[Hashable, Row | Died]] = []
        for connection in wait(list(names)):
            name = names[cast("Connection[Any, Any]", connection)]
            found.append((name, self._receive(name)))
            self._busy.discard(name)
        return found

    def _receive(self, name: Hashable) -> Row | Died:
        worker = self._workers[name]
        try:
            row: Row = worker.connection.recv()
        except (EOFError, OSError):
            worker.connection.close()
            worker.process.join()
            code = worker.process.exitcode or 0
            self._workers[name] = self._spawn()
            return Died(f"signal {-code}" if code < 0 else f"exit code {code}")
        return row

    def close(self) -> None:
        for name, worker in self._workers.items():
            worker.connection.close()  # one that waits for work ends by itself, and tidies up
            if name in self._busy:
                worker.process.terminate()
        for worker in self._workers.values():
            worker.process.join(_PATIENCE)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()
            worker.process.close()
        self._workers.clear()


def _work(connection: Connection) -> None:
    """Be a worker: the grid's inputs first, then cells, until the pipe closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one who writes results
    with contextlib.suppress(EOFError, OSError):
        parts = CellParts(connection.recv())
        while True:
            connection.send(compute(connection.recv(), parts))


@contextlib.contextmanager
def _single_threaded() -> Iterator[None]:
    """Let processes that start now use one thread each."""
    before = {name: os.environ.get(name) for name in _THREADS}
    os.environ.update({name: "false" if name.startswith("TOKENIZERS") else "1" for name in _THREADS})
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value


def check_engine(engine: str) -> None:
    """Say what is wrong with the choice of who computes."""
    if engine == "ray":
        raise InputError("a grid is computed on one machine: its Ray workers were retired, use --engine processes")
    if engine not in ENGINES:
        raise InputError(f"unknown engine {engine!r}: give {', '.join(ENGINES)}")
