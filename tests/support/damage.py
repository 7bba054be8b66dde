"""Damaged files: flipped bytes, and a Parquet footer over which pyarrow ends the process."""

from __future__ import annotations

import random
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from regionmarker.errors import InputError
from regionmarker.first_look import first_look

CRASHED = "the library that reads it crashed"


def footer_bytes(content: bytes) -> int:
    """How many bytes at the end of a Parquet file are its footer."""
    (length,) = struct.unpack("<I", content[-8:-4])
    return length + 8


def flips(content: bytes, count: int, seed: int = 0, *, last: int | None = None) -> Iterator[bytes]:
    """Yield copies with one byte changed, in the last ``last`` bytes or anywhere."""
    draw = random.Random(seed)
    for _ in range(count):
        damaged = bytearray(content)
        damaged[draw.randrange(len(content) - (last or len(content)), len(content))] ^= draw.randrange(1, 256)
        yield bytes(damaged)


def make_crash(path: Path, column: str = "embedding") -> None:
    """Flip a byte of a Parquet file's footer so that opening it kills a process; skip where no flip does."""
    content = path.read_bytes()
    for damaged in flips(content, 5000, last=footer_bytes(content)):
        path.write_bytes(damaged)
        try:
            first_look(
                "regionmarker.bulk.formats:look_at_shard", path.name, path=str(path), kind="parquet", column=column,
                part=0, whole=False,
            )  # fmt: skip
        except InputError as error:
            if CRASHED in str(error):
                return
    path.write_bytes(content)
    pytest.skip("this version of pyarrow crashes over none of 5,000 flips")
