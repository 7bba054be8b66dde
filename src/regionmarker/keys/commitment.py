"""A commitment: one digest, published early, that fixes a key and shows nothing of it.

Each part of the key has a leaf, SHA-256 over a blinding that only the master secret gives and the part's content; the
commitment is SHA-256 over the leaves. To open a part is to show its content and its blinding, and the other parts stay
closed. The public salt is not covered: it has to be issued after the commitment.

A commitment alone does not stop grinding (trying many masters against a model that already exists, and committing to
the luckiest). Targets that depend on public randomness issued later do: see
:meth:`~regionmarker.keys.key.Key.with_salt`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from regionmarker.crypto.derive import encode_label, subkey
from regionmarker.errors import InputError
from regionmarker.keys.key import Key
from regionmarker.keys.serving import ServingKey
from regionmarker.vectors import AnyArray

SCHEME = "regionmarker commitment 1"
PARTS = ("master", "matrix", "regions", "pool", "reservoir", "encoder", "statistic", "level")


def commit(key: Key) -> str:
    """Return the commitment to ``key`` as hexadecimal digits; TEST keys are refused."""
    if key.test:
        raise InputError(
            "this is a TEST key (made with a fixed seed): anyone can make it again, so it cannot be committed to"
        )
    return commitment_of({part: leaf(blinding(key, part), content(key, part)) for part in PARTS})


def serving_with_commitment(key: Key, tenants: Sequence[str]) -> ServingKey:
    """Return a serving key that names the commitment to ``key``, if it has one: TEST keys have none."""
    return replace(key.serving(tenants), commitment="" if key.test else commit(key))


def commitment_of(leaves: Mapping[str, str]) -> str:
    """Return the commitment that these leaves make."""
    lines = "".join(f"{part} {leaves[part]}\n" for part in PARTS)
    return hashlib.sha256(f"{SCHEME}\n{lines}".encode()).hexdigest()


def leaf(blind: bytes, part_content: bytes) -> str:
    """Return the digest of one part."""
    return hashlib.sha256(blind + part_content).hexdigest()


def blinding(key: Key, part: str) -> bytes:
    """Return the 32 bytes that keep a part's content from being guessed out of its leaf."""
    return subkey(key.master, "commitment", part).reveal()


def content(key: Key, part: str) -> bytes:
    """Return the bytes of one part, in an encoding that has one reading only."""
    mark = key.mark
    if part == "master":
        return key.master.reveal()
    if part == "matrix":
        arrays = {"normals": mark.normals, **mark.reduction.arrays()}
        return encode_label(mark.reduction.kind) + b"".join(_array(name, arrays[name]) for name in sorted(arrays))
    if part == "regions":
        return json.dumps([list(mark.regions), list(mark.tenant_regions)]).encode() + _array("shares", mark.shares)
    if part in ("pool", "reservoir"):
        texts = key.pool if part == "pool" else key.reservoir
        return encode_label(*texts.texts) + _array("embeddings", texts.embeddings)
    if part == "encoder":
        return encode_label(key.encoder, key.number_format.value, str(key.width))
    if part == "statistic":
        choices = mark.settings.strength, mark.settings.ratio, mark.settings.tenant_ratio
        return encode_label(key.settings.statistic, *map(repr, choices))
    return encode_label(repr(key.settings.level))


def _array(name: str, array: AnyArray) -> bytes:
    plain = np.ascontiguousarray(array)
    plain = plain.astype(plain.dtype.newbyteorder("<"), copy=False)
    return encode_label(name, plain.dtype.str, str(plain.shape)) + plain.tobytes()
