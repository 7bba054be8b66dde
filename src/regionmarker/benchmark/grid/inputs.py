"""What can change a result and is not in the grid file: versions of libraries, our source, encoders' files."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, entry_points, version
from pathlib import Path

import regionmarker
from regionmarker.benchmark.corpora import Corpus, data_folder, load_corpus
from regionmarker.benchmark.grid.cell import Cell, expand
from regionmarker.benchmark.grid.grid_file import Grid
from regionmarker.vectors import Encoder, Floats

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


# What all cells of a grid share and every worker is given: corpora, features, token counts.

Key = tuple[str, str, int]
"""Corpus, provider, limit."""

COUNTS = "wikitext_token_counts.json"


@dataclass(eq=False)
class Material:
    """Corpora by name, provider and limit; features by corpus and encoder; where trigger words are counted.

    It is plain data, so that it can be sent to any worker.
    """

    corpora: dict[Key, Corpus]
    encoders: dict[str, str]
    features: dict[tuple[Key, str], Floats] = field(default_factory=dict)
    counts: bytes | None = None
    cache: Path | None = None
    folder: Path | None = None

    def gather(self, grid: Grid, data_dir: Path | None, encoder: Callable[[str], Encoder]) -> None:
        """Load the corpora of a grid and the provider's vectors of them."""
        found = data_folder(data_dir)
        folder = self.folder = None if found is None else found.absolute()  # a worker may be elsewhere
        for key in dict.fromkeys(corpus_key(cell) for cell in grid.cells):
            name, provider, limit = key
            self.corpora[key] = load_corpus(
                name, expand(provider, self.encoders), folder=folder, limit=limit or None, encoder=encoder
            )
        if folder is not None and (folder / COUNTS).is_file():
            self.counts = (folder / COUNTS).read_bytes()

    def corpus(self, cell: Cell) -> Corpus:
        """Return a cell's corpus."""
        return self.corpora[corpus_key(cell)]

    def digests(self, cells: Iterable[Cell]) -> dict[Cell, str]:
        """Return the digest of every cell."""
        identities = {name: encoder_identity(spec) for name, spec in self.encoders.items()}
        known: Mapping[str, str] = {**versions(), "counts": hashlib.sha256(self.counts or b"").hexdigest()}
        found = {}
        for cell in cells:
            read = {f"file {place}": _file_digest(name) for place, name in enumerate(self._read_by(cell))}
            found[cell] = cell.digest(self.corpus(cell).digest, identities, {**known, **read})
        return found

    def _read_by(self, cell: Cell) -> list[str]:
        """Return the files that a cell's attacks read: a file that the spec names, or a corpus of the data folder."""
        found = []
        for attack in cell.attacks:
            *settings, last = attack.partition(":")[2].split(",")
            named = [Path(part.removeprefix("folder=")) for part in settings if part.startswith("folder=")]
            folders = named or ([self.folder] if self.folder is not None else [])
            places = [Path(last), *(folder / f"{last}.parquet" for folder in folders)] if last else []
            found += [str(path) for path in places if path.is_file()]
        return found

    def embed(self, cells: Iterable[Cell], encoder: Callable[[str], Encoder]) -> None:
        """Embed the corpora by the public encoders that cells use, once for all workers."""
        for cell in cells:
            for spec in features_of(cell):
                key = corpus_key(cell), expand(spec, self.encoders)
                if key not in self.features:
                    self.features[key] = encoder(key[1]).encode(list(self.corpus(cell).texts))


@cache
def _file_digest(path: str) -> str:
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def corpus_key(cell: Cell) -> Key:
    """Return what a cell's corpus is kept under."""
    return cell.corpus, cell.provider, cell.limit


def features_of(cell: Cell) -> tuple[str, ...]:
    """Return the encoders whose vectors of the whole corpus a cell needs: a head's, and the attacks' public one.

    Examples
    --------
    >>> features_of(Cell("sst2", "wordllama", "none", ("drop",), "head:@minilm", "copy", 500, 1, public="wordllama"))
    ('@minilm', 'wordllama')
    """
    found = []
    if cell.stolen:
        name, _, rest = cell.stealer.partition(":")
        if name == "head":
            found.append(rest.partition(",")[0])
        if cell.public and cell.attacks:
            found.append(cell.public)
    return tuple(dict.fromkeys(found))
