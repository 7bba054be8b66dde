"""Keys as bytes: one safetensors block of named arrays, one of which is a JSON document.

Arrays are stored as arrays, because no library promises that a seed means the same in ten years. Nothing in the block
is ever executed on reading. Names: ``document`` (UTF-8 JSON), and ``<n>/<array>`` for the n-th key of a ring.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load as load_tensors
from safetensors.numpy import save as save_tensors

from regionmarker.corpus import TextSet
from regionmarker.crypto.envelope import UnreadableError
from regionmarker.crypto.secret import Secret
from regionmarker.keys.key import Key, settings_from
from regionmarker.keys.serving import ServingKey
from regionmarker.marks.number_format import Grid
from regionmarker.marks.reduction import from_arrays
from regionmarker.vectors import AnyArray

FORMAT = 1
_REDUCTION = "reduction."


def dump_ring(keys: Sequence[Key]) -> bytes:
    """Write the keys of a ring, oldest first."""
    tensors: dict[str, AnyArray] = {}
    documents = []
    for number, key in enumerate(keys):
        documents.append(_key_document(key))
        tensors.update({f"{number}/{name}": array for name, array in _key_arrays(key).items()})
    return _dump({"format": FORMAT, "keys": documents}, tensors)


def load_ring(payload: Secret) -> tuple[Key, ...]:
    """Read what :func:`dump_ring` wrote."""
    document, tensors = _load(payload)
    try:
        return tuple(_key(part, _under(tensors, f"{number}/")) for number, part in enumerate(document["keys"]))
    except (KeyError, TypeError, ValueError, IndexError):
        raise UnreadableError from None


def dump_serving(key: ServingKey) -> bytes:
    """Write a serving key."""
    document = {
        "format": FORMAT,
        "id": key.id,
        "test": key.test,
        "strength": key.strength,
        "grid": key.grid.value,
        "dimension": key.dimension,
        "regions": key.regions,
        "tenant_regions": key.tenant_regions,
        "provider_rows": key.provider_rows,
        "tenant_rows": dict(key.tenant_rows),
        "reduction": None if key.reduction is None else key.reduction.kind,
        "encoder": key.encoder,
        "commitment": key.commitment,
        "salt": key.salt,
    }
    arrays = {
        "vectors": key.vectors,
        "projection": key.projection,
        "thresholds": key.thresholds,
        "normals": key.normals,
        "shares": key.shares,
        **({} if key.reduction is None else _prefixed(key.reduction.arrays())),
    }
    return _dump(document, {name: array for name, array in arrays.items() if array is not None})


def load_serving(payload: Secret) -> ServingKey:
    """Read what :func:`dump_serving` wrote."""
    document, tensors = _load(payload)
    try:
        kind = document["reduction"]
        return ServingKey(
            id=document["id"],
            test=document["test"],
            strength=document["strength"],
            grid=Grid(document["grid"]),
            dimension=document["dimension"],
            projection=tensors.get("projection"),
            thresholds=tensors.get("thresholds"),
            reduction=None if kind is None else from_arrays(kind, _under(tensors, _REDUCTION)),
            normals=tensors.get("normals"),
            regions=tuple(document["regions"]),
            tenant_regions=tuple(document["tenant_regions"]),
            vectors=tensors["vectors"],
            provider_rows=tuple(document["provider_rows"]),
            tenant_rows={name: tuple(rows) for name, rows in document["tenant_rows"].items()},
            encoder=document.get("encoder", ""),  # files of the first days have none of these
            commitment=document.get("commitment", ""),
            salt=document.get("salt", ""),
            shares=tensors.get("shares"),
        )
    except (KeyError, TypeError, ValueError, IndexError):
        raise UnreadableError from None


def _key_document(key: Key) -> dict[str, object]:
    return {
        "id": key.id,
        "created": key.created,
        "test": key.test,
        "encoder": key.encoder,
        "grid": key.grid.value,
        "salt": key.salt.hex(),
        "settings": asdict(key.settings),
        "reduction": key.reduction.kind,
        "regions": key.regions,
        "tenant_regions": key.tenant_regions,
    }


def _key_arrays(key: Key) -> dict[str, AnyArray]:
    return {
        "master": np.frombuffer(key.master.reveal(), dtype=np.uint8),
        "normals": key.normals,
        "shares": key.shares,
        "pool.texts": _text_array(key.pool.texts),
        "pool.embeddings": key.pool.embeddings,
        "reservoir.texts": _text_array(key.reservoir.texts),
        "reservoir.embeddings": key.reservoir.embeddings,
        **_prefixed(key.reduction.arrays()),
    }


def _key(document: Mapping[str, Any], tensors: Mapping[str, AnyArray]) -> Key:
    return Key(
        master=Secret(tensors["master"].tobytes()),
        salt=bytes.fromhex(document["salt"]),
        settings=settings_from(document["settings"]),
        encoder=document["encoder"],
        grid=Grid(document["grid"]),
        created=document["created"],
        test=document["test"],
        reduction=from_arrays(document["reduction"], _under(tensors, _REDUCTION)),
        normals=tensors["normals"],
        shares=tensors["shares"],
        regions=tuple(document["regions"]),
        tenant_regions=tuple(document["tenant_regions"]),
        pool=TextSet(_texts(tensors["pool.texts"]), tensors["pool.embeddings"]),
        reservoir=TextSet(_texts(tensors["reservoir.texts"]), tensors["reservoir.embeddings"]),
    )


def _dump(document: Mapping[str, object], tensors: Mapping[str, AnyArray]) -> bytes:
    contiguous = {name: np.ascontiguousarray(array) for name, array in tensors.items()}
    return bytes(save_tensors({"document": _json_array(document), **contiguous}))


def _load(payload: Secret) -> tuple[dict[str, Any], dict[str, AnyArray]]:
    try:
        tensors = load_tensors(payload.reveal())
        document = json.loads(tensors.pop("document").tobytes())
    except (SafetensorError, KeyError, ValueError):
        raise UnreadableError from None
    if document.get("format") != FORMAT:
        raise UnreadableError
    return document, tensors


def _json_array(value: object) -> AnyArray:
    return np.frombuffer(json.dumps(value, sort_keys=True, ensure_ascii=False).encode(), dtype=np.uint8)


def _text_array(texts: Sequence[str]) -> AnyArray:
    return _json_array(list(texts))


def _texts(array: AnyArray) -> tuple[str, ...]:
    return tuple(json.loads(array.tobytes()))


def _prefixed(arrays: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    return {_REDUCTION + name: array for name, array in arrays.items()}


def _under(tensors: Mapping[str, AnyArray], prefix: str) -> dict[str, AnyArray]:
    return {name.removeprefix(prefix): array for name, array in tensors.items() if name.startswith(prefix)}
