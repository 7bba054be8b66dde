"""Folders of shards with real vectors, a real key file, and a job in one call."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from regionmarker import RegionMarker
from regionmarker.bulk.job import Job
from regionmarker.bulk.manifest import KeyLabel
from regionmarker.bulk.run import local_engine, run_job
from regionmarker.keys.commitment import serving_with_commitment
from regionmarker.keys.files import save_serving

ROWS = 50


@pytest.fixture(scope="session")
def bulk_keys(tmp_path_factory, sentences, embeddings) -> Path:
    """A folder with a key, its serving key for two tenants, and another key."""
    folder = tmp_path_factory.mktemp("keys")
    for name in ("key", "other"):
        marker = RegionMarker(pool=64, reservoir=256).fit(sentences[:2000], embeddings=embeddings[:2000])
        marker.save(folder / f"{name}.rmkey")
        save_serving(folder / f"{name}-serving.rmkey", serving_with_commitment(marker.key_, ["acme", "globex"]), None)
    return folder


@pytest.fixture(scope="session")
def bulk_marker(bulk_keys) -> RegionMarker:
    return RegionMarker.load(bulk_keys / "key.rmkey")


def vectors(matrix: np.ndarray, kind: pa.DataType | None = None) -> pa.Array:
    """Lay a matrix out as Arrow lists; fixed-size ones by default."""
    if kind is None:
        return pa.FixedSizeListArray.from_arrays(pa.array(matrix.reshape(-1)), matrix.shape[1])
    return pa.array(list(matrix), kind)


def shard_table(embeddings: np.ndarray, shard: int, rows: int = ROWS) -> pa.Table:
    part = slice(shard * rows, (shard + 1) * rows)
    return pa.table({"id": pa.array(range(part.start, part.stop)), "embedding": vectors(embeddings[part])})


@pytest.fixture
def shards(tmp_path, embeddings):
    """Write a folder of Parquet shards and return it."""

    def make(count: int = 4, name: str = "in", rows: int = ROWS) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        for shard in range(count):
            pq.write_table(shard_table(embeddings, shard, rows), folder / f"part-{shard:03d}.parquet")
        return folder

    return make


@pytest.fixture
def mark(bulk_marker):
    """Run a job on this machine."""

    def call(source, target, *, marker=None, force=False, workers=2, **settings):
        job = Job(str(source), str(target), **settings)
        chosen = marker or bulk_marker
        chosen = RegionMarker.from_key(chosen.key_) if "key_" in vars(chosen) else chosen
        chosen.set_params(normalise=job.normalise)
        return run_job(job, KeyLabel.of(chosen), local_engine(job, chosen, workers), force=force)

    return call


def matrix(table: pa.Table, column: str = "embedding") -> np.ndarray:
    return table.column(column).combine_chunks().flatten().to_numpy(zero_copy_only=False).reshape(len(table), -1)


def temporary_files(folder: Path) -> list[str]:
    return [str(path) for path in folder.rglob("*") if path.suffix == ".tmp" or path.name in ("partial", "lock")]


def digests(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in sorted(folder.glob("*.parquet"))}
