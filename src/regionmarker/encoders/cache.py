"""Vectors that are kept, so that no text is embedded twice: not in a list, a later run or another process."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Protocol

import numpy as np

from regionmarker.encoders.base import CheckedEncoder, ObjectEncoder, check_texts
from regionmarker.encoders.vector_store import open_store
from regionmarker.errors import InputError
from regionmarker.progress import bar
from regionmarker.vectors import Floats

_CHUNK = 2048  # texts looked up at a time: what is in memory beside the answer
_BATCH = 256  # texts embedded and committed at a time, where the encoder has no batch size


class MemoryStore:
    """Vectors that are kept no longer than they are asked for."""

    def __init__(self) -> None:
        self.width: int | None = None
        self._vectors: dict[bytes, Floats] = {}

    def get(self, digests: Sequence[bytes]) -> dict[bytes, Floats]:
        return {digest: self._vectors[digest] for digest in digests if digest in self._vectors}

    def put(self, digests: Sequence[bytes], rows: Floats) -> None:
        self._vectors.update(zip(digests, rows, strict=True))
        self.width = rows.shape[1]


def text_digest(text: str) -> bytes:
    """Return the SHA-256 by which caches and transcripts know a text."""
    return sha256(text.encode()).digest()


class Store(Protocol):
    """Where vectors are looked up by the digests of their texts, and kept."""

    def get(self, digests: Sequence[bytes]) -> dict[bytes, Floats]: ...

    def put(self, digests: Sequence[bytes], rows: Floats) -> None: ...


def fill(
    kept: Store,
    texts: Sequence[str],
    ask: Callable[[list[str], list[int]], Floats],
    batch_size: Callable[[], int],
    on_rows: Callable[[list[int]], None] = lambda _rows: None,
) -> list[Floats]:
    """Return the vectors of ``texts`` in order; those that are not kept are asked for, each once, batch by batch.

    Parameters
    ----------
    kept
        Where vectors are looked up, and where each batch goes before the next is asked for.
    texts
        May repeat.
    ask
        Called with some of the texts and their places in ``texts``; returns one row per text.
    batch_size
        How many texts to ask for at a time; called anew for each batch, because a server may make us shrink it.
    on_rows
        Called with the places that are done: first those that need no asking, then each batch.
    """
    digests = [text_digest(text) for text in texts]
    row_of = {digest: row for row, digest in reversed(list(enumerate(digests)))}  # its first row
    vectors = kept.get(list(row_of))
    missing = sorted(row for digest, row in row_of.items() if digest not in vectors)
    asked_for = set(missing)
    on_rows([row for row in range(len(texts)) if row not in asked_for])
    while missing:
        size = batch_size()
        batch, missing = missing[:size], missing[size:]
        wanted = [digests[row] for row in batch]
        arrived = kept.get(wanted)  # another process may have been faster
        rows = [row for row in batch if digests[row] not in arrived]
        if rows:
            kept.put([digests[row] for row in rows], ask([texts[row] for row in rows], rows))
        vectors |= kept.get(wanted)  # always what is kept, so that a later run gets the same bits
        on_rows(batch)
    return [vectors[digest] for digest in digests]


def default_cache_path() -> Path:
    """Return where vectors are kept unless the user says otherwise.

    ``embeddings.sqlite`` in the folder ``$REGIONMARKER_CACHE``, else in ``$XDG_CACHE_HOME/regionmarker``, else in
    ``~/.cache/regionmarker``.

    Examples
    --------
    >>> default_cache_path().name
    'embeddings.sqlite'
    """
    own, base = os.environ.get("REGIONMARKER_CACHE"), os.environ.get("XDG_CACHE_HOME", "")
    if own:
        return Path(own).expanduser() / "embeddings.sqlite"
    # The XDG specification says that a relative path is to be ignored.
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".cache") / "regionmarker" / "embeddings.sqlite"


class CachedEncoder:
    """An encoder that remembers: each distinct text is embedded once, and committed with its batch.

    A run that is killed loses the batch it was in; the next run goes on from there. Vectors come back bit for bit.
    Several processes may use one file.

    Parameters
    ----------
    encoder
        Any encoder, or object with ``encode`` and a ``name`` of its own.
    path
        The SQLite file; None for :func:`default_cache_path`.
    batch_size
        Texts embedded and committed at a time; None for the encoder's own batches.
    progress
        Draw a progress bar with the time left on stderr.

    Examples
    --------
    >>> import tempfile
    >>> class Lengths:
    ...     name = "lengths"
    ...     def encode(self, texts):
    ...         print("embedding", texts)
    ...         return np.array([[len(text), 1.0] for text in texts])
    >>> encoder = CachedEncoder(Lengths(), Path(tempfile.mkdtemp()) / "cache.sqlite")
    >>> rows = encoder.encode(["a", "bb", "a"])
    embedding ['a', 'bb']
    >>> rows = encoder.encode(["bb", "ccc"])
    embedding ['ccc']
    """

    def __init__(
        self, encoder: object, path: str | Path | None = None, *, batch_size: int | None = None, progress: bool = False
    ) -> None:
        if isinstance(encoder, CachedEncoder):
            raise InputError("this encoder has a cache already")
        if batch_size is not None and batch_size < 1:
            raise InputError(f"batch_size must be at least 1, but is {batch_size}")
        self.encoder = encoder if isinstance(encoder, CheckedEncoder) else ObjectEncoder(encoder)
        if isinstance(self.encoder, ObjectEncoder) and not self.encoder.is_named:
            raise InputError(
                f"a cache needs a name that tells this {self.encoder.name} from others:"
                " give the object an attribute name, or load_encoder a name="
            )
        self.path = default_cache_path() if path is None else Path(path)
        self.progress = progress
        self._batch_size = batch_size

    @property
    def name(self) -> str:
        return self.encoder.name

    @property
    def stored_as(self) -> str:
        """The name under which its vectors are kept: with the revision, where the encoder has one."""
        return self.name + (f"@{self.encoder.revision}" if self.encoder.revision else "")

    def __repr__(self) -> str:
        return f"CachedEncoder({self.encoder!r}, {str(self.path)!r})"

    def encode(self, texts: Sequence[str], /) -> Floats:
        """Embed ``texts`` in order, asking the encoder only for those that it was never asked."""
        texts = check_texts(texts)
        with (
            open_store(self.path, self.stored_as) as store,
            bar("embedding", len(texts), shown=self.progress) as drawn,
        ):
            if not texts:
                return np.empty((0, store.width or self.encoder.encode([]).shape[1]), dtype=np.float32)
            answers = np.empty((0, 0), dtype=np.float32)
            for first in range(0, len(texts), _CHUNK):
                part, embed = texts[first : first + _CHUNK], partial(self._embed, first)
                vectors = fill(store, part, embed, self._next_batch, lambda rows: drawn.advance(len(rows)))
                if first == 0:
                    answers = np.empty((len(texts), len(vectors[0])), dtype=np.float32)
                for row, vector in enumerate(vectors, first):
                    answers[row] = vector
        return answers

    def _embed(self, first: int, texts: list[str], rows: list[int]) -> Floats:
        """Embed texts whose places are counted from ``first``."""
        return self.encoder.encode(texts, positions=[first + row for row in rows])

    def _next_batch(self) -> int:
        return self._batch_size or self.encoder.batch_size or _BATCH
