"""Rows that cannot be marked, kept as they came, with their numbers, away from what is served."""

from __future__ import annotations

import contextlib
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from regionmarker.bulk.job import Layout
from regionmarker.bulk.rows import MarkedRows
from regionmarker.bulk.shards import Shard
from regionmarker.bulk.writing import writing

ROW_COLUMN = "regionmarker_row"
_NAMED = 100


class Aside:
    """The bad rows of one shard. They go to a Parquet file with one more column, the row's number in the input."""

    def __init__(self, layout: Layout, shard: Shard, stack: contextlib.ExitStack) -> None:
        self._layout = layout
        self._shard = shard
        self._place, self._name = layout.aside(shard)
        self._stack = stack
        self._writer: Any = None
        self._path: Any = None
        self.count = 0
        self.first: tuple[int, ...] = ()
        self.reason: str | None = None

    def add(self, found: MarkedRows, first_row: int) -> None:
        """Take in the bad rows of a batch."""
        numbers = [first_row + place for place in found.places]
        self.reason = self.reason or f"row {numbers[0]} {found.reason}"
        self.first = (*self.first, *numbers)[:_NAMED]
        self.count += len(numbers)
        numbered = found.aside.append_column(ROW_COLUMN, pa.array(numbers, pa.int64()))
        with writing(self._place.where, self._name):
            if self._writer is None:
                self._path = self._stack.enter_context(self._layout.target.scratch(self._layout.partial))
                self._writer = self._stack.enter_context(pq.ParquetWriter(self._path, numbered.schema))
            self._writer.write_batch(numbered)

    def publish(self) -> None:
        """Put the file in its place, or remove what an earlier run put there."""
        if self._writer is None:
            self._place.remove(self._name)
            return
        with writing(self._place.where, self._name):
            self._writer.close()
        self._place.publish(self._path, self._name)
