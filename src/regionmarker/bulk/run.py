"""Run a bulk job: what is done stays done, what is missing is made, and the manifest says what became of each shard."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from typing import Any

from regionmarker.bulk.formats import digest
from regionmarker.bulk.job import BEGUN, Job, JobPaths, Shard
from regionmarker.bulk.manifest import DONE, Entry, JobFile, KeyLabel, write_manifest
from regionmarker.bulk.shard import ShardMarker, Stopped
from regionmarker.bulk.storage import Storage
from regionmarker.errors import InputError
from regionmarker.marking.marker import RegionMarker

Engine = Callable[[tuple[Shard, ...], Callable[[int], None]], Iterable[Entry]]
"""Marks shards, reports rows as they are done where it can, and yields each shard's entry when it is written."""


@dataclass(frozen=True)
class JobProgress:
    """What a job reports while it runs."""

    on_plan: Callable[[int, int], None] = lambda _total_bytes, _done_bytes: None
    on_rows: Callable[[int], None] = lambda _rows: None
    on_shard: Callable[[Shard, Entry], None] = lambda _shard, _entry: None


SILENT = JobProgress()


@dataclass(frozen=True)
class Outcome:
    """What became of a job."""

    manifest: dict[str, Any]
    manifest_name: str
    already_done: int
    refused: tuple[Entry, ...]

    @property
    def whole(self) -> bool:
        """Every row of every shard was marked."""
        return not self.refused and not self.manifest["totals"]["rows_set_aside"]


def run_job(job: Job, key: KeyLabel, engine: Engine, *, force: bool = False, progress: JobProgress = SILENT) -> Outcome:
    """Run a job with an engine, or go on with one that was cut short."""
    paths = JobPaths.of(job)
    shards = paths.shards()
    if paths.target_file is not None and paths.target.info(paths.target_file) is not None and not force:
        raise InputError(f"{job.target} exists already: choose another name, or use --force")
    with paths.target.lock(paths.lock):
        try:
            return _run(job, paths, shards, key, engine, force, progress)
        finally:
            paths.target.remove_partial(paths.state, paths.manifest)
            if paths.target_file is not None:
                paths.target.remove(paths.state)


def _run(
    job: Job,
    paths: JobPaths,
    shards: tuple[Shard, ...],
    key: KeyLabel,
    engine: Engine,
    force: bool,
    progress: JobProgress,
) -> Outcome:
    job_file = JobFile(paths, job, key)
    paths.target.remove_partial(paths.state, paths.manifest)  # after a run that was killed
    if force:
        paths.target.remove(f"{paths.state}/entries")
    elif not job_file.belongs():
        _refuse_strangers(paths, job)
    job_file.write()
    done = {} if force else _finished(paths, shards, check_digests=job.verify_output)
    missing = tuple(shard for shard in shards if shard.name not in done)
    by_name = {shard.name: shard for shard in shards}
    progress.on_plan(sum(shard.bytes for shard in shards), sum(by_name[name].bytes for name in done))
    entries = dict(done)
    for entry in engine(missing, progress.on_rows):
        entries[entry.shard] = entry
        progress.on_shard(by_name[entry.shard], entry)
    refused = tuple(entry for _, entry in sorted(entries.items()) if entry.status != DONE)
    if paths.target_file is not None and refused:
        raise InputError(str(refused[0].reason))
    paths.target.remove(f"{paths.state}/{BEGUN}")
    whole = write_manifest(paths, job_file.document, list(entries.values()))
    return Outcome(whole, paths.manifest, len(done), refused)


def _refuse_strangers(paths: JobPaths, job: Job) -> None:
    """Refuse a folder that holds something already, and nothing says that it is this job's."""
    if paths.target_file is not None:
        return
    found = [file.name for file in paths.target.files() if not file.name.startswith(f"{paths.state}/")]
    if found:
        raise InputError(
            f"{job.target} holds {found[0]} already, and no job of ours: choose an empty folder, or use --force"
        )


def _finished(paths: JobPaths, shards: tuple[Shard, ...], *, check_digests: bool) -> dict[str, Entry]:
    """Return the entries of the shards that need no work, after a look at both of their ends, or at all of them."""
    done = {}
    for shard in shards:
        entry = Entry.from_json(paths.target.read(paths.entry(shard)))
        if entry is None or entry.status != DONE:
            continue
        _refuse_changed_input(paths, shard, entry, check_digests=check_digests)
        written = paths.target.info(shard.name)
        if written is None or written.bytes != entry.output_bytes:
            continue
        if not check_digests or _digest(paths.target, shard.name) == entry.output_sha256:
            done[shard.name] = entry
    _refuse_lost_input(paths, shards)
    return done


def _digest(storage: Storage, name: str) -> str:
    with storage.open_local(name) as path:
        return digest(path, "file")


def _refuse_changed_input(paths: JobPaths, shard: Shard, entry: Entry, *, check_digests: bool) -> None:
    if not check_digests and (entry.input_bytes, entry.input_stamp) == (shard.bytes, shard.stamp):
        return
    with paths.source.open_local(shard.source) as path:  # touched, or copied anew: its bytes decide
        if entry.input_sha256 == digest(path, shard.kind, shard.part):
            return
    raise InputError(
        f"{shard.source} changed since it was marked: put it back, choose another output, "
        "or use --force to mark everything again"
    )


def _refuse_lost_input(paths: JobPaths, shards: tuple[Shard, ...]) -> None:
    prefix, known = f"{paths.state}/entries/", {shard.name for shard in shards}
    for file in paths.target.files():
        name = file.name.removeprefix(prefix).removesuffix(".json")
        if not file.name.startswith(prefix) or name in known:
            continue
        entry = Entry.from_json(paths.target.read(file.name))
        if entry is None or entry.status != DONE:
            paths.target.remove(file.name)  # of a shard that was refused: nothing of it is in the output
        else:
            raise InputError(
                f"{name} was marked before, but its input is gone: put it back, choose another output, "
                "or use --force to mark everything again"
            )


def local_engine(job: Job, marker: RegionMarker, workers: int | None = None) -> Engine:
    """Mark on this machine, ``workers`` shards at a time; reading, marking and writing overlap within each."""
    count = workers or max(2, (os.cpu_count() or 2) // 2)

    def mark(shards: tuple[Shard, ...], on_rows: Callable[[int], None]) -> Iterator[Entry]:
        shard_marker = ShardMarker(job, JobPaths.of(job), marker, threading.Event())
        with ThreadPoolExecutor(count) as pool:
            waiting = {pool.submit(shard_marker.mark, shard, on_rows) for shard in shards}
            try:
                yield from _as_done(waiting)
            finally:  # an error or an interruption: let the others drop what they have begun
                shard_marker.stopped.set()
                for future in waiting:
                    future.cancel()

    return mark


def _as_done(waiting: set[Future[Entry]]) -> Iterator[Entry]:
    while waiting:
        done, _ = wait(waiting, return_when=FIRST_COMPLETED)
        waiting -= done
        stopped = False
        for future in done:
            try:
                yield future.result()
            except Stopped:
                stopped = True
        if stopped:
            return
