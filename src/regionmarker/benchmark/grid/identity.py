"""What can change a result and is not in the grid file: versions of libraries, our source, encoders' files."""

from __future__ import annotations

import hashlib
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, entry_points, version
from pathlib import Path

import regionmarker

_LIBRARIES = (
    "numpy", "scipy", "scikit-learn", "wordllama", "numba", "torch", "transformers",
    "sentence-transformers", "umap-learn",
)  # fmt: skip
_GROUPS = ("regionmarker.encoders", "regionmarker.defenses", "regionmarker.attacks", "regionmarker.stealers")
_COMPUTES = (
    "*.py",
    "benchmark/*.py",
    "benchmark/attacks",
    "benchmark/corpora",
    "benchmark/defenses",
    "benchmark/grid/attacking.py",
    "benchmark/grid/compute.py",
    "benchmark/grid/portrait.py",
    "benchmark/grid/scene.py",
    "benchmark/grid/workbench.py",
    "benchmark/stealers",
    "benchmark/utility",
    "encoders",
    "keys",
    "marking",
    "verification",
)
"""The parts of the package that compute. A new column in a table must not send anybody's thieves back to school."""


def versions() -> dict[str, str]:
    """Return the versions of all that computes.

    Examples
    --------
    >>> sorted(versions())[:2]
    ['numba', 'numpy']
    """
    found = {name: _version(name) for name in _LIBRARIES}
    found["python"] = f"{sys.version_info.major}.{sys.version_info.minor}"
    found["source"] = source_digest()
    for group in _GROUPS:
        for point in entry_points(group=group):
            if point.dist is not None and point.dist.name != "regionmarker":
                found[f"{group} {point.name}"] = f"{point.dist.name} {point.dist.version}"
    return found


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""


@cache
def source_digest() -> str:
    """Return the SHA-256 over the source files that compute."""
    root = Path(regionmarker.__file__).parent
    found = hashlib.sha256()
    for pattern in _COMPUTES:
        place = root / pattern
        files = sorted(place.rglob("*")) if place.is_dir() else sorted(root.glob(pattern))
        for path in files:
            if path.is_file() and "__pycache__" not in path.parts:
                found.update(f"{path.relative_to(root).as_posix()} {path.stat().st_size}\n".encode())
                found.update(path.read_bytes())
    return found.hexdigest()


@cache
def encoder_identity(spec: str) -> str:
    """Return what identifies an encoder: its spec, or the digest of the files where the spec names a folder.

    Examples
    --------
    >>> encoder_identity("wordllama")
    'wordllama'
    """
    head, _, rest = spec.partition(":")
    folder = Path(rest) if rest else Path(spec)
    if not folder.is_dir():
        return spec
    found = hashlib.sha256()
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            found.update(f"{path.relative_to(folder).as_posix()} {path.stat().st_size}\n".encode())
            with path.open("rb") as file:
                found.update(hashlib.file_digest(file, "sha256").digest())
    return f"{head if rest else 'folder'}:sha256:{found.hexdigest()}"
