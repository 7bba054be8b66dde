"""Corpora by name, with a provider's clean vectors.

    python                          sentences of Python's own documentation, always there
    sst2, ag_news, enron, mind      in a folder, with stored vectors; the first three also from the Hugging Face hub
    FILE                            any file with texts and labels

Texts, labels and split come from there; the vectors are stored beside the texts (providers.py), or an encoder makes
them.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from regionmarker.benchmark.corpora.corpus import Corpus, Labelled
from regionmarker.benchmark.corpora.providers import STORED, ProviderEncoder, StoredProvider
from regionmarker.benchmark.corpora.sources import (
    DATA,
    FORMATS,
    data_folder,
    hub_corpus,
    python_corpus,
    read_labelled,
    stored_corpus,
)
from regionmarker.corpus import read_texts
from regionmarker.encoders import load_encoder
from regionmarker.errors import InputError
from regionmarker.vectors import Encoder

NAMES = ("python", "sst2", "ag_news", "enron", "mind")

__all__ = ["DATA", "FORMATS", "NAMES", "STORED", "Corpus", "Labelled", "ProviderEncoder", "StoredProvider",
           "check_corpus", "data_folder", "load_corpus", "load_labelled", "texts_for_sale"]  # fmt: skip


def check_corpus(name: str, provider: str, folder: Path | None) -> None:
    """Say what is wrong with a corpus before anything is read, embedded or written."""
    if name not in NAMES and Path(name).suffix not in FORMATS:
        raise InputError(f"unknown corpus {name!r}: give {', '.join(NAMES)}, or a file ({', '.join(FORMATS)})")
    if name not in NAMES and not Path(name).is_file():
        raise InputError(f"the corpus {name} does not exist")
    if not provider.startswith(STORED):
        return
    if folder is None:
        raise InputError(f"the provider {provider!r} lies in a data folder: give --data-dir, or set {DATA}")
    parts = StoredProvider.parse(provider).parts
    for file in (f"{name}.parquet", *(f"provider_{part}_{name}.npz" for part in parts)):
        if not (folder / file).is_file():
            raise InputError(f"{file} is not in {folder}: give another --data-dir")


def load_corpus(
    name: str,
    provider: str,
    *,
    folder: Path | None = None,
    limit: int | None = None,
    encoder: Callable[[str], Encoder] | None = None,
) -> Corpus:
    """Load a corpus and the provider's clean vectors of it.

    Parameters
    ----------
    name
        One of :data:`NAMES`, or a file with texts and labels.
    provider
        ``stored:NAME`` for vectors in the data folder, ``stored:NAME+NAME,crowded=0.75`` for what can be made of them
        (:mod:`~regionmarker.benchmark.corpora.providers`), else an encoder spec.
    folder
        The data folder. Without it the paper's corpora come from the Hugging Face hub.
    limit
        At most this many texts.
    encoder
        Loads an encoder by its spec, such as one that remembers.

    Examples
    --------
    >>> corpus = load_corpus("python", "wordllama", limit=200)
    >>> corpus.clean.shape
    (200, 256)
    """
    check_corpus(name, provider, folder)
    if provider.startswith(STORED) and folder is not None:
        return stored_corpus(name, StoredProvider.parse(provider), folder, limit)
    data = load_labelled(name, folder).some(limit)
    loaded = load_encoder(provider) if encoder is None else encoder(provider)
    return Corpus(name, provider, data, loaded.encode(list(data.texts)))


def texts_for_sale(name: str, provider: str | None = None, folder: Path | None = None) -> list[str]:
    """Return the texts of a corpus that are not for testing, in the order in which grids buy them.

    Parameters
    ----------
    name
        A corpus, or any file of texts.
    provider
        ``stored:NAME``: only the texts that it has vectors of, those with stored paraphrases first.
    folder
        The data folder.

    Examples
    --------
    >>> len(texts_for_sale("python")) > 2000
    True
    """
    found = data_folder(folder)
    if provider is not None:
        if not provider.startswith(STORED):
            raise InputError(f"the provider {provider!r} is no stored one: give {STORED}NAME, or none")
        corpus = load_corpus(name, provider, folder=found)
        data, first = corpus.data, corpus.paraphrases
    elif name not in NAMES:
        return list(dict.fromkeys(read_texts(Path(name))))
    else:
        check_corpus(name, "", found)
        data, first = load_labelled(name, found), {}
    texts = [text for text, test in zip(data.texts, data.test, strict=True) if not test]
    return sorted(texts, key=lambda text: text not in first)  # stable


def load_labelled(name: str, folder: Path | None) -> Labelled:
    """Load the texts and labels of a corpus, without anybody's vectors."""
    if name == "python":
        return python_corpus()
    if name not in NAMES:
        return read_labelled(Path(name))
    if folder is not None and (folder / f"{name}.parquet").is_file():
        return read_labelled(folder / f"{name}.parquet")
    return hub_corpus(name)
