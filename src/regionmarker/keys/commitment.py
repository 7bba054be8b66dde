"""A commitment: one digest, published early, that fixes a key and shows nothing of it.

Each part of the key has a leaf, SHA-256 over a blinding that only the master secret gives and the part's content; the
commitment is SHA-256 over the leaves. To open a part is to show its content and its blinding, and the other parts stay
closed. Once every part is open, the key is made again from the committed bytes alone. The public salt is not covered:
it has to be issued after the commitment.

A commitment alone does not stop grinding (trying many masters against a model that already exists, and committing to
the luckiest). Targets that depend on public randomness issued later do: see
:meth:`~regionmarker.keys.key.Key.with_salt`.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from regionmarker.corpus import TextSet
from regionmarker.crypto.derive import encode_label, subkey
from regionmarker.crypto.secret import Sealed, Secret
from regionmarker.errors import InputError
from regionmarker.keys.key import Key, Settings
from regionmarker.keys.serving import ServingKey
from regionmarker.marks import MARKS, Mark
from regionmarker.marks.number_format import NumberFormat
from regionmarker.marks.reduction import from_arrays
from regionmarker.marks.regions import RegionMark, RegionSettings
from regionmarker.vectors import AnyArray

SCHEMES = {"regions": "regionmarker commitment 1", "graded": "regionmarker commitment 2"}
"""The scheme by the kind of mark: keys of 0.1.0 keep the commitments that were published for them."""
PARTS = {
    SCHEMES["regions"]: ("master", "matrix", "regions", "pool", "reservoir", "encoder", "statistic", "level"),
    SCHEMES["graded"]: ("master", "mark", "pool", "reservoir", "encoder", "statistic", "level"),
}
COMMITMENT = "commitment.json"  # the file of a bundle of evidence that shows a commitment and its opened parts

_NUMBERS = re.compile(r"[<|][fiu][1248]")
_INLINE = 4096  # larger parts get a file of their own


def commit(key: Key) -> str:
    """Return the commitment to ``key`` as hexadecimal digits; TEST keys are refused."""
    if key.test:
        raise InputError(
            "this is a TEST key (made with a fixed seed): anyone can make it again, so it cannot be committed to"
        )
    scheme = SCHEMES[key.mark.kind]
    leaves = {part: leaf(blinding(key, part), content(key, part)) for part in PARTS[scheme]}
    return commitment_of(scheme, leaves)


def serving_with_commitment(key: Key, tenants: Sequence[str]) -> ServingKey:
    """Return a serving key that names the commitment to ``key``, if it has one: TEST keys have none."""
    return replace(key.serving(tenants), commitment="" if key.test else commit(key))


def commitment_of(scheme: str, leaves: Mapping[str, str]) -> str:
    """Return the commitment that these leaves make."""
    lines = "".join(f"{part} {leaves[part]}\n" for part in PARTS[scheme])
    return hashlib.sha256(f"{scheme}\n{lines}".encode()).hexdigest()


def leaf(blind: bytes, part_content: bytes) -> str:
    """Return the digest of one part."""
    return hashlib.sha256(blind + part_content).hexdigest()


def blinding(key: Key, part: str) -> bytes:
    """Return the 32 bytes that keep a part's content from being guessed out of its leaf."""
    return subkey(key.master, "commitment", part).reveal()


def content(key: Key, part: str) -> bytes:
    """Return the bytes of one part, in an encoding that has one reading only."""
    if part == "master":
        return key.master.reveal()
    if part in ("pool", "reservoir"):
        texts = key.pool if part == "pool" else key.reservoir
        return encode_label(*texts.texts) + _array("embeddings", texts.embeddings)
    if part == "encoder":
        return encode_label(key.encoder, key.number_format.value, str(key.width))
    if part == "level":
        return encode_label(repr(key.settings.level))
    return _region_content(key, key.mark, part) if isinstance(key.mark, RegionMark) else _mark_content(key, part)


def _mark_content(key: Key, part: str) -> bytes:
    if part == "statistic":
        return encode_label(key.settings.statistic)
    document = json.dumps(key.mark.document(), sort_keys=True)
    return encode_label(key.mark.kind, document) + _arrays(key.mark.arrays())


def _region_content(key: Key, mark: RegionMark, part: str) -> bytes:
    if part == "matrix":
        return encode_label(mark.reduction.kind) + _arrays({"normals": mark.normals, **mark.reduction.arrays()})
    if part == "regions":
        return json.dumps([list(mark.regions), list(mark.tenant_regions)]).encode() + _array("shares", mark.shares)
    choices = mark.settings.strength, mark.settings.ratio, mark.settings.tenant_ratio
    return encode_label(key.settings.statistic, *map(repr, choices))


def _arrays(arrays: Mapping[str, AnyArray]) -> bytes:
    return b"".join(_array(name, arrays[name]) for name in sorted(arrays))


def _array(name: str, array: AnyArray) -> bytes:
    plain = np.ascontiguousarray(array)
    plain = plain.astype(plain.dtype.newbyteorder("<"), copy=False)
    return encode_label(name, plain.dtype.str, str(plain.shape)) + plain.tobytes()


# ---- opened parts


def open_parts(key: Key, parts: Collection[str] | None) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return what ``commitment.json`` holds when ``parts`` (None: all) are opened, and the files of large parts."""
    scheme = SCHEMES[key.mark.kind]
    parts = PARTS[scheme] if parts is None else parts
    leaves, opened, files = {}, {}, {}
    for part in PARTS[scheme]:
        whole, blind = content(key, part), blinding(key, part)
        leaves[part] = leaf(blind, whole)
        if part not in parts:
            continue
        opened[part] = {"blinding": blind.hex()}
        if len(whole) <= _INLINE:
            opened[part]["content"] = whole.hex()
        else:
            opened[part]["file"] = f"opened-{part}.bin"
            files[f"opened-{part}.bin"] = whole
    document = {
        "scheme": scheme,
        "commitment": commitment_of(scheme, leaves),
        "key_id": key.id,
        "salt": key.salt.hex(),
        "leaves": leaves,
        "opened": opened,
    }
    return document, files


@dataclass(frozen=True, repr=False, eq=False)
class OpenedParts(Sealed):
    """The opened parts of a commitment, by name: their contents and blindings."""

    scheme: str
    contents: dict[str, bytes]
    blindings: dict[str, bytes]

    @classmethod
    def read(
        cls, document: Mapping[str, Any], files: Mapping[str, bytes], parts: Collection[str] | None
    ) -> OpenedParts:
        """Read what :func:`open_parts` wrote.

        Leaves that do not make the commitment, contents that are not the leaves', and other parts than ``parts`` are
        refused.
        """
        scheme = document["scheme"]
        if scheme not in PARTS:
            raise InputError(f"{COMMITMENT} has the scheme {scheme!r}, which this version does not know")
        leaves = document["leaves"]
        if set(leaves) != set(PARTS[scheme]) or commitment_of(scheme, leaves) != document["commitment"]:
            raise InputError(f"{COMMITMENT}: the leaves do not make the commitment")
        if set(document["opened"]) != set(PARTS[scheme] if parts is None else parts):
            raise InputError(f"{COMMITMENT} does not open the parts that belong to its disclosure")
        contents, blindings = {}, {}
        for part, shown in document["opened"].items():
            name = shown.get("file", COMMITMENT)
            if name not in files:
                raise InputError(f"{name} is missing: it holds the opened part {part!r}")
            contents[part] = files[name] if "file" in shown else bytes.fromhex(shown["content"])
            blindings[part] = bytes.fromhex(shown["blinding"])
            if leaf(blindings[part], contents[part]) != leaves[part]:
                raise InputError(f"{name}: the opened part {part!r} is not what was committed to")
        return cls(scheme, contents, blindings)

    @property
    def statistic(self) -> str:
        return _Reader(self.contents["statistic"]).labels(1)[0]

    @property
    def level(self) -> float:
        return float(_Reader(self.contents["level"]).labels(1)[0])

    def key(self, salt: bytes) -> Key:
        """Make the key again, once all parts are opened."""
        encoder, number_format, _ = _Reader(self.contents["encoder"]).labels(3)
        return Key(
            master=Secret(self.contents["master"]),
            salt=salt,
            settings=Settings(statistic=self.statistic, level=self.level),
            mark=self._region_mark() if self.scheme == SCHEMES["regions"] else self._mark(),
            encoder=encoder,
            number_format=NumberFormat(number_format),
            created="",
            test=False,
            pool=_texts(self.contents["pool"]),
            reservoir=_texts(self.contents["reservoir"]),
        )

    def _mark(self) -> Mark:
        reader = _Reader(self.contents["mark"])
        kind, document = reader.labels(2)
        if SCHEMES.get(kind) != self.scheme:
            raise InputError(f"the opened part 'mark' holds a mark of the kind {kind!r}, which its scheme does not")
        return MARKS[kind].from_parts(json.loads(document), reader.arrays())

    def _region_mark(self) -> Mark:
        reader = _Reader(self.contents["matrix"])
        kind, arrays = reader.labels(1)[0], reader.arrays()
        normals = arrays.pop("normals")
        regions, tenant_regions, shares = _regions(self.contents["regions"])
        _, strength, ratio, tenant_ratio = _Reader(self.contents["statistic"]).labels(4)
        settings = RegionSettings(
            dimension=normals.shape[0],
            ratio=float(ratio),
            tenant_ratio=float(tenant_ratio),
            strength=float(strength),
            reducer=kind,
            subspace=normals.shape[1],
        )
        return RegionMark(settings, from_arrays(kind, arrays), normals, shares, regions, tenant_regions)


def _regions(whole: bytes) -> tuple[tuple[int, ...], tuple[int, ...], AnyArray]:
    (provider, tenant), end = json.JSONDecoder().raw_decode(whole.decode("latin-1"))
    return tuple(provider), tuple(tenant), _Reader(whole[end:]).array()[1]


def _texts(whole: bytes) -> TextSet:
    """Read texts until what follows is an array with as many rows."""
    reader = _Reader(whole)
    texts: list[str] = []
    while not reader.at_embeddings(len(texts)):
        texts.extend(reader.labels(1))
    return TextSet(tuple(texts), reader.array()[1])


class _Reader:
    """Reads the length-prefixed strings and the arrays of :func:`content`."""

    def __init__(self, whole: bytes) -> None:
        self.rest = memoryview(whole)

    def labels(self, count: int) -> list[str]:
        found = []
        for _ in range(count):
            size = int.from_bytes(self.rest[:4], "little")
            if len(self.rest) < 4 + size:
                raise InputError("an opened part is cut short")
            found.append(bytes(self.rest[4 : 4 + size]).decode())
            self.rest = self.rest[4 + size :]
        return found

    def array(self) -> tuple[str, AnyArray]:
        name, dtype, shape = self.labels(3)
        if not _NUMBERS.fullmatch(dtype):
            raise InputError("an opened part holds an array of something else than numbers")
        sizes = tuple(int(size) for size in shape.strip("()").split(",") if size.strip())
        count = int(np.prod(sizes, dtype=np.int64))
        array = np.frombuffer(self.rest, dtype=np.dtype(dtype), count=count).reshape(sizes)
        self.rest = self.rest[array.nbytes :]
        return name, array

    def arrays(self) -> dict[str, AnyArray]:
        """Read arrays to the end."""
        found = {}
        while self.rest:
            name, array = self.array()
            found[name] = array
        return found

    def at_embeddings(self, rows: int) -> bool:
        before = self.rest
        try:
            if self.labels(1) != ["embeddings"]:
                return False
            self.rest = before
            array = self.array()[1]
            return array.ndim == 2 and len(array) == rows and not self.rest
        except ValueError:  # a text that reads "embeddings"; also every InputError
            return False
        finally:
            self.rest = before
