"""A payload that somebody sealed on purpose: nothing of it is used unless it is what a key is made of."""

from __future__ import annotations

import contextlib
import copy
import json
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load, save

from regionmarker import RegionMarker
from regionmarker.crypto.envelope import Kind, Opener, UnreadableError, seal
from regionmarker.crypto.secret import Secret, write_owner_only
from regionmarker.errors import InputError, KeyFileError
from regionmarker.keys.file_format import dump_ring, dump_serving, load_ring, load_serving
from regionmarker.keys.key import Key
from regionmarker.keys.schema import check_payload

STRANGE = (
    None, True, -1, 0, 1, 2**31, 10**30, 10**400, 0.5, -0.5, 1e308, float("nan"), float("inf"), "", "x", "zz",
    "9" * 5000, [], [0], [-1], [10**30], ["x"], [[]], {}, {"x": 1},
)  # fmt: skip


@pytest.fixture(scope="module")
def marks(marker, sentences, embeddings) -> dict[str, Key]:
    graded = RegionMarker(seed=1).fit(sentences[:400], embeddings=embeddings[:400])
    return {"regions": marker.key_, "graded": graded.key_}


@pytest.fixture(scope="module", params=["regions", "graded"])
def payloads(request, marks) -> dict[str, bytes]:
    key = marks[request.param]
    return {"ring": dump_ring((key,)), "serving": dump_serving(key.serving(["acme"]))}


def unpacked(payload: bytes) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    tensors = load(payload)
    return json.loads(tensors.pop("document").tobytes()), tensors


def packed(document: object, tensors: dict[str, np.ndarray]) -> bytes:
    text = np.frombuffer(json.dumps(document).encode(), dtype=np.uint8)
    return bytes(save({"document": text, **{name: np.ascontiguousarray(array) for name, array in tensors.items()}}))


def use(kind: str, payload: bytes, embeddings: np.ndarray) -> bool:
    """Open a payload and do with it what its holder does; return whether it could be opened."""
    try:
        opened = (load_ring if kind == "ring" else load_serving)(Secret(payload))
    except UnreadableError:
        return False
    with contextlib.suppress(InputError):  # a sentence is well: "this key has no tenant regions"
        for serving in [key.serving(["acme"]) for key in opened] if kind == "ring" else [opened]:
            serving.describe()
            rows = embeddings[:8, : serving.width]
            RegionMarker.from_opened(serving).transform(rows / np.linalg.norm(rows, axis=1, keepdims=True))
    return True


def with_every(document: Any, name: str, value: object) -> Any:
    """Replace what has a name, wherever it stands."""
    if isinstance(document, list):
        return [with_every(part, name, value) for part in document]
    if not isinstance(document, dict):
        return document
    return {key: value if key == name else with_every(part, name, value) for key, part in document.items()}


def changed_documents(document: Any) -> Iterator[object]:
    """Yield copies of a document with one value, at any depth, replaced or removed."""
    if not isinstance(document, dict | list):
        return
    for place in list(document) if isinstance(document, dict) else range(len(document)):
        for value in STRANGE:
            changed = copy.deepcopy(document)
            changed[place] = value
            yield changed
        removed = copy.deepcopy(document)
        del removed[place]
        yield removed
        for inner in changed_documents(document[place]):
            changed = copy.deepcopy(document)
            changed[place] = inner
            yield changed


def changed_arrays(tensors: dict[str, np.ndarray]) -> Iterator[dict[str, np.ndarray]]:
    """Yield copies of the arrays with one of another shape, type or content."""
    for name, array in tensors.items():
        yield {other: found for other, found in tensors.items() if other != name}
        changes = [array[:0], array[:-1], array[..., None], array.astype(np.float16), np.zeros_like(array), array[None]]
        changes += [array.astype(np.int64), np.zeros(0, array.dtype), np.zeros((1, 10**6), array.dtype)]
        if array.dtype.kind == "f":
            changes += [np.full_like(array, value) for value in (np.nan, np.inf, -1e30)]
        for change in changes:
            yield {**tensors, name: change}


@pytest.mark.parametrize("kind", ["ring", "serving"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_every_value_replaced_or_removed_opens_or_is_unreadable(payloads, embeddings, kind):
    document, tensors = unpacked(payloads[kind])
    assert use(kind, packed(document, tensors), embeddings)
    cases = list(changed_documents(document))
    opened = sum(use(kind, packed(changed, tensors), embeddings) for changed in cases)
    assert len(cases) > 300
    assert 0 < opened < len(cases) / 3


@pytest.mark.parametrize("kind", ["ring", "serving"])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_every_array_changed_opens_or_is_unreadable(payloads, embeddings, kind):
    document, tensors = unpacked(payloads[kind])
    for changed in changed_arrays(tensors):
        use(kind, packed(document, changed), embeddings)


@pytest.mark.parametrize(
    ("mark", "kind", "name"),
    [("regions", "serving", "dimension"), ("regions", "ring", "dimension"), ("graded", "ring", "pairs"),
     ("graded", "ring", "pair_planes"), ("graded", "ring", "band_end"), ("graded", "ring", "tenant_singles")],
)  # fmt: skip
def test_a_huge_count_costs_nothing(marks, mark, kind, name):
    """``2 ** dimension`` would not end before the machine does."""
    key, opening = marks[mark], load_serving if kind == "serving" else load_ring
    payload = dump_serving(key.serving()) if kind == "serving" else dump_ring((key,))
    document, tensors = unpacked(payload)
    hostile = with_every(document, name, 10**12)
    assert hostile != document
    with pytest.raises(UnreadableError):
        opening(Secret(packed(hostile, tensors)))


@pytest.mark.parametrize(
    "text", [b"[" * 100_000, b"[]", b"null", b'"x"', b"\xff", b"", b"{", b'{"format": ' + b"9" * 5000 + b"}"]
)
def test_a_document_that_is_none(text):
    for opening in (load_ring, load_serving):
        with pytest.raises(UnreadableError):
            opening(Secret(bytes(save({"document": np.frombuffer(text, dtype=np.uint8)}))))


def test_another_format_is_refused(payloads):
    document, tensors = unpacked(payloads["ring"])
    for number in (0, 3, True, "1", 1.5, None):
        with pytest.raises(UnreadableError):
            check_payload({**document, "format": number}, tensors)


def test_flips_inside_the_payload_open_or_are_unreadable(payloads, embeddings):
    """Sealed again after the flip: the envelope is no defense against its owner."""
    draw = random.Random(3)
    for kind, payload in payloads.items():
        for _ in range(300):
            damaged = bytearray(payload)
            place = draw.randrange(min(len(damaged), 6000))  # the index and the document, where structure is
            damaged[place] ^= draw.randrange(1, 256)
            with np.errstate(all="ignore"):
                use(kind, bytes(damaged), embeddings)


def test_a_sealed_file_of_that_kind_has_the_one_sentence(payloads, tmp_path):
    document, tensors = unpacked(payloads["serving"])
    hostile = packed(with_every(document, "strength", 10**30), tensors)
    path = tmp_path / "serving.rmkey"
    secret = Secret(b"s" * 32)
    write_owner_only(path, Secret(seal(Secret(hostile), Kind.SERVING, Opener.secret(secret))))
    write_owner_only(tmp_path / "serving.rmkey.secret", secret)
    with pytest.raises(KeyFileError, match="it is damaged, is not a regionmarker key"):
        RegionMarker.load(path)
