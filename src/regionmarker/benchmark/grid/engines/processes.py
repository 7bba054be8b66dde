"""Processes on this machine.

They are spawned, not forked: a fork of a process that has used threads, as torch does, may hang. Each has one thread,
because threads of several processes on few cores wait for each other more than they work.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, cast

from regionmarker.benchmark.grid.cell import Cell
from regionmarker.benchmark.grid.engines.schedule import Died, Row
from regionmarker.benchmark.grid.material import Material

_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "TOKENIZERS_PARALLELISM")
_PATIENCE = 10.0  # seconds until a worker that was told to end is killed


@dataclass
class _Worker:
    process: BaseProcess
    connection: Connection


class ProcessPool:
    """A few processes, each with a pipe to us."""

    def __init__(self, material: Material, workers: int) -> None:
        self._material, self._count = material, workers
        self._context = multiprocessing.get_context("spawn")
        self._workers: dict[Hashable, _Worker] = {}
        self._busy: set[Hashable] = set()

    def start(self) -> list[Hashable]:
        """Start the processes."""
        for number in range(self._count):
            self._workers[number] = self._spawn()
        return list(self._workers)

    def _spawn(self) -> _Worker:
        ours, theirs = self._context.Pipe()
        process = self._context.Process(target=_work, args=(theirs,), daemon=True)
        with single_threaded():
            process.start()
        theirs.close()
        with contextlib.suppress(OSError):  # one that died at once is found by wait()
            ours.send(self._material)
        return _Worker(process, ours)

    def submit(self, worker: Hashable, cell: Cell) -> None:
        """Send a cell."""
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
        """End the processes; their unfinished cells are lost."""
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
    """Be a worker: the material first, then cells, until the pipe closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one who writes results
    from regionmarker.benchmark.grid.compute import compute
    from regionmarker.benchmark.grid.workbench import Workbench

    with contextlib.suppress(EOFError, OSError):
        bench = Workbench(connection.recv())
        while True:
            connection.send(compute(connection.recv(), bench))


@contextlib.contextmanager
def single_threaded() -> Iterator[None]:
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
