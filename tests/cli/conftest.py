"""The command line as a person or a program meets it: a process with arguments, output and an exit code."""

from __future__ import annotations

import subprocess
import sys

import pyarrow as pa
import pyarrow.parquet as pq
import pytest


@pytest.fixture
def run(tmp_path):
    def call(*arguments, code: int = 0, **options) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "regionmarker", *map(str, arguments)]
        done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=120, **options)
        assert done.returncode == code, done.stdout + done.stderr
        if code:
            assert "Traceback" not in done.stderr
        return done

    return call


@pytest.fixture
def corpus(tmp_path, sentences, embeddings):
    """A Parquet corpus with its embeddings, and columns that marking must not touch."""
    path = tmp_path / "corpus.parquet"
    count = 1500
    values = pa.array(embeddings[:count].reshape(-1))
    table = pa.table(
        {
            "id": pa.array(range(count)),
            "text": sentences[:count],
            "embedding": pa.FixedSizeListArray.from_arrays(values, embeddings.shape[1]),
            "note": pa.array([None if row % 3 else f"note {row}" for row in range(count)]),
        }
    ).replace_schema_metadata({"owner": "tests"})
    pq.write_table(table, path, row_group_size=400, compression="zstd")
    return path


@pytest.fixture
def key(run, corpus, tmp_path):
    run("keygen", "--corpus", corpus, "--out", "k.rmkey", "--pool", 64, "--reservoir", 512)
    return tmp_path / "k.rmkey"
