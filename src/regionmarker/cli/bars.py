"""The progress of a bulk job: a bar over the input's bytes, rows a second, time left."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from regionmarker.cli.output import people

if TYPE_CHECKING:
    from regionmarker.bulk.job import Shard
    from regionmarker.bulk.manifest import Entry
    from regionmarker.bulk.run import Progress as JobProgress


@contextmanager
def job_progress(description: str, *, quiet: bool = False) -> Iterator[JobProgress]:
    """Show a bulk job's progress on stderr for as long as the block lasts."""
    from regionmarker.bulk.run import Progress as JobProgress

    columns = (
        TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )  # fmt: skip
    start, lock, rows = time.monotonic(), threading.Lock(), 0
    with Progress(*columns, console=people, transient=True, disable=quiet or not people.is_terminal) as bars:
        task = bars.add_task(description, total=None, rate="")

        def on_plan(total_bytes: int, done_bytes: int) -> None:
            bars.update(task, total=total_bytes, completed=done_bytes)

        def on_rows(count: int) -> None:
            nonlocal rows
            with lock:
                rows += count
            bars.update(task, rate=f"{rows / max(time.monotonic() - start, 1e-3):,.0f} rows/s")

        def on_shard(shard: Shard, _entry: Entry) -> None:
            bars.advance(task, shard.bytes)

        yield JobProgress(on_plan, on_rows, on_shard)
