"""What the whole suite shares: real texts, a real encoder, small keys, and where the large corpora are."""

from __future__ import annotations

import os

# Before NumPy and torch load: threads of several processes on few cores wait for each other more than they work.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")

import shutil
import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from regionmarker import RegionMarker, load_encoder, python_sentences

# Fixtures that more than one folder uses; a folder's own conftest comes before them.
pytest_plugins = [
    "tests.support.backbones",
    "tests.support.embedding_server",
    "tests.support.suspects",
    "tests.support.evidence_case",  # after what it imports
    "tests.support.graded_case",
    "tests.support.answers",
    "tests.support.gateways",
    "tests.support.provider",
    "tests.support.result_rows",
    "tests.support.shards",
    "tests.support.trigger_words",
]


def pytest_configure(config):
    # The user's own key settings must not reach the tests.
    for name in ("REGIONMARKER_PASSPHRASE", "REGIONMARKER_SECRET_FILE"):
        os.environ.pop(name, None)


@pytest.fixture(scope="session")
def program():
    """Return a program's path; where it is missing the test is skipped with its name, and in CI it fails."""

    def find(name: str) -> str:
        path = shutil.which(name)
        if path is None:
            stop = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
            stop(f"the program {name} is not installed: run make system as root")
        return path

    return find


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Return the folder of real corpora and a strong provider's embeddings."""
    folder = Path(os.environ.get("REGIONMARKER_DATA", Path(__file__).parents[2] / "shared" / "data"))
    if not (folder / "sst2.parquet").exists():
        pytest.skip("the real corpora are not here: set REGIONMARKER_DATA to their folder")
    return folder


@pytest.fixture(scope="session")
def wordllama():
    return load_encoder("wordllama")


@pytest.fixture(scope="session")
def sentences() -> list[str]:
    return python_sentences(6000)


@pytest.fixture(scope="session")
def embeddings(wordllama, sentences) -> np.ndarray:
    matrix = wordllama.encode(sentences)
    matrix.setflags(write=False)
    return matrix


@pytest.fixture(scope="session")
def marker(sentences, embeddings) -> RegionMarker:
    """A marker with a small TEST key on real texts."""
    return RegionMarker(seed=1, pool=64, reservoir=512).fit(sentences, embeddings=embeddings)


@pytest.fixture
def real_marker(sentences, embeddings) -> RegionMarker:
    """A marker with a small key that passes for a real one, and is the same in every run."""
    fitted = RegionMarker(seed=5, pool=64, reservoir=256).fit(sentences[:2000], embeddings=embeddings[:2000])
    return RegionMarker.from_key(replace(fitted.key_, test=False))


@pytest.fixture
def quiet_torch(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Torch and its friends warn at will, and look for a network unless told; neither is what is tested."""
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.fixture(scope="session")
def postgres():
    """A real PostgreSQL server; where it is missing the test is skipped, and in CI it fails."""
    from tests.support.databases import start_postgres

    server = start_postgres()
    if server is None:
        stop = pytest.fail if os.environ.get("CI") == "true" else pytest.skip
        stop("PostgreSQL is not installed: run make system as root")
    yield server
    server.remove()


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request, tmp_path) -> str:
    """The address of an empty database for tenants, of each kind in turn."""
    if request.param == "sqlite":
        return str(tmp_path / "tenants.db")
    return request.getfixturevalue("postgres").database()
