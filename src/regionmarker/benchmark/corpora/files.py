"""Any file with texts and labels: .jsonl, .csv or .parquet with the columns text, label and perhaps split."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from regionmarker.benchmark.corpora.corpus import Labelled
from regionmarker.errors import InputError

FORMATS = (".jsonl", ".csv", ".parquet")
_TEST_SHARE = 0.15
_TRAIN = "train"


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
    return labelled_rows(path, _rows(path))


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


def _rows(path: Path) -> Iterator[Mapping[str, Any]]:
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
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        names = pq.read_schema(path).names
        if not {"text", "label"} <= set(names):
            raise InputError(f"{path} needs the columns text and label; it has {', '.join(names)}")
        columns = [name for name in ("text", "label", "split") if name in names]
        rows: list[dict[str, Any]] = pq.read_table(path, columns=columns).to_pylist()
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"cannot read {path}: {str(error).splitlines()[0]}") from None
    return rows
