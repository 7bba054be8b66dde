"""A wrapper that never embeds a text twice.

A vector's key is the encoder's name (with its revision, where it has one) and the SHA-256 of the text, so the file
holds no text. It is still confidential: who guesses a text can confirm it by its hash, and a vector tells much of what
its text is about. Hence the file is its owner's alone.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from hashlib import sha256
from pathlib import Path

import numpy as np

from regionmarker.encoders.checked import CheckedEncoder, ObjectEncoder, check_texts
from regionmarker.encoders.store import VectorStore, open_store
from regionmarker.errors import InputError
from regionmarker.protocols import Floats

_CHUNK = 2048  # texts looked up at a time: what is in memory beside the answer
_BATCH = 256  # texts embedded and committed at a time, where the encoder has no batch size


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
        self,
        encoder: object,
        path: str | Path | None = None,
        *,
        batch_size: int | None = None,
        progress: bool = False,
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
        """The name of the encoder inside."""
        return self.encoder.name

    def __repr__(self) -> str:
        return f"CachedEncoder({self.encoder!r}, {str(self.path)!r})"

    def encode(self, texts: Sequence[str], /) -> Floats:
        """Embed ``texts`` in order, asking the encoder only for those that it was never asked."""
        texts = check_texts(texts)
        revision = f"@{self.encoder.revision}" if self.encoder.revision else ""
        with open_store(self.path, self.name + revision) as store, self._bar(len(texts)) as advance:
            if not texts:
                return np.empty((0, store.width or self.encoder.encode([]).shape[1]), dtype=np.float32)
            answers = np.empty((0, 0), dtype=np.float32)
            for first in range(0, len(texts), _CHUNK):
                part = texts[first : first + _CHUNK]
                digests = [sha256(text.encode()).digest() for text in part]
                vectors = self._vectors(store, part, digests, first, advance)
                if first == 0:
                    answers = np.empty((len(texts), len(vectors[digests[0]])), dtype=np.float32)
                for row, digest in enumerate(digests, first):
                    answers[row] = vectors[digest]
        return answers

    def _vectors(
        self, store: VectorStore, texts: list[str], digests: list[bytes], first: int, advance: Callable[[int], None]
    ) -> dict[bytes, Floats]:
        """Return the vectors of one chunk by digest; those that are missing are embedded, each once."""
        row_of = {digest: row for row, digest in reversed(list(enumerate(digests)))}  # its first row in the chunk
        vectors = store.get(list(row_of))
        missing = sorted(row for digest, row in row_of.items() if digest not in vectors)
        advance(len(texts) - len(missing))
        while missing:
            size = self._batch_size or self.encoder.batch_size or _BATCH  # an encoder may learn to make it smaller
            batch, missing = missing[:size], missing[size:]
            wanted = [digests[row] for row in batch]
            arrived = store.get(wanted)  # another process may have been faster
            rows = [row for row in batch if digests[row] not in arrived]
            if rows:
                answer = self.encoder.encode([texts[row] for row in rows], positions=[first + row for row in rows])
                store.put([digests[row] for row in rows], answer)
            vectors |= store.get(wanted)  # always what the file holds, so that a later run gets the same bits
            advance(len(batch))
        return vectors

    @contextlib.contextmanager
    def _bar(self, total: int) -> Iterator[Callable[[int], None]]:
        if not self.progress:
            yield lambda _: None
            return
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
        with Progress(*columns, console=Console(stderr=True)) as progress:
            task = progress.add_task("embedding", total=total)
            yield lambda count: progress.advance(task, count)
