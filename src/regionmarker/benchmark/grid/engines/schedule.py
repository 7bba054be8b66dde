"""Which worker gets which cell.

Cells come in batches that share an unmarked thief, and a batch stays with one worker as long as there are batches
left; then idle workers take half of what the busiest one still has. A worker that dies costs the cell that it was at.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from regionmarker.benchmark.grid.cell import Cell
from regionmarker.benchmark.grid.row import DIED, failed

Row = dict[str, Any]


@dataclass(frozen=True)
class Died:
    """In place of a row: the worker is gone."""

    why: str


class Pool(Protocol):
    """Workers that compute one cell at a time each."""

    def start(self) -> list[Hashable]:
        """Start all workers; return their names."""
        ...

    def submit(self, worker: Hashable, cell: Cell) -> None:
        """Give an idle worker a cell."""
        ...

    def wait(self) -> list[tuple[Hashable, Row | Died]]:
        """Wait until at least one busy worker is done or dead; a dead one has been replaced under the same name."""
        ...

    def close(self) -> None:
        """End all workers, busy or not."""
        ...


def run_batches(pool: Pool, batches: Sequence[Sequence[Cell]]) -> Generator[tuple[Cell, Row], None, None]:
    """Yield every cell with its row, in the order in which they are done."""
    waiting = deque(deque(batch) for batch in batches if batch)
    try:
        queues: dict[Hashable, deque[Cell]] = {worker: deque() for worker in pool.start()}
        busy: dict[Hashable, Cell] = {}
        while True:
            for worker, queue in queues.items():
                if worker not in busy and (cell := _next(queue, waiting, queues)) is not None:
                    pool.submit(worker, cell)
                    busy[worker] = cell
            if not busy:
                return
            for worker, row in pool.wait():
                cell = busy.pop(worker)
                yield (
                    cell,
                    failed(cell.columns(), f"the worker died: {row.why}", DIED) if isinstance(row, Died) else row,
                )
    finally:
        pool.close()


def _next(queue: deque[Cell], waiting: deque[deque[Cell]], queues: dict[Hashable, deque[Cell]]) -> Cell | None:
    """Return the next cell of a worker: of its own batch, of the next batch, or of the longest queue of another."""
    if not queue:
        if waiting:
            queue.extend(waiting.popleft())
        else:
            longest = max(queues.values(), key=len)
            queue.extend(reversed([longest.pop() for _ in range((len(longest) + 1) // 2)]))
    return queue.popleft() if queue else None
