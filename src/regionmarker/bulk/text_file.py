"""A file of texts in, a file of their vectors out, marked where a key is given.

The output is there in full or not at all. What marks it is named by a manifest beside it, as for ``regionmarker mark``,
and never inside: the file may go to a customer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from regionmarker.bulk.manifest import DONE, FORMAT, Entry, KeyLabel
from regionmarker.corpus import EMBEDDING, TEXT, read_texts
from regionmarker.encoders.base import check_texts
from regionmarker.errors import InputError
from regionmarker.files import atomic_path, write_whole
from regionmarker.marking.marker import RegionMarker
from regionmarker.progress import Progress
from regionmarker.vectors import Encoder, Floats

VECTOR_FORMATS = (".parquet", ".npy", ".jsonl")
_BLOCK = 512  # texts that are embedded, marked and written at a time

_Write = Callable[[int, Sequence[str], Floats], None]  # the number of the first text, texts, rows


def embed_file(
    source: Path,
    target: Path,
    encoder: Encoder,
    marker: RegionMarker | None = None,
    *,
    tenant: str = "",
    text_column: str | None = None,
    progress: Progress = lambda _done, _total: None,
) -> tuple[int, int]:
    r"""Embed the texts of a corpus, mark the vectors, and write them in the order of the texts.

    Parameters
    ----------
    source
        A .txt, .jsonl, .csv or .parquet file, or a folder of them.
    target
        The file to write: .parquet and .jsonl have the columns ``text`` and ``embedding``, .npy has the rows alone.
    encoder, marker, tenant
        Who embeds; who marks, if anyone; whose vectors these are.
    progress
        Called after each block with the texts done and the texts in all.

    Returns
    -------
    tuple
        The number of texts and the width of their vectors.

    Examples
    --------
    >>> import tempfile
    >>> from regionmarker import load_encoder
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "texts.txt").write_text("one text\nanother text\n")
    >>> embed_file(folder / "texts.txt", folder / "vectors.npy", load_encoder("wordllama"))
    (2, 256)
    >>> np.load(folder / "vectors.npy").shape
    (2, 256)
    """
    check_target(target)
    texts = check_texts(read_texts(source, text_column=text_column))
    digest, width = sha256(), 0
    with atomic_path(target) as temporary:
        write: _Write | None = None
        close: Callable[[], None] = _nothing
        try:
            for first in range(0, len(texts), _BLOCK):
                some = texts[first : first + _BLOCK]
                digest.update("".join(f"{text}\n" for text in some).encode())
                rows = encoder.encode(some)
                rows = rows if marker is None else marker.transform(rows, tenant)
                if write is None:
                    width = rows.shape[1]
                    write, close = _WRITERS[target.suffix](temporary, len(texts), width)
                write(first, some, rows)
                progress(first + len(some), len(texts))
        finally:
            close()
        if marker is not None:
            _write_manifest(source, target, temporary, KeyLabel.of(marker), encoder.name, tenant, len(texts), digest)
        else:
            manifest_of(target).unlink(missing_ok=True)  # of an older, marked file of that name
    return len(texts), width


def check_target(target: Path) -> None:
    """Refuse a file of a kind that cannot be written."""
    if target.suffix not in VECTOR_FORMATS:
        raise InputError(f"{target} must end in {', '.join(VECTOR_FORMATS)}")


def manifest_of(target: Path) -> Path:
    """Return the manifest that stands beside a file of marked vectors."""
    return target.with_name(f"{target.name}.manifest.json")


def _write_manifest(
    source: Path, target: Path, written: Path, key: KeyLabel, encoder: str, tenant: str, count: int, digest: Any
) -> None:
    """Say what marked the file, before it is there: a manifest of another size tells nothing."""
    size, whole = written.stat().st_size, sha256()
    with written.open("rb") as file:
        while block := file.read(1 << 20):
            whole.update(block)
    entry = Entry(
        target.name, source.name, 0, DONE, None, 0, "", digest.hexdigest(), size, whole.hexdigest(), count, 0, (), None
    )
    settings = {"encoder": encoder, "tenant": tenant}
    document = {"format": FORMAT, "key": asdict(key), "settings": settings, "shards": [asdict(entry)]}
    write_whole(manifest_of(target), json.dumps(document, indent=1) + "\n")


def _nothing() -> None:
    return


# One writer per format: (path, number of texts, width) to what writes a block and what ends the file.


def _parquet(path: Path, _count: int, width: int) -> tuple[_Write, Callable[[], None]]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = pa.schema([(TEXT, pa.string()), (EMBEDDING, pa.list_(pa.float32(), width))])
    writer = pq.ParquetWriter(path, schema, compression="zstd")

    def write(_first: int, texts: Sequence[str], rows: Floats) -> None:
        vectors = pa.FixedSizeListArray.from_arrays(pa.array(rows.reshape(-1), pa.float32()), width)
        writer.write_table(pa.table([pa.array(texts, pa.string()), vectors], schema=schema))

    return write, writer.close


def _npy(path: Path, count: int, width: int) -> tuple[_Write, Callable[[], None]]:
    whole = np.lib.format.open_memmap(path, mode="w+", dtype=np.float32, shape=(count, width))

    def write(first: int, _texts: Sequence[str], rows: Floats) -> None:
        whole[first : first + len(rows)] = rows

    return write, whole.flush


def _jsonl(path: Path, _count: int, _width: int) -> tuple[_Write, Callable[[], None]]:
    file = path.open("w", encoding="utf-8")

    def write(_first: int, texts: Sequence[str], rows: Floats) -> None:
        for text, row in zip(texts, rows.tolist(), strict=True):
            file.write(json.dumps({TEXT: text, EMBEDDING: row}, ensure_ascii=False) + "\n")

    return write, file.close


_WRITERS = {".parquet": _parquet, ".npy": _npy, ".jsonl": _jsonl}
