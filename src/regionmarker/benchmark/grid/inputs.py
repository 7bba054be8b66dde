"""What all cells share and every worker is given: corpora, features, token counts; and what identifies a cell.

A cell's digest covers whatever can change its result: the cell, its corpus, its encoders' files, the files that its
attacks read, versions of libraries and plug-ins, and the source of this package.
"""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, entry_points, version
from pathlib import Path

import numpy as np

import regionmarker
from regionmarker.benchmark.corpora import Corpus, data_folder, load_corpus
from regionmarker.benchmark.grid.cell import Cell, CorpusId, expand
from regionmarker.benchmark.grid.grid_file import Grid
from regionmarker.errors import InputError
from regionmarker.parquet import read_columns
from regionmarker.progress import Progress
from regionmarker.vectors import Encoder, Floats, embedded_blocks

COUNTS = "wikitext_token_counts.json"
PAIRS = "stsb.parquet"
_BLOCK = 2048
"""Texts embedded before somebody hears of it: as many as a cache looks up at once, so that batches stay the same."""
_LIBRARIES = (
    "numpy", "scipy", "scikit-learn", "wordllama", "numba", "torch", "transformers",
    "sentence-transformers", "umap-learn",
)  # fmt: skip
_GROUPS = ("regionmarker.encoders", "regionmarker.defenses", "regionmarker.attacks", "regionmarker.stealers")
_COMPUTES_NOTHING = (
    "benchmark/figures",
    "benchmark/page",
    "benchmark/tables",
    "bulk",
    "cli",
    "demo.py",
    "errors.py",
    "evidence",
    "gateway",
    "planning",
    "plots.py",
    "progress.py",
)
"""What no cell's numbers come from: a new column in a table must not send anybody's stealers back to school."""


@dataclass(frozen=True)
class ScoredPairs:
    """Pairs of sentences and how alike people find them: STS-B's test split."""

    first: tuple[str, ...]
    second: tuple[str, ...]
    scores: tuple[float, ...]

    @classmethod
    def read(cls, path: Path) -> ScoredPairs:
        columns = read_columns(path, ["sentence1", "sentence2", "score", "split"])
        rows = [row[:3] for row in zip(*columns, strict=True) if row[3] == "test"]
        if len(rows) < 3:
            raise InputError(f"{path} has {len(rows)} pairs in its split test: at least 3 are needed")
        first, second, scores = zip(*rows, strict=True)
        return cls(first, second, scores)


@dataclass(eq=False)
class GridInputs:
    """Corpora by name, provider and limit; features by corpus and encoder; where trigger words are counted.

    It is plain data, so that it can be sent to any worker.
    """

    corpora: dict[CorpusId, Corpus]
    encoders: dict[str, str]
    features: dict[tuple[CorpusId, str], Floats] = field(default_factory=dict)
    counts: bytes | None = None
    cache: Path | None = None
    folder: Path | None = None
    pairs: ScoredPairs | None = None

    def gather(self, grid: Grid, data_dir: Path | None, encoder: Callable[[str], Encoder]) -> None:
        """Load the corpora of a grid and the provider's vectors of them."""
        found = data_folder(data_dir)
        folder = self.folder = None if found is None else found.absolute()  # a worker may be elsewhere
        for corpus_id in dict.fromkeys(cell.corpus_id for cell in grid.cells):
            name, provider, limit = corpus_id
            self.corpora[corpus_id] = load_corpus(
                name, expand(provider, self.encoders), folder=folder, limit=limit or None, encoder=encoder
            )
        if folder is not None and (folder / COUNTS).is_file():
            self.counts = (folder / COUNTS).read_bytes()
        if folder is not None and (folder / PAIRS).is_file():
            self.pairs = ScoredPairs.read(folder / PAIRS)

    def corpus(self, cell: Cell) -> Corpus:
        return self.corpora[cell.corpus_id]

    def embed(
        self,
        cells: Iterable[Cell],
        encoder: Callable[[str], Encoder],
        tick: Progress = lambda _done, _total: None,
    ) -> None:
        """Embed the corpora by the public encoders that cells use, once for all workers.

        ``tick`` is called with how many texts of how many are done, of all corpora and encoders together.
        """
        wanted = dict.fromkeys(
            (cell.corpus_id, expand(spec, self.encoders)) for cell in cells for spec in features_of(cell)
        )
        left = [one for one in wanted if one not in self.features]
        done, total = 0, sum(len(self.corpora[corpus_id].texts) for corpus_id, _ in left)
        for corpus_id, spec in left:
            rows = []
            tick(done, total)
            for block, embeddings in embedded_blocks(encoder(spec), self.corpora[corpus_id].texts, _BLOCK):
                rows.append(embeddings)
                done += len(block)
                tick(done, total)
            self.features[corpus_id, spec] = np.concatenate(rows)

    def digests(self, cells: Iterable[Cell]) -> dict[Cell, str]:
        identities = {name: encoder_identity(spec) for name, spec in self.encoders.items()}
        known: Mapping[str, str] = {
            **versions(),
            "counts": hashlib.sha256(self.counts or b"").hexdigest(),
            "pairs": hashlib.sha256(repr(self.pairs).encode()).hexdigest(),
        }
        found = {}
        for cell in cells:
            read = {f"file {place}": _file_digest(path) for place, path in enumerate(self._read_by(cell))}
            found[cell] = cell.digest(self.corpus(cell).digest, identities, {**known, **read})
        return found

    def _read_by(self, cell: Cell) -> list[Path]:
        """Return the files that a cell's attacks read: a file that the spec names, or a corpus of the data folder."""
        found = []
        for attack in cell.attacks:
            *options, last = attack.partition(":")[2].split(",")
            named = [Path(part.removeprefix("folder=")) for part in options if part.startswith("folder=")]
            folders = named or ([self.folder] if self.folder is not None else [])
            files = [Path(file) for file in last.removeprefix("table:").split("@")] if last else []
            places = [*files, *(folder / f"{last}.parquet" for folder in folders)] if last else []
            found += [path for path in places if path.is_file()]
        return found


def features_of(cell: Cell) -> tuple[str, ...]:
    """Return the encoders whose vectors of the whole corpus a cell needs: a head's, and the attacks' public one.

    Examples
    --------
    >>> features_of(Cell("sst2", "wordllama", "none", ("drop",), "head:@minilm", "copy", 500, 1, public="wordllama"))
    ('@minilm', 'wordllama')
    """
    from regionmarker.benchmark.stealers import features_encoder

    found = []
    if cell.stolen:
        if encoder := features_encoder(cell.stealer):
            found.append(encoder)
        if cell.public and cell.attacks:
            found.append(cell.public)
    return tuple(dict.fromkeys(found))


# ---- what can change a result and is not in the grid file


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
def source_digest(root: Path = Path(regionmarker.__file__).parent) -> str:
    """Return the SHA-256 over the files of the package that compute: all but those that surely do not."""
    found = hashlib.sha256()
    for path in _computing(root):
        found.update(f"{path.relative_to(root).as_posix()} {path.stat().st_size}\n".encode())
        found.update(path.read_bytes())
    return found.hexdigest()


def _computing(root: Path) -> list[Path]:
    left_out = [root / name for name in _COMPUTES_NOTHING]
    return [
        path
        for path in sorted(root.rglob("*"))
        if path.is_file()
        and "__pycache__" not in path.parts
        and not any(path.is_relative_to(place) for place in left_out)
    ]


@cache
def encoder_identity(spec: str) -> str:
    """Return what identifies an encoder: its spec, or the digest of the files where the spec names a folder or a file.

    Examples
    --------
    >>> encoder_identity("wordllama")
    'wordllama'
    """
    head, _, rest = spec.partition(":")
    path, _, more = (rest or spec).partition("#")  # a prompt, or a tokenizer
    folder = Path(path).expanduser()
    if not folder.exists():
        return spec
    found = hashlib.sha256(more.encode())
    for part in sorted(folder.rglob("*")) if folder.is_dir() else [folder]:
        if part.is_file():
            found.update(f"{part.relative_to(folder).as_posix()} {part.stat().st_size}\n".encode())
            with part.open("rb") as file:
                found.update(hashlib.file_digest(file, "sha256").digest())
    return f"{head if rest else 'folder'}:sha256:{found.hexdigest()}"


@cache
def _file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
