"""Corpora, a provider's vectors and paraphrases in a folder.

    NAME.parquet                         split, text, label
    provider_PROVIDER_NAME.npz           rows (row numbers in NAME.parquet), embeddings (n, D)
    paraphrases_NAME.parquet             row (row number in NAME.parquet), text; may be absent
    paraphrases_PROVIDER_NAME.npz        embeddings in the same order; may be absent

Rows of one text keep the first label.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from regionmarker.benchmark.corpora.corpus import Corpus, Labelled
from regionmarker.benchmark.corpora.files import labelled_rows, parquet_rows
from regionmarker.embeddings import normalised
from regionmarker.errors import InputError
from regionmarker.protocols import AnyArray, Floats

DATA = "REGIONMARKER_DATA"


def data_folder(given: Path | None) -> Path | None:
    """Return the folder of the corpora: the given one, else that of the environment; it must exist."""
    named = given or (Path(os.environ[DATA]) if os.environ.get(DATA) else None)
    if named is not None and not named.is_dir():
        raise InputError(f"the data folder {named} does not exist: give --data-dir, or set {DATA}")
    return named


def folder_corpus(name: str, folder: Path) -> Labelled:
    """Read NAME.parquet."""
    return labelled_rows(folder / f"{name}.parquet", parquet_rows(_existing(folder / f"{name}.parquet")))


def stored_corpus(name: str, provider: str, folder: Path, limit: int | None = None) -> Corpus:
    """Read a corpus with the vectors that a provider gave for a part of it."""
    rows = parquet_rows(_existing(folder / f"{name}.parquet"))
    with _arrays(folder / f"provider_{provider}_{name}.npz") as stored:
        numbers, vectors = stored["rows"], normalised(stored["embeddings"].astype(np.float32))
    if len(numbers) != len(vectors) or numbers.max(initial=-1) >= len(rows):
        raise InputError(f"provider_{provider}_{name}.npz does not fit {name}.parquet: make it from that file again")
    data = labelled_rows(folder / f"{name}.parquet", [rows[number] for number in numbers])
    kept = data.some(limit)
    place = {rows[number]["text"]: spot for spot, number in reversed(list(enumerate(numbers)))}
    clean = vectors[[place[text] for text in kept.texts]]
    paraphrases, other = _paraphrases(name, provider, folder, rows, set(kept.texts))
    return Corpus(name, f"stored:{provider}", kept, clean, paraphrases, other)


def _paraphrases(
    name: str, provider: str, folder: Path, rows: list[dict[str, Any]], known: set[str]
) -> tuple[dict[str, tuple[str, ...]], tuple[tuple[str, ...], Floats] | None]:
    import pyarrow.parquet as pq

    texts, vectors = folder / f"paraphrases_{name}.parquet", folder / f"paraphrases_{provider}_{name}.npz"
    if not texts.is_file() or not vectors.is_file():
        return {}, None
    table = pq.read_table(texts, columns=["row", "text"]).to_pylist()
    with _arrays(vectors) as stored:
        clean = normalised(stored["embeddings"].astype(np.float32))
    if len(table) != len(clean):
        raise InputError(f"{vectors} has {len(clean)} vectors for {len(table)} paraphrases: make it again")
    found: dict[str, list[str]] = {}
    places: dict[str, int] = {}
    for place, row in enumerate(table):
        original, text = rows[row["row"]]["text"], row["text"]
        if original in known and text not in known and text.strip():
            found.setdefault(original, []).append(text)
            places.setdefault(text, place)
    return {text: tuple(others) for text, others in found.items()}, (tuple(places), clean[list(places.values())])


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise InputError(f"{path.name} is not in {path.parent}: give another --data-dir")
    return path


class _arrays:  # noqa: N801 - reads as a function
    """Open an .npz file, with a sentence where it cannot be."""

    def __init__(self, path: Path) -> None:
        self._path = _existing(path)

    def __enter__(self) -> dict[str, AnyArray]:
        try:
            with np.load(self._path) as stored:
                return dict(stored)
        except (OSError, ValueError, KeyError) as error:
            raise InputError(f"cannot read {self._path}: {error}") from None

    def __exit__(self, *_: object) -> None:
        return None
