"""Keys as bytes: one safetensors block of named arrays, one of which is a JSON document.

Arrays are stored as arrays, because no library promises that a seed means the same in ten years. Nothing in the block
is ever executed on reading. Names: ``document`` (UTF-8 JSON), and ``<n>/<array>`` for the n-th key of a ring.

Format 2 keeps what belongs to the mark apart: ``mark`` in the document, with its kind, and arrays ``mark.<name>``.
Format 1, of 0.1.0, knew the published mark only and mixed the two; it is read and no longer written.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from regionmarker.corpus import TextSet
from regionmarker.crypto.envelope import UnreadableError
from regionmarker.crypto.secret import Secret
from regionmarker.keys.key import Key, Settings
from regionmarker.keys.schema import check_payload
from regionmarker.keys.serving import ServingKey
from regionmarker.marks import MARKS, SERVED_MARKS, Mark, ServedMark
from regionmarker.marks.number_format import NumberFormat
from regionmarker.marks.reduction import arrays_under
from regionmarker.marks.regions import RegionMark
from regionmarker.marks.served_regions import ServedRegions
from regionmarker.vectors import AnyArray

FORMAT = 2
_MARK = "mark."


def dump_ring(keys: Sequence[Key]) -> bytes:
    """Write the keys of a ring, oldest first."""
    tensors: dict[str, AnyArray] = {}
    documents = []
    for number, key in enumerate(keys):
        documents.append(_key_document(key))
        tensors.update({f"{number}/{name}": array for name, array in _key_arrays(key).items()})
    return _dump({"format": FORMAT, "keys": documents}, tensors)


def load_ring(payload: Secret) -> tuple[Key, ...]:
    """Read what :func:`dump_ring` wrote, in this version or an earlier one."""
    document, tensors = _load(payload)
    mark = _mark if document["format"] == FORMAT else _first_mark
    try:
        return tuple(
            _key(part, arrays_under(tensors, f"{number}/"), mark) for number, part in enumerate(document["keys"])
        )
    except _DAMAGED:
        raise UnreadableError from None


def dump_serving(key: ServingKey) -> bytes:
    """Write a serving key."""
    document = {
        "format": FORMAT,
        "id": key.id,
        "test": key.test,
        "grid": key.number_format.value,
        "normalise": key.normalise,
        "encoder": key.encoder,
        "commitment": key.commitment,
        "salt": key.salt,
        "mark": {"kind": key.mark.kind, **key.mark.document()},
    }
    return _dump(document, _prefixed(key.mark.arrays()))


def load_serving(payload: Secret) -> ServingKey:
    """Read what :func:`dump_serving` wrote, in this version or an earlier one."""
    document, tensors = _load(payload)
    try:
        return ServingKey(
            id=document["id"],
            test=document["test"],
            number_format=NumberFormat(document["grid"]),
            mark=_served_mark(document, tensors),
            normalise=document.get("normalise", False),  # files of the first days have none of these
            encoder=document.get("encoder", ""),
            commitment=document.get("commitment", ""),
            salt=document.get("salt", ""),
        )
    except _DAMAGED:
        raise UnreadableError from None


_DAMAGED = (KeyError, TypeError, ValueError, IndexError, AttributeError)


def _key_document(key: Key) -> dict[str, object]:
    return {
        "id": key.id,
        "created": key.created,
        "test": key.test,
        "encoder": key.encoder,
        "grid": key.number_format.value,
        "salt": key.salt.hex(),
        "settings": asdict(key.settings),
        "mark": {"kind": key.mark.kind, **key.mark.document()},
    }


def _key_arrays(key: Key) -> dict[str, AnyArray]:
    return {
        "master": np.frombuffer(key.master.reveal(), dtype=np.uint8),
        "pool.texts": _json_array(key.pool.texts),
        "pool.embeddings": key.pool.embeddings,
        "reservoir.texts": _json_array(key.reservoir.texts),
        "reservoir.embeddings": key.reservoir.embeddings,
        **_prefixed(key.mark.arrays()),
    }


def _key(
    document: Mapping[str, Any],
    tensors: Mapping[str, AnyArray],
    mark: Callable[[Mapping[str, Any], Mapping[str, AnyArray]], Mark],
) -> Key:
    return Key(
        master=Secret(tensors["master"].tobytes()),
        salt=bytes.fromhex(document["salt"]),
        settings=Settings.from_document(document["settings"]),
        mark=mark(document, tensors),
        encoder=document["encoder"],
        number_format=NumberFormat(document["grid"]),
        created=document["created"],
        test=document["test"],
        pool=TextSet(_texts(tensors["pool.texts"]), tensors["pool.embeddings"]),
        reservoir=TextSet(_texts(tensors["reservoir.texts"]), tensors["reservoir.embeddings"]),
    )


def _mark(document: Mapping[str, Any], tensors: Mapping[str, AnyArray]) -> Mark:
    part = document["mark"]
    return MARKS[part["kind"]].from_parts(part, arrays_under(tensors, _MARK))


def _first_mark(document: Mapping[str, Any], tensors: Mapping[str, AnyArray]) -> Mark:
    return RegionMark.from_parts(document, tensors)


def _served_mark(document: Mapping[str, Any], tensors: Mapping[str, AnyArray]) -> ServedMark:
    if document["format"] != FORMAT:
        return ServedRegions.from_parts(document, tensors)
    part = document["mark"]
    return SERVED_MARKS[part["kind"]].from_parts(part, arrays_under(tensors, _MARK))


def _prefixed(arrays: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    return {_MARK + name: array for name, array in arrays.items()}


def _dump(document: Mapping[str, object], tensors: Mapping[str, AnyArray]) -> bytes:
    contiguous = {name: np.ascontiguousarray(array) for name, array in tensors.items()}
    return bytes(save_tensors({"document": _json_array(document), **contiguous}))


def _load(payload: Secret) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    try:
        tensors = load_tensors(payload.reveal())
        document = json.loads(tensors.pop("document").tobytes())
        check_payload(document, tensors)
    except (SafetensorError, KeyError, ValueError, TypeError, AttributeError, RecursionError):
        raise UnreadableError from None
    if not isinstance(document, dict) or document.get("format") not in range(1, FORMAT + 1):
        raise UnreadableError
    return document, tensors


def _json_array(value: object) -> AnyArray:
    return np.frombuffer(json.dumps(value, sort_keys=True, ensure_ascii=False).encode(), dtype=np.uint8)


def _texts(array: AnyArray) -> tuple[str, ...]:
    return tuple(json.loads(array.tobytes()))
