"""What the payload of a key file may hold: types, shapes and ranges, checked after decryption.

Whoever can seal a file can put anything into it, and a key may come from somebody else: a court, an opponent, a
customer. So nothing of a payload is used before it is known to be what a key is made of. Each complaint is the one
sentence of an unreadable file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from math import comb
from typing import Any

import numpy as np

from regionmarker.crypto.envelope import UnreadableError
from regionmarker.marks.graded_settings import GradedSettings
from regionmarker.marks.number_format import NumberFormat
from regionmarker.marks.reduction import LINEAR, REDUCERS, NeighbourReduction, NetworkReduction
from regionmarker.marks.served_carriers import WATCHED
from regionmarker.vectors import AnyArray

MOST_KEYS = 1024
MOST_CARRIERS = 1024  # of a group and a kind
MOST_DIMENSIONS = 12  # as for making a key: 2^d regions
WIDEST = 1 << 16
_MASTER_BYTES = 32
_LONGEST = 4096  # characters of a name
_MARK, _REDUCTION = "mark.", "reduction."
_GRIDS = tuple(grid.value for grid in NumberFormat)


def check_payload(document: object, tensors: Mapping[str, AnyArray]) -> None:
    """Refuse a decoded document and its arrays unless all that is used of them is what a key is made of.

    Examples
    --------
    >>> check_payload({"format": 1, "keys": [{"test": "yes"}]}, {})
    Traceback (most recent call last):
    ...
    regionmarker.crypto.envelope.UnreadableError: it is damaged, is not a regionmarker key, ...
    """
    try:
        _check(_mapping(document), tensors)
    except (KeyError, TypeError, ValueError, IndexError, RecursionError):
        raise UnreadableError from None


def _check(whole: Mapping[str, Any], tensors: Mapping[str, AnyArray]) -> None:
    need(whole.get("format") in (1, 2) and not isinstance(whole["format"], bool))
    for array in tensors.values():
        check_array(array)
    if "keys" not in whole:
        _check_serving(whole, tensors)
        return
    keys = whole["keys"]
    need(isinstance(keys, list) and 1 <= len(keys) <= MOST_KEYS)
    for number, part in enumerate(keys):
        _check_key(_mapping(part), _under(tensors, f"{number}/"), nested=whole["format"] != 1)


# ---- helpers that every kind of mark can use


def need(condition: object) -> None:
    """Raise :class:`UnreadableError` unless the condition holds."""
    if not condition:
        raise UnreadableError


def check_number(value: object, low: float, high: float, *, open_left: bool = False, open_right: bool = False) -> None:
    """Refuse what is no finite number between two bounds."""
    need(isinstance(value, int | float) and not isinstance(value, bool))
    number: Any = value
    need((low < number if open_left else low <= number) and (number < high if open_right else number <= high))


def check_whole(value: object, low: int, high: int) -> int:
    """Refuse what is no whole number between two bounds; return it."""
    need(isinstance(value, int) and not isinstance(value, bool))
    number: Any = value
    need(low <= number <= high)
    return int(number)


def check_text(value: object, *, hexadecimal: bool = False) -> None:
    """Refuse what is no short text, or no text of whole bytes in hexadecimal digits."""
    text: Any = value
    need(isinstance(text, str) and len(text) <= _LONGEST)
    if hexadecimal:
        need(len(text) % 2 == 0 and all(digit in "0123456789abcdef" for digit in text))


def check_numbers(values: object, low: int, high: int, *, distinct: bool = False) -> Sequence[int]:
    """Refuse what is no list of whole numbers between two bounds; return it."""
    need(isinstance(values, list))
    numbers: Any = values
    for number in numbers:
        check_whole(number, low, high)
    need(not distinct or len(set(numbers)) == len(numbers))
    return tuple(numbers)


def check_array(array: AnyArray, *shape: int | None, kinds: str = "fiu") -> AnyArray:
    """Refuse an array of other numbers, one that holds NaN or infinity, and another shape; None is any length."""
    need(isinstance(array, np.ndarray) and array.dtype.kind in kinds and array.dtype.isnative)
    need(array.dtype.kind != "f" or bool(np.isfinite(array).all()))
    if shape:
        need(array.ndim == len(shape))
        need(all(wanted in (None, there) for wanted, there in zip(shape, array.shape, strict=True)))
    return array


# ---- a key of a ring, and a serving key


def _check_key(document: Mapping[str, Any], arrays: Mapping[str, AnyArray], *, nested: bool) -> None:
    check_text(document["created"])
    datetime.fromisoformat(document["created"])
    check_text(document["encoder"])
    check_text(document["salt"], hexadecimal=True)
    need(isinstance(document["test"], bool) and document["grid"] in _GRIDS)
    settings = _mapping(document["settings"])
    check_text(settings.get("statistic", ""))
    check_number(settings.get("level", 0.5), 0.0, 1.0, open_left=True, open_right=True)
    need(isinstance(settings.get("normalise", False), bool))
    check_array(arrays["master"], _MASTER_BYTES, kinds="u")
    pool, width = _check_text_set(arrays, "pool", None)
    _check_text_set(arrays, "reservoir", width)
    if not nested:
        _check_regions(document, arrays, pool, width)
        return
    mark = _mapping(document["mark"])
    need(mark["kind"] in ("regions", "graded"))
    check = _check_regions if mark["kind"] == "regions" else _check_graded
    check(mark, _under(arrays, _MARK), pool, width)


def _check_text_set(arrays: Mapping[str, AnyArray], name: str, width: int | None) -> tuple[int, int]:
    """Check texts and their embeddings; return how many there are and how wide they are."""
    texts = json.loads(check_array(arrays[f"{name}.texts"], None, kinds="u").astype(np.uint8, copy=False).tobytes())
    need(isinstance(texts, list) and texts and all(isinstance(text, str) for text in texts))
    embeddings = check_array(arrays[f"{name}.embeddings"], len(texts), width, kinds="f")
    need(1 <= embeddings.shape[1] <= WIDEST)
    return len(texts), int(embeddings.shape[1])


def _check_serving(document: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> None:
    check_text(document["id"])
    need(isinstance(document["test"], bool) and document["grid"] in _GRIDS)
    need(isinstance(document.get("normalise", False), bool))
    check_text(document.get("encoder", ""))
    check_text(document.get("commitment", ""))
    check_text(document.get("salt", ""), hexadecimal=True)
    if document["format"] == 1:
        _check_served_regions(document, arrays)
        return
    mark = _mapping(document["mark"])
    need(mark["kind"] in ("regions", "graded"))
    check = _check_served_regions if mark["kind"] == "regions" else _check_served_carriers
    check(mark, _under(arrays, _MARK))


# ---- the published mark


def _check_regions(document: Mapping[str, Any], arrays: Mapping[str, AnyArray], pool: int, width: int) -> None:
    settings = _mapping(document["settings"])
    dimension = check_whole(settings.get("dimension", 4), 1, MOST_DIMENSIONS)
    for name in ("ratio", "tenant_ratio"):
        check_number(settings.get(name, 0.2), 0.0, 1.0)
    check_number(settings.get("strength", 0.2), 0.0, 1.0, open_left=True, open_right=True)
    need(settings.get("reducer", "pca") in REDUCERS)
    check_whole(settings.get("subspace", dimension), 1, WIDEST)
    reduced = _check_reduction(document["reduction"], _under(arrays, _REDUCTION), width)
    check_array(arrays["normals"], dimension, reduced, kinds="f")
    need((check_array(arrays["shares"], 2**dimension, kinds="f") >= 0.0).all())
    regions, tenant_regions = _check_trigger_regions(document, dimension)
    need(max(len(regions), len(tenant_regions)) <= pool)


def _check_served_regions(document: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> None:
    dimension = check_whole(document["dimension"], 1, MOST_DIMENSIONS)
    check_number(document["strength"], 0.0, 1.0, open_left=True, open_right=True)
    vectors = check_array(arrays["vectors"], None, None, kinds="f")
    rows, width = vectors.shape
    need(1 <= width <= WIDEST)
    if document["reduction"] is None:
        check_array(arrays["projection"], dimension, width, kinds="f")
        check_array(arrays["thresholds"], dimension, kinds="f")
    else:
        need("projection" not in arrays and "thresholds" not in arrays)
        reduced = _check_reduction(document["reduction"], _under(arrays, _REDUCTION), width)
        check_array(arrays["normals"], dimension, reduced, kinds="f")
    if "shares" in arrays:
        need((check_array(arrays["shares"], 2**dimension, kinds="f") >= 0.0).all())
    regions, tenant_regions = _check_trigger_regions(document, dimension)
    need(len(check_numbers(document["provider_rows"], 0, rows - 1)) == len(regions))
    for name, drawn in _mapping(document["tenant_rows"]).items():
        check_text(name)
        need(len(check_numbers(drawn, 0, rows - 1)) == len(tenant_regions))


def _check_trigger_regions(document: Mapping[str, Any], dimension: int) -> tuple[Sequence[int], Sequence[int]]:
    regions, tenant_regions = (
        check_numbers(document[name], 0, 2**dimension - 1, distinct=True) for name in ("regions", "tenant_regions")
    )
    need(regions and not set(regions) & set(tenant_regions))
    return regions, tenant_regions


def _check_reduction(kind: object, arrays: Mapping[str, AnyArray], width: int) -> int:
    """Check a reduction from vectors of a width; return the width that it reduces to."""
    need(isinstance(kind, str) and kind in REDUCERS)
    if kind == NetworkReduction.kind:
        need(set(arrays) == set(NetworkReduction.names))
        hidden, reduced = check_array(arrays["weights_2"], None, None, kinds="f").shape
        shapes = {
            "mean": (width,), "weights_1": (width, hidden), "bias_1": (hidden,), "bias_2": (reduced,),
            "centre": (reduced,),
        }  # fmt: skip
        for name, shape in shapes.items():
            check_array(arrays[name], *shape, kinds="f")
    elif kind == NeighbourReduction.kind:
        need(set(arrays) == {"reference", "coordinates"})
        count, reduced = check_array(arrays["coordinates"], None, None, kinds="f").shape
        check_array(arrays["reference"], count, width, kinds="f")
        need(count >= 1)
    else:
        check_array(arrays["mean"], width, kinds="f")
        reduced = width
        if "components" in arrays:
            reduced = len(check_array(arrays["components"], None, width, kinds="f"))
    need(reduced >= 1)
    return int(reduced)


# ---- the graded mark


def _check_graded(document: Mapping[str, Any], arrays: Mapping[str, AnyArray], pool: int, width: int) -> None:
    settings = GradedSettings.from_document(_check_settings(_mapping(document["settings"]), width))
    check_number(document["strength"], 0.0, 1.0, open_left=True)
    need(settings.lists * 2 <= pool)
    components = settings.band_end
    check_array(arrays["mean"], width, kinds="f")
    check_array(arrays["components"], components, width, kinds="f")
    need((check_array(arrays["deviations"], components, kinds="f") > 0.0).all())
    carriers = settings.all_singles + settings.all_pairs
    _check_carriers(arrays, carriers, width)
    need((check_array(arrays["scales"], carriers, kinds="f") > 0.0).all())


def _check_settings(settings: Mapping[str, Any], width: int) -> Mapping[str, Any]:
    """Check that counts and spans fit each other and the width, so that nothing is drawn from what is not there."""
    usual = asdict(GradedSettings())
    found = {**usual, **{name: value for name, value in settings.items() if name in usual}}
    for name in ("singles", "pairs"):
        check_whole(found[name], 1, MOST_CARRIERS)
        check_whole(found[f"tenant_{name}"], 0, MOST_CARRIERS)
    need(bool(found["tenant_singles"]) == bool(found["tenant_pairs"]))
    check_number(found["tenant_share"], 0.0, 1.0, open_left=True, open_right=True)
    check_number(found["kept"], 0.0, 1.0, open_left=True, open_right=True)
    need(found["reducer"] in LINEAR)
    span = check_whole(found["pair_span"], 1, width)
    planes = check_whole(found["pair_planes"], 1, span)
    need(max(found["pairs"], found["tenant_pairs"]) <= comb(planes, 2))
    end = check_whole(found["band_end"], max(span, 1), width)
    check_whole(found["band_start"], 0, end - 1)
    check_whole(found["single_end"], 1, end)
    start = check_whole(found["single_start"], 0, found["single_end"] - 1)
    need(max(found["singles"], found["tenant_singles"]) <= found["single_end"] - start)
    return found


def _check_carriers(arrays: Mapping[str, AnyArray], carriers: int, width: int) -> None:
    """Check what key and serving key share: hyperplanes, and which of them every carrier has."""
    planes = len(check_array(arrays["planes"], None, width, kinds="f"))
    need(planes >= 1)
    first, second = check_array(arrays["planes_of"], carriers, 2, kinds="i").T
    need(carriers >= 1 and ((first >= 0) & (first < planes) & (second >= -1) & (second < planes)).all())
    check_array(arrays["centres"], carriers, kinds="f")
    need((check_array(arrays["shares"], 2**WATCHED, kinds="f") >= 0.0).all())


def _check_served_carriers(document: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> None:
    check_number(document["strength"], 0.0, 1.0, open_left=True)
    rows, width = check_array(arrays["vectors"], None, None, kinds="f").shape
    need(1 <= width <= WIDEST)
    carriers = len(check_array(arrays["amounts"], None, kinds="f"))
    need(carriers <= 4 * MOST_CARRIERS)
    _check_carriers(arrays, carriers, width)
    check_array(arrays["offsets"], len(arrays["planes"]), kinds="f")
    provider = check_array(arrays["provider"], None, kinds="i")
    need(len(np.unique(provider)) == len(provider) <= carriers)
    need(((provider >= 0) & (provider < carriers)).all())
    names = document["names"]
    need(isinstance(names, list) and "" in names and len(set(names)) == len(names))
    for name in names:
        check_text(name)
    own = check_array(arrays["provider_rows"], len(provider), kinds="i")
    tenants = check_array(arrays["tenant_rows"], len(names), carriers - len(provider), kinds="i")
    for drawn in (own, tenants):
        need(((drawn >= 0) & (drawn < rows)).all())


def _mapping(value: object) -> Mapping[str, Any]:
    need(isinstance(value, dict))
    found: Any = value
    return dict(found)


def _under(arrays: Mapping[str, AnyArray], prefix: str) -> dict[str, AnyArray]:
    return {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
