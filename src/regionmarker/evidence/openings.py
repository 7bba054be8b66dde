"""The commitment in a bundle: its leaves always, and the parts that a level opens.

At *summary* only what is no secret is opened (the statistic and its level), so that nobody can say they were chosen
afterwards. At *court* every part is, and :func:`key_from_parts` makes the key again from the committed bytes alone.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from regionmarker.corpus import TextSet
from regionmarker.crypto.secret import Sealed, Secret
from regionmarker.errors import InputError
from regionmarker.evidence.bundle import COURT, EXPERT, SUMMARY, Bundle
from regionmarker.keys.commitment import PARTS, SCHEME, blinding, commitment_of, content, leaf
from regionmarker.keys.key import Key, Settings
from regionmarker.marks.number_format import NumberFormat
from regionmarker.marks.reduction import from_arrays
from regionmarker.marks.regions import RegionMark, RegionSettings
from regionmarker.vectors import AnyArray

COMMITMENT = "commitment.json"
OPENED = {SUMMARY: ("statistic", "level"), EXPERT: ("statistic", "level", "encoder"), COURT: PARTS}
_NUMBERS = re.compile(r"[<|][fiu][1248]")
_INLINE = 4096  # larger parts get a file of their own


def describe_commitment(key: Key, level: str) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return what ``commitment.json`` holds at this level, and the files of large opened parts."""
    leaves, opened, files = {}, {}, {}
    for part in PARTS:
        whole, blind = content(key, part), blinding(key, part)
        leaves[part] = leaf(blind, whole)
        if part not in OPENED[level]:
            continue
        opened[part] = {"blinding": blind.hex()}
        if len(whole) <= _INLINE:
            opened[part]["content"] = whole.hex()
        else:
            opened[part]["file"] = f"opened-{part}.bin"
            files[f"opened-{part}.bin"] = whole
    document = {
        "scheme": SCHEME,
        "commitment": commitment_of(leaves),
        "key_id": key.id,
        "salt": key.salt.hex(),
        "leaves": leaves,
        "opened": opened,
    }
    return document, files


@dataclass(frozen=True, repr=False, eq=False)
class Opened(Sealed):
    """The opened parts of a commitment, by name: their contents and blindings."""

    contents: dict[str, bytes]
    blindings: dict[str, bytes]


def check_commitment(bundle: Bundle, document: Mapping[str, Any], level: str) -> Opened:
    """Return the opened parts; refuse leaves that do not make the commitment, and contents that are not the leaves'."""
    if document["scheme"] != SCHEME:
        raise InputError(f"{COMMITMENT} has the scheme {document['scheme']!r}, which this version does not know")
    leaves = document["leaves"]
    if set(leaves) != set(PARTS) or commitment_of(leaves) != document["commitment"]:
        raise InputError(f"{COMMITMENT}: the leaves do not make the commitment")
    if set(document["opened"]) != set(OPENED[level]):
        raise InputError(f"{COMMITMENT} does not open the parts that belong to the level {level}")
    contents, blindings = {}, {}
    for part, shown in document["opened"].items():
        name = shown.get("file", COMMITMENT)
        contents[part] = bundle.read(name) if "file" in shown else bytes.fromhex(shown["content"])
        blindings[part] = bytes.fromhex(shown["blinding"])
        if leaf(blindings[part], contents[part]) != leaves[part]:
            raise InputError(f"{name}: the opened part {part!r} is not what was committed to")
    return Opened(contents, blindings)


def committed_settings(contents: Mapping[str, bytes]) -> tuple[str, float]:
    """Return the statistic and the level that were committed to."""
    statistic = _Reader(contents["statistic"]).labels(4)[0]
    return statistic, float(_Reader(contents["level"]).labels(1)[0])


def key_from_parts(contents: Mapping[str, bytes], salt: bytes) -> Key:
    """Make the key again from the contents of all parts."""
    reader = _Reader(contents["matrix"])
    kind, arrays = reader.labels(1)[0], {}
    while reader.rest:
        name, array = reader.array()
        arrays[name] = array
    normals = arrays.pop("normals")
    regions, tenant_regions, shares = _regions(contents["regions"])
    encoder, grid, _ = _Reader(contents["encoder"]).labels(3)
    statistic, strength, ratio, tenant_ratio = _Reader(contents["statistic"]).labels(4)
    return Key(
        master=Secret(contents["master"]),
        salt=salt,
        settings=Settings(statistic=statistic, level=committed_settings(contents)[1]),
        mark=RegionMark(
            settings=RegionSettings(
                dimension=normals.shape[0],
                ratio=float(ratio),
                tenant_ratio=float(tenant_ratio),
                strength=float(strength),
                reducer=kind,
                subspace=normals.shape[1],
            ),
            reduction=from_arrays(kind, arrays),
            normals=normals,
            shares=shares,
            regions=regions,
            tenant_regions=tenant_regions,
        ),
        encoder=encoder,
        number_format=NumberFormat(grid),
        created="",
        test=False,
        pool=_texts(contents["pool"]),
        reservoir=_texts(contents["reservoir"]),
    )


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
    """Reads the length-prefixed strings and the arrays of :mod:`regionmarker.keys.commitment`."""

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
