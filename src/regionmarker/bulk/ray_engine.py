"""The same job on Ray: a pool of workers, each of which opens the key itself.

Ray Data hands out shards by name and counts them in again; it never sees a vector. What travels is a job, a reference
to the key and names of shards, and back come manifest entries: no key material is an argument, a result or an object of
Ray's store. Shards are marked, written and entered by the code of the local engine, so the bytes are the same. Why
Ray Data's own writer and checkpoints are not used: docs/adr/0020.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from functools import cached_property
from typing import Any

from regionmarker.bulk.job import Job, JobPaths, Shard
from regionmarker.bulk.manifest import Entry
from regionmarker.bulk.run import Engine
from regionmarker.bulk.shard import ShardMarker
from regionmarker.errors import InputError, OutsideError, RegionMarkerError
from regionmarker.keys.files import KeyReference
from regionmarker.marking.marker import RegionMarker
from regionmarker.ray_cluster import first_line, ray_cluster


class ShardWorker:
    """A worker of the pool. Made once in each process; it opens the key when it first needs it, and keeps it there."""

    def __init__(self, job: Job, reference: KeyReference) -> None:
        self._job = job
        self._reference = reference

    @cached_property
    def _shard_marker(self) -> ShardMarker:
        marker = RegionMarker.from_opened(self._reference.open())
        marker.set_params(normalise=self._job.normalise or marker.normalise)
        return ShardMarker(self._job, JobPaths.of(self._job), marker)

    def __call__(self, row: dict[str, Any]) -> dict[str, Any]:
        """Mark one shard; an error travels as its sentence, because Ray would add a traceback and the arguments."""
        try:
            entry = self._shard_marker.mark(Shard(**json.loads(row["shard"])))
        except RegionMarkerError as error:
            return {"entry": "", "error": str(error), "outside": isinstance(error, OutsideError)}
        return {"entry": entry.to_json().decode(), "error": "", "outside": False}


def ray_engine(job: Job, reference: KeyReference, *, address: str | None = None, workers: int | None = None) -> Engine:
    """Mark on a Ray cluster, by default one of its own on this machine, one shard per worker at a time."""
    for where in (job.source, job.target):
        if where.startswith("memory://"):
            raise InputError(f"{where} lies in the memory of one process, where Ray's workers cannot reach it")

    def mark(shards: tuple[Shard, ...], on_rows: Callable[[int], None]) -> Iterator[Entry]:
        if not shards:
            return
        with ray_cluster(address) as ray:
            count = max(1, min(workers or int(ray.cluster_resources().get("CPU", 1)), len(shards)))
            rows = ray.data.from_items(
                [{"shard": json.dumps(asdict(shard))} for shard in shards], override_num_blocks=len(shards)
            ).map(
                ShardWorker,
                fn_constructor_args=(_absolute(job), _absolute_key(reference)),
                compute=ray.data.ActorPoolStrategy(size=count),
                num_cpus=1,
            )
            for row in _rows(ray, rows):
                if row["error"]:
                    raise OutsideError(row["error"]) if row["outside"] else InputError(row["error"])
                entry = Entry.from_json(row["entry"].encode())
                if entry is None:
                    raise OutsideError("a worker of another version of regionmarker answered: install the same one")
                on_rows(entry.rows)
                yield entry

    return mark


def _rows(ray: Any, rows: Any) -> Iterator[dict[str, Any]]:
    try:
        yield from rows.iter_rows()
    except ray.exceptions.RayError as error:
        raise OutsideError(
            f"Ray failed: {first_line(error)}; what was finished before stays, and the same command goes on from there"
        ) from None


def _absolute(job: Job) -> Job:
    return replace(job, source=_full(job.source), target=_full(job.target))


def _absolute_key(reference: KeyReference) -> KeyReference:
    """Workers have a working directory of their own."""
    secret_file = None if reference.secret_file is None else _full(reference.secret_file)
    return replace(reference, path=_full(reference.path), secret_file=secret_file)


def _full(where: str) -> str:
    return where if "://" in where else os.path.abspath(where)  # noqa: PTH100 - symbolic links stay as they are
