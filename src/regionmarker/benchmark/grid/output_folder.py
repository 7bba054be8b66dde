"""Where results stay: one Parquet file per cell, written whole or not at all, and one table of all of them.

    DIR/grid.json              the digests of the grid's cells, in its order
    DIR/cells/DIGEST.parquet   one row: the cell, its results, its error if it failed, and the scores z
    DIR/results.parquet        the rows of all cells without their scores, written when a run ends
    DIR/cache/                 embeddings; may be deleted

One process writes. A run takes a lock on the folder, so what it finds unfinished there is what a killed run left.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from regionmarker.benchmark.grid.cell import SCORES, is_final, schema
from regionmarker.errors import InputError
from regionmarker.files import atomic_path, lock_folder, write_whole
from regionmarker.vectors import Doubles

_GRID, _RESULTS, _CELLS, _CACHE = "grid.json", "results.parquet", "cells", "cache"


class Store:
    """The folder of one grid's results.

    Examples
    --------
    >>> import tempfile
    >>> with Store.writing(Path(tempfile.mkdtemp())) as store:
    ...     store.plan(["d1", "d2"])
    ...     store.add("d1", {"corpus": "sst2", "decoy_p": 0.5})
    ...     store.missing(["d1", "d2"])
    ['d2']
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def reading(cls, folder: Path) -> Self:
        """Open the results of a run, finished or not."""
        if not (folder / _GRID).is_file():
            raise InputError(f"{folder} holds no results: run regionmarker bench run GRID.toml --out {folder} first")
        return cls(folder)

    @classmethod
    @contextlib.contextmanager
    def writing(cls, folder: Path) -> Iterator[Self]:
        """Open the folder for one run; whatever killed runs left half-written goes, before and after."""
        folder.mkdir(parents=True, exist_ok=True)
        with lock_folder(folder, f"another run is writing to {folder}: wait for it, or choose another --out"):
            store = cls(folder)
            store._sweep()
            try:
                for name in (_CELLS, _CACHE):
                    (folder / name).mkdir(exist_ok=True)
                yield store
            finally:
                store._sweep()
                store._remove_empty()

    @property
    def cache(self) -> Path:
        """The folder of what may be deleted."""
        return self.folder / _CACHE

    def plan(self, digests: Sequence[str]) -> None:
        """Write down which cells make up the grid."""
        write_whole(self.folder / _GRID, json.dumps({"cells": list(digests)}, indent=1))

    def planned(self) -> list[str]:
        """Return the digests of the grid's cells, in its order."""
        found = json.loads((self.folder / _GRID).read_text(encoding="utf-8"))
        return [str(digest) for digest in found["cells"]]

    def missing(self, digests: Sequence[str], *, retry: bool = False) -> list[str]:
        """Return the cells that have to be computed: those without a row, and those whose worker died.

        A cell that failed by itself would fail again, so its row stays, unless ``retry``.
        """
        return [digest for digest in digests if not self._is_done(digest, retry)]

    def _is_done(self, digest: str, retry: bool) -> bool:
        row = self.row(digest)
        return row is not None and is_final(row, retry=retry)

    def add(self, digest: str, row: Mapping[str, Any]) -> None:
        with atomic_path(self._path(digest)) as temporary:
            pq.write_table(_table([{"digest": digest, **row}]), temporary, compression="zstd")

    def row(self, digest: str) -> dict[str, Any] | None:
        """Return the row of one cell without its scores, or None."""
        path = self._path(digest)
        if not path.exists():
            return None
        columns = [name for name in pq.read_schema(path).names if name not in SCORES]
        found: dict[str, Any] = pq.read_table(path, columns=columns).to_pylist()[0]
        return found

    def scores(self, digest: str) -> tuple[Doubles, tuple[int, ...]] | None:
        """Return z (R, M) and the secret choice of a cell, so that statistics can be compared without new stealers."""
        found = pq.read_table(self._path(digest), columns=list(SCORES)).to_pylist()[0]
        if not found["z"]:
            return None
        return np.array(found["z"]).reshape(found["z_rows"], -1), tuple(found["chosen"])

    def rows(self) -> list[dict[str, Any]]:
        """Return the rows of the grid's cells that are there, in its order."""
        found = (self.row(digest) for digest in self.planned())
        return [row for row in found if row is not None]

    def finish(self) -> Path:
        """Write the table of all rows, and return its path."""
        path = self.folder / _RESULTS
        with atomic_path(path) as temporary:
            pq.write_table(_table(self.rows(), scores=False), temporary, compression="zstd")
        return path

    def _path(self, digest: str) -> Path:
        return self.folder / _CELLS / f"{digest}.parquet"

    def _remove_empty(self) -> None:
        for folder in (self.folder / _CELLS, self.folder / _CACHE, self.folder):
            with contextlib.suppress(OSError):  # it holds something
                folder.rmdir()

    def _sweep(self) -> None:
        """Remove temporary files: the lock is ours, so their writers are dead."""
        for folder in (self.folder, self.folder / _CELLS):
            for path in folder.glob(".*.tmp"):
                path.unlink(missing_ok=True)


def _table(rows: Sequence[Mapping[str, Any]], *, scores: bool = True) -> pa.Table:
    wanted = schema(scores=scores)
    return pa.Table.from_pylist([{name: row.get(name) for name in wanted.names} for row in rows], schema=wanted)
