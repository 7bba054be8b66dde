"""Ray: the same cells on other machines."""

from __future__ import annotations

import logging
import os
from collections.abc import Hashable
from dataclasses import replace
from typing import Any

from regionmarker.benchmark.grid.cell import Cell
from regionmarker.benchmark.grid.inputs import Material
from regionmarker.benchmark.grid.workers import Died, Row, single_threaded
from regionmarker.errors import MissingExtraError, OutsideError

_ATTEMPTS = 4


class RayPool:
    """Actors, each with one processor.

    Parameters
    ----------
    material
        Sent once to each node through Ray's object store. Workers elsewhere do not see our cache folder, so they embed
        what is not in the material themselves.
    workers
        How many actors.
    address
        An existing cluster; None starts one on this machine and ends it again.
    """

    def __init__(self, material: Material, workers: int, *, address: str | None = None) -> None:
        os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")  # its C++ half writes to stderr on its own
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")  # the coming default; else it warns
        try:
            import ray
        except ImportError:
            raise MissingExtraError.for_module("ray", "ray") from None
        self._ray, self._count, self._address = ray, workers, address
        self._material = replace(material, cache=None) if address else material
        self._ours = False
        self._actors: dict[Hashable, Any] = {}
        self._running: dict[Any, Hashable] = {}

    def start(self) -> list[Hashable]:
        """Join or start the cluster, and start the actors."""
        ray = self._ray
        if not ray.is_initialized():
            with single_threaded():
                self._join()
            self._ours = True
        self._shared = ray.put(self._material)
        # On fewer processors than workers each gets its part: an actor that waits for a whole one would wait for ever.
        part = min(1.0, ray.cluster_resources().get("CPU", 1.0) / self._count)
        self._kind = ray.remote(num_cpus=int(1000 * part) / 1000, max_restarts=0)(_Actor)
        for number in range(self._count):
            self._actors[number] = self._kind.remote(self._shared)
        return list(self._actors)

    def _join(self) -> None:
        """Join the cluster, or start one; Ray gives its own start 30 seconds, which a busy machine may exceed."""
        where = {"address": self._address} if self._address else {"include_dashboard": False}
        for attempt in range(1, _ATTEMPTS + 1):
            try:
                self._ray.init(**where, log_to_driver=False, logging_level=logging.ERROR)
            except Exception as error:  # noqa: BLE001 - whatever Ray raises where there is no cluster
                self._ray.shutdown()
                if attempt == _ATTEMPTS or self._address:
                    said = (str(error).splitlines() or [type(error).__name__])[0]
                    raise OutsideError(f"cannot reach Ray at {self._address or 'this machine'}: {said}") from None
            else:
                return

    def submit(self, worker: Hashable, cell: Cell) -> None:
        """Call an actor."""
        self._running[self._actors[worker].compute.remote(cell)] = worker

    def wait(self) -> list[tuple[Hashable, Row | Died]]:
        """Wait for rows; an actor that died is replaced."""
        done, _ = self._ray.wait(list(self._running), num_returns=1)
        found: list[tuple[Hashable, Row | Died]] = []
        for reference in done:
            worker = self._running.pop(reference)
            try:
                row: Row | Died = self._ray.get(reference)
            except self._ray.exceptions.RayError as error:
                row = Died((str(error).splitlines() or [type(error).__name__])[0])
                self._actors[worker] = self._kind.remote(self._shared)
            found.append((worker, row))
        return found

    def close(self) -> None:
        """End the actors, and the cluster if it is ours."""
        for actor in self._actors.values():
            self._ray.kill(actor)
        self._actors.clear()
        if self._ours:
            self._ray.shutdown()


class _Actor:
    def __init__(self, material: Material) -> None:
        from regionmarker.benchmark.grid.parts import Workbench

        self._bench = Workbench(material)

    def compute(self, cell: Cell) -> Row:
        from regionmarker.benchmark.grid.experiment import compute

        return compute(cell, self._bench)
