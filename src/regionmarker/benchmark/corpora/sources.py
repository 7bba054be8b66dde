"""Where texts and labels come from: Python itself, files, a data folder with a provider's vectors, the hub.

A file is .jsonl, .csv or .parquet with the columns text, label and perhaps split. A data folder holds

    NAME.parquet                         split, text, label
    provider_PROVIDER_NAME.npz           rows (row numbers in NAME.parquet), embeddings (n, D)
    paraphrases_NAME.parquet             row (row number in NAME.parquet), text; may be absent
    paraphrases_PROVIDER_NAME.npz        embeddings in the same order; may be absent

Rows of one text keep the first label.
"""

from __future__ import annotations

import csv
import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from regionmarker.benchmark.corpora.corpus import Corpus, Labelled
from regionmarker.benchmark.corpora.providers import StoredProvider
from regionmarker.errors import InputError, MissingExtraError, OutsideError
from regionmarker.parquet import open_parquet, read_columns
from regionmarker.sample_corpus import sentences_by_module
from regionmarker.vectors import AnyArray, Floats, Integers, normalised

FORMATS = (".jsonl", ".csv", ".parquet")
DATA = "REGIONMARKER_DATA"
_TEST_SHARE = 0.15
_TRAIN = "train"


# ---- Python's own documentation

_LABELS = 8
_READ = 9000  # sentences: reading all of the library takes seconds and adds nothing


def python_corpus() -> Labelled:
    """Return sentences of the most talkative modules: the label is the module, a fixed share of them is for testing.

    Examples
    --------
    >>> corpus = python_corpus()
    >>> len(corpus) > 2500, sorted(set(corpus.labels.tolist())) == list(range(8))
    (True, True)
    """
    found = sentences_by_module(_READ)
    modules = [name for name, _ in Counter(found.values()).most_common(_LABELS)]
    kept = [(text, modules.index(name)) for text, name in found.items() if name in modules]
    test = np.random.default_rng(21).random(len(kept)) < _TEST_SHARE
    return Labelled.of([text for text, _ in kept], [label for _, label in kept], test.tolist())


# ---- files


def read_labelled(path: Path) -> Labelled:
    r"""Read texts and labels; rows whose split is not ``train`` are for testing, a fixed share where there is no split.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "mails.csv"
    >>> _ = file.write_text("text,label,split\nhello,ham,train\nbuy now,spam,test\n")
    >>> corpus = read_labelled(file)
    >>> corpus.labels.tolist(), corpus.test.tolist()
    ([0, 1], [False, True])
    """
    if path.suffix not in FORMATS:
        raise InputError(f"{path} is not a labelled corpus: use {', '.join(FORMATS)}")
    if not path.is_file():
        raise InputError(f"{path} does not exist")
    return labelled_rows(path, _file_rows(path))


def labelled_rows(source: object, rows: Iterable[Mapping[str, Any]]) -> Labelled:
    """Make a labelled corpus of rows with text, label and perhaps split; errors name the source and the row."""
    texts, labels, splits = [], [], []
    for number, row in enumerate(rows):
        text, label = row.get("text"), row.get("label")
        if not isinstance(text, str) or not text.strip():
            raise InputError(f"{source}, row {number}: the text is missing or empty; remove that row")
        if label is None or label == "":
            raise InputError(f"{source}, row {number}: the label is missing; remove that row")
        texts.append(text)
        labels.append(label)
        splits.append(row.get("split"))
    if not texts:
        raise InputError(f"{source} holds no texts")
    names = {label: number for number, label in enumerate(sorted(set(labels), key=_order))}
    if any(splits):
        test = [split != _TRAIN for split in splits]
    else:
        test = (np.random.default_rng(22).random(len(texts)) < _TEST_SHARE).tolist()
    return Labelled.of(texts, [names[label] for label in labels], test)


def _order(label: Any) -> tuple[bool, Any]:
    """Sort numbers as numbers and names after them."""
    return (True, str(label)) if isinstance(label, str) else (False, label)


def _file_rows(path: Path) -> Iterator[Mapping[str, Any]]:
    if path.suffix == ".parquet":
        yield from parquet_rows(path)
        return
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            if path.suffix == ".csv":
                yield from csv.DictReader(file)
            else:
                yield from (_record(path, number, line) for number, line in enumerate(file, start=1) if line.strip())
    except (UnicodeDecodeError, OSError, csv.Error) as error:
        raise InputError(f"cannot read {path}: {error}") from None


def _record(path: Path, number: int, line: str) -> Mapping[str, Any]:
    try:
        record = json.loads(line)
    except json.JSONDecodeError as error:
        raise InputError(f"{path}, line {number}: not JSON: {error.msg}") from None
    if not isinstance(record, dict):
        raise InputError(f"{path}, line {number}: not an object with text and label")
    return record


def parquet_rows(path: Path) -> list[dict[str, Any]]:
    """Return text, label and split of a Parquet file."""
    with open_parquet(path) as file:
        names = file.schema_arrow.names
        if not {"text", "label"} <= set(names):
            raise InputError(f"{path} needs the columns text and label; it has {', '.join(names)}")
        rows: list[dict[str, Any]] = file.read(
            [name for name in ("text", "label", "split") if name in names]
        ).to_pylist()
    return rows


# ---- the data folder


def data_folder(given: Path | None) -> Path | None:
    """Return the folder of the corpora: the given one, else that of the environment; it must exist."""
    named = given or (Path(os.environ[DATA]) if os.environ.get(DATA) else None)
    if named is not None and not named.is_dir():
        raise InputError(f"the data folder {named} does not exist: give --data-dir, or set {DATA}")
    return named


def stored_corpus(name: str, provider: StoredProvider, folder: Path, limit: int | None = None) -> Corpus:
    """Read a corpus with the vectors that a provider gave for a part of it."""
    rows = parquet_rows(_existing(folder / f"{name}.parquet"))
    numbers, parts = _stored_rows(name, provider, folder, len(rows))
    provider = provider.fitted(parts)
    vectors = provider.vectors(parts)
    data = labelled_rows(folder / f"{name}.parquet", [rows[number] for number in numbers])
    kept = data.some(limit)
    place = {rows[number]["text"]: spot for spot, number in reversed(list(enumerate(numbers)))}
    clean = vectors[[place[text] for text in kept.texts]]
    paraphrases, other = _paraphrases(name, provider, folder, rows, set(kept.texts))
    return Corpus(name, provider.name, kept, clean, paraphrases, other, provider)


def _stored_rows(name: str, provider: StoredProvider, folder: Path, most: int) -> tuple[Integers, list[Floats]]:
    """Return the row numbers that all parts of a provider have, and each part's vectors of them."""
    numbers: list[Integers] = []
    vectors: list[Floats] = []
    for part in provider.parts:
        stored = _arrays(folder / f"provider_{part}_{name}.npz")
        rows, found = stored["rows"], stored["embeddings"]
        if len(rows) != len(found) or rows.max(initial=-1) >= most:
            raise InputError(f"provider_{part}_{name}.npz does not fit {name}.parquet: make it from that file again")
        numbers.append(rows)
        vectors.append(normalised(found.astype(np.float32)))
    if all(np.array_equal(rows, numbers[0]) for rows in numbers[1:]):
        return numbers[0], vectors
    common = numbers[0][np.all([np.isin(numbers[0], rows) for rows in numbers[1:]], axis=0)]
    if not len(common):
        raise InputError(f"the stored vectors of {provider.name} for {name} have no row in common: make them again")
    places = [{int(number): place for place, number in enumerate(rows)} for rows in numbers]
    return common, [found[[of[int(number)] for number in common]] for of, found in zip(places, vectors, strict=True)]


def _paraphrases(
    name: str, provider: StoredProvider, folder: Path, rows: list[dict[str, Any]], known: set[str]
) -> tuple[dict[str, tuple[str, ...]], tuple[tuple[str, ...], Floats] | None]:
    """Return the stored paraphrases, and the provider's vectors of them; none where a part has no such vectors."""
    texts = folder / f"paraphrases_{name}.parquet"
    files = [folder / f"paraphrases_{part}_{name}.npz" for part in provider.parts]
    if not texts.is_file() or not all(file.is_file() for file in files):
        return {}, None
    numbers, said = read_columns(texts, ["row", "text"])
    parts = [normalised(_arrays(file)["embeddings"].astype(np.float32)) for file in files]
    for file, part in zip(files, parts, strict=True):
        if len(said) != len(part):
            raise InputError(f"{file} has {len(part)} vectors for {len(said)} paraphrases: make it again")
    clean = provider.vectors(parts)
    found: dict[str, list[str]] = {}
    places: dict[str, int] = {}
    for place, (number, text) in enumerate(zip(numbers, said, strict=True)):
        original = rows[number]["text"]
        if original in known and text not in known and text.strip():
            found.setdefault(original, []).append(text)
            places.setdefault(text, place)
    return {text: tuple(others) for text, others in found.items()}, (tuple(places), clean[list(places.values())])


def _existing(path: Path) -> Path:
    if not path.is_file():
        raise InputError(f"{path.name} is not in {path.parent}: give another --data-dir")
    return path


def _arrays(path: Path) -> dict[str, AnyArray]:
    try:
        with np.load(_existing(path)) as stored:
            return dict(stored)
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"cannot read {path}: {error}") from None


# ---- the hub: the paper's corpora by name, at revisions that do not move


@dataclass(frozen=True)
class Source:
    """Where a corpus lies on the hub, and which of its columns is the text."""

    path: str
    revision: str | None
    text: str
    splits: tuple[str, ...]


SOURCES = {
    "sst2": Source("stanfordnlp/sst2", "8d51e7e4887a4caaa95b3fbebbf53c0490b58bbb", "sentence", ("train", "validation")),
    "ag_news": Source("fancyzhx/ag_news", "eb185aade064a813bc0b7f42de02595523103ca4", "text", ("train", "test")),
    # No revision of this one could be checked: a cell's digest covers the texts that came.
    "enron": Source("SetFit/enron_spam", None, "subject", ("train", "test")),
}


def hub_corpus(name: str) -> Labelled:
    """Load a corpus by name; MIND is served under a licence that its owner wants accepted, so it needs a folder."""
    if name == "mind":
        raise InputError(
            "MIND cannot be loaded by name, because its licence must be accepted where its owner serves it: "
            "give --data-dir with mind.parquet (columns split, text, label)"
        )
    source = SOURCES[name]
    return labelled_rows(f"{source.path} on the hub", _hub_rows(source))


def _hub_rows(source: Source) -> Iterator[dict[str, Any]]:
    try:
        from datasets import load_dataset
    except ImportError:
        raise MissingExtraError.for_module("datasets", "hub") from None
    for split in source.splits:
        try:
            table = load_dataset(source.path, revision=source.revision, split=split)
        except Exception as error:  # noqa: BLE001 - whatever the hub's client raises when the network or the hub fails
            raise OutsideError(
                f"cannot load {source.path} from the Hugging Face hub ({_first_line(error)}): "
                "try again, or give --data-dir with the corpora"
            ) from None
        for row in table:
            text = row[source.text]
            if isinstance(text, str) and text.strip():  # a few mails have no subject
                yield {"text": text, "label": row["label"], "split": split}


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0]
