"""Our own process computes the cells, one after the other."""

from __future__ import annotations

from collections.abc import Hashable

from regionmarker.benchmark.grid.cell import Cell
from regionmarker.benchmark.grid.compute import compute
from regionmarker.benchmark.grid.engines.schedule import Died, Row
from regionmarker.benchmark.grid.material import Material
from regionmarker.benchmark.grid.workbench import Workbench

_ONLY = "here"


class HerePool:
    """One worker: ourselves."""

    def __init__(self, material: Material) -> None:
        self._bench, self._cell = Workbench(material), None

    _cell: Cell | None

    def start(self) -> list[Hashable]:
        """There is nothing to start."""
        return [_ONLY]

    def submit(self, worker: Hashable, cell: Cell) -> None:
        """Remember the cell."""
        del worker
        self._cell = cell

    def wait(self) -> list[tuple[Hashable, Row | Died]]:
        """Compute it."""
        return [(_ONLY, compute(self._cell, self._bench))] if self._cell else []

    def close(self) -> None:
        """There is nothing to end."""
