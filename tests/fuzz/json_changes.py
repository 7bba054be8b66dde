"""Changes that keep an input's structure: a value of its JSON replaced, removed or doubled.

A flipped byte of JSON is mostly no JSON any more, and then nothing behind the parser is reached.
"""

from __future__ import annotations

import copy
import json
import random
from typing import Any

STRANGE: tuple[Any, ...] = (
    None, True, False, -1, 0, 1, 2**31, 2**63, 10**30, -(10**30), 0.5, 1e308, float("nan"), float("inf"), "", "x",
    "\ud800", "0" * 64, "2026-13-01", "9" * 5000, [], [0], [[]], [None] * 3, {}, {"x": 1},
)  # fmt: skip
HEADS = {"answer": 4, "key": 1, "bundle": 1, "proof": 1, "answers": 1}
"""Bytes before the JSON of a target's input; they choose the way in."""


def changed(data: bytes, target: str, draw: random.Random) -> bytes | None:
    """Return an input with its JSON changed in one to three places; None where it holds none."""
    head = HEADS.get(target, 0)
    try:
        document = json.loads(data[head:])
    except (ValueError, RecursionError):
        return None
    for _ in range(draw.randrange(1, 4)):
        document = _with_change(document, draw)
    try:
        return data[:head] + json.dumps(document).encode()
    except (ValueError, RecursionError):
        return None


def _with_change(document: Any, draw: random.Random) -> Any:
    places = list(_places(document))
    if not places:
        return draw.choice(STRANGE)
    document = copy.deepcopy(document)
    path = draw.choice(places)
    holder = document
    for step in path[:-1]:
        holder = holder[step]
    match draw.randrange(4):
        case 0:
            del holder[path[-1]]
        case 1 if isinstance(holder, list):
            holder.insert(draw.randrange(len(holder) + 1), copy.deepcopy(holder[path[-1]]))
        case 2:
            other = document
            for step in draw.choice(places):
                other = other[step]
            holder[path[-1]] = copy.deepcopy(other)
        case _:
            holder[path[-1]] = draw.choice(STRANGE)
    return document


def _places(document: Any, above: tuple[Any, ...] = ()) -> Any:
    steps = document if isinstance(document, dict) else range(len(document)) if isinstance(document, list) else ()
    for step in steps:
        yield (*above, step)
        yield from _places(document[step], (*above, step))
