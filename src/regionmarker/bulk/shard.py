"""Mark one shard: read, mark, write and digest at the same time, then commit the whole file.

A shard is opened in a child process first, because pyarrow ends the process over some damaged footers. Should it end
this one over the rows, the note of that shard stays, and the next run reads the whole shard in the child first.

Rows that cannot be marked are set aside as they came, with their numbers, away from what is served.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from regionmarker.bulk.batch import MarkedRows, RowMarker
from regionmarker.bulk.formats import LANCE, Source, digest, open_shard
from regionmarker.bulk.job import SET_ASIDE, Job, JobPaths, Shard
from regionmarker.bulk.manifest import DONE, Entry
from regionmarker.bulk.pipeline import DigestingFile, prefetch, writing
from regionmarker.errors import InputError, OutsideError
from regionmarker.first_look import first_look
from regionmarker.marking.marker import RegionMarker

ROW_COLUMN = "regionmarker_row"
BATCH_BYTES = 16 << 20
_BATCH_ROWS = (64, 65_536)
_NAMED = 100  # rows that the manifest names


class SetAsideRows:
    """The bad rows of one shard. They go to a Parquet file with one more column, the row's number in the input."""

    def __init__(self, paths: JobPaths, shard: Shard, stack: contextlib.ExitStack) -> None:
        self._paths = paths
        self._storage, self._name = paths.set_aside(shard)
        self._stack = stack
        self._writer: Any = None
        self._path: Any = None
        self.count = 0
        self.first: tuple[int, ...] = ()
        self.reason: str | None = None

    def add(self, found: MarkedRows, first_row: int) -> None:
        numbers = [first_row + row for row in found.bad_rows]
        self.reason = self.reason or f"row {numbers[0]} {found.reason}"
        self.first = (*self.first, *numbers)[:_NAMED]
        self.count += len(numbers)
        numbered = found.set_aside.append_column(ROW_COLUMN, pa.array(numbers, pa.int64()))
        with writing(self._storage.where, self._name):
            if self._writer is None:
                self._path = self._stack.enter_context(self._paths.target.new_file(self._paths.state))
                self._writer = self._stack.enter_context(pq.ParquetWriter(self._path, numbered.schema))
            self._writer.write_batch(numbered)

    def commit(self) -> None:
        """Commit the file, or remove what an earlier run committed."""
        if self._writer is None:
            self._storage.remove(self._name)
            return
        with writing(self._storage.where, self._name):
            self._writer.close()
        self._storage.commit(self._path, self._name)


class Stopped(Exception):  # noqa: N818 - not an error: the job ends early
    """The job ends before this shard is done."""


@dataclass(frozen=True)
class ShardMarker:
    """Marks the shards of one job with one key; safe to use from several threads."""

    job: Job
    paths: JobPaths
    marker: RegionMarker
    stopped: threading.Event = field(default_factory=threading.Event)

    def mark(self, shard: Shard, on_rows: Callable[[int], None] = lambda _rows: None) -> Entry:
        """Mark one shard and write its entry down; a shard that cannot be marked is refused, and the entry says why."""
        with self.paths.source.open_local(shard.source) as path, ThreadPoolExecutor(1) as pool:
            digesting = pool.submit(digest, path, shard.kind, shard.part)
            try:
                with self._begun(shard) as died_over_it:
                    first_look(
                        "regionmarker.bulk.formats:look_at_shard", shard.source, path=str(path), kind=shard.kind,
                        column=self.job.column, part=shard.part, whole=died_over_it,
                    )  # fmt: skip
                    entry = self._mark(shard, path, digesting, on_rows)
            except InputError as error:
                entry = Entry.refused(shard, str(error).replace(str(path), shard.source))
        self.paths.target.write(self.paths.entry(shard), entry.to_json())
        return entry

    @contextlib.contextmanager
    def _begun(self, shard: Shard) -> Iterator[bool]:
        """Leave a note while a shard is worked on; give whether one was there, of a process that died over it."""
        target, note = self.paths.target, self.paths.begun(shard)
        found = target.info(note) is not None
        target.note(note)
        try:
            yield found
        finally:
            target.remove(note)

    def _mark(self, shard: Shard, path: Path, digesting: Future[str], on_rows: Callable[[int], None]) -> Entry:
        target = self.paths.target
        with contextlib.ExitStack() as stack:
            written = stack.enter_context(target.new_file(self.paths.state))
            source = stack.enter_context(open_shard(path, shard.kind, self.job.column, shard.part))
            set_aside = SetAsideRows(self.paths, shard, stack)
            rows, sha256 = self._write(shard, source, written, set_aside, on_rows)
            input_sha256 = digesting.result()
            self._check_unchanged(shard)
            if self.job.verify_output:
                self._verify(shard, path, written)
            size = written.stat().st_size
            if self.job.on_bad_row == SET_ASIDE:
                set_aside.commit()
            target.commit(written, shard.name)
        return Entry(
            shard.name, shard.source, shard.part, DONE, None, shard.bytes, shard.stamp, input_sha256,
            size, sha256, rows, set_aside.count, set_aside.first, set_aside.reason,
        )  # fmt: skip

    def _write(
        self, shard: Shard, source: Source, written: Path, set_aside: SetAsideRows, on_rows: Callable[[int], None]
    ) -> tuple[int, str]:
        rows = 0
        # Compliant names would call every list's items "element", whatever they were called before.
        options = {**source.writer_options(self.job.column), "use_compliant_nested_type": False}
        with (
            prefetch(self._marked(shard, source, set_aside)) as batches,
            writing(self.paths.target.where, shard.name),
            DigestingFile(written) as file,
        ):
            with pq.ParquetWriter(file, source.schema, **options) as writer:
                for batch in batches:
                    writer.write_batch(batch)
                    rows += len(batch)
                    on_rows(len(batch))
            return rows, file.hexdigest()

    def _marked(self, shard: Shard, source: Source, set_aside: SetAsideRows | None) -> Iterator[Any]:
        """Yield the batches to serve; bad rows go to ``set_aside`` where there is one."""
        row_marker = RowMarker(self.marker, self.job.column, self.job.tenant, self.job.tenant_column)
        row_marker.check(source.schema, shard.source)
        row = 0
        with prefetch(source.batches(_rows_per_batch(self.marker.n_features_in_))) as batches:
            for batch in batches:
                if self.stopped.is_set():
                    raise Stopped
                found = row_marker.mark(batch)
                if found.bad_rows and set_aside is not None:
                    self._note(shard, found, row, set_aside)
                if len(found.served):
                    yield found.served
                row += len(batch)

    def _note(self, shard: Shard, found: MarkedRows, first_row: int, set_aside: SetAsideRows) -> None:
        if self.job.on_bad_row == SET_ASIDE:
            set_aside.add(found, first_row)
            return
        number, more = first_row + found.bad_rows[0], len(found.bad_rows) - 1
        others = f" (and {more} more in its batch)" if more else ""
        raise InputError(
            f"{shard.source}: row {number} {found.reason}{others}; mend it, or use --on-bad-row set-aside"
            + ("" if self.job.normalise else ", or --normalise where only lengths differ")
        )

    def _check_unchanged(self, shard: Shard) -> None:
        if shard.kind == LANCE:
            return  # a fragment's files are never written twice
        now = self.paths.source.info(shard.source)
        if now is None or (now.bytes, now.stamp) != (shard.bytes, shard.stamp):
            raise InputError(f"{shard.source} changed while it was read: run again when it is at rest")

    def _verify(self, shard: Shard, path: Path, written: Path) -> None:
        """Mark the input again and compare it with what is on the disk; every batch is a row group there."""
        compared = 0
        with open_shard(path, shard.kind, self.job.column, shard.part) as source:
            for batch in self._marked(shard, source, None):
                found = _row_group(written, compared)
                if found is None or not _equal(found, pa.Table.from_batches([batch])):
                    break
                compared += 1
            else:
                if _row_group(written, compared) is None:
                    return
        raise OutsideError(
            f"{shard.name}: what was written is not what was meant, in row group {compared}; it was not put in place: "
            "check the disk and run again"
        )


def _row_group(path: Path, number: int) -> Any:
    """Read a row group back; None where there is none, or none that can be read."""
    try:
        with pq.ParquetFile(path) as file:
            return file.read_row_group(number) if number < file.num_row_groups else None
    except (pa.ArrowException, OSError):
        return None


def _rows_per_batch(width: int) -> int:
    least, most = _BATCH_ROWS
    return min(most, max(least, BATCH_BYTES // (4 * width)))


def _equal(found: Any, wanted: Any) -> bool:
    """Compare two tables; where NaN, which equals nothing, stands on both sides, their text decides."""
    return bool(found.equals(wanted)) or str(found.to_pydict()) == str(wanted.to_pydict())
