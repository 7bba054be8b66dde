"""Who computes the cells: this process, processes on this machine, or Ray.

    schedule.py      which worker gets which cell, and what happens when one dies; the same for all engines
    here.py          this process
    processes.py     processes on this machine
    cluster.py       Ray

All give the same row for a cell.
"""

from __future__ import annotations

from regionmarker.benchmark.grid.engines.schedule import Died, Pool, run_batches
from regionmarker.benchmark.grid.material import Material
from regionmarker.errors import InputError

ENGINES = ("processes", "ray", "here")

__all__ = ["ENGINES", "Died", "Pool", "check_engine", "make_pool", "run_batches"]


def check_engine(engine: str, address: str | None = None) -> None:
    """Say what is wrong with the choice of an engine."""
    if engine not in ENGINES:
        raise InputError(f"unknown engine {engine!r}: give {', '.join(ENGINES)}")
    if address is not None and engine != "ray":
        raise InputError("--address is for --engine ray")


def make_pool(engine: str, material: Material, workers: int, *, address: str | None = None) -> Pool:
    """Start the workers of an engine."""
    check_engine(engine, address)
    if workers < 1:
        raise InputError(f"workers must be at least 1, but are {workers}")
    if engine == "here":
        from regionmarker.benchmark.grid.engines.here import HerePool

        return HerePool(material)
    if engine == "ray":
        from regionmarker.benchmark.grid.engines.cluster import RayPool

        return RayPool(material, workers, address=address)
    from regionmarker.benchmark.grid.engines.processes import ProcessPool

    return ProcessPool(material, workers)
