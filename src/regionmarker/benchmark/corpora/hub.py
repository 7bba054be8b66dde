"""The paper's corpora by name from the Hugging Face hub, at revisions that do not move."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from regionmarker.benchmark.corpora.corpus import Labelled
from regionmarker.benchmark.corpora.files import labelled_rows
from regionmarker.errors import InputError, MissingExtraError, OutsideError


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
    return labelled_rows(f"{source.path} on the hub", _rows(source))


def _rows(source: Source) -> Iterator[dict[str, Any]]:
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
