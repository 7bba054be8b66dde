"""What a server takes at once, learnt from its refusals: per cause, only from what was tried, and not for ever.

A refusal is the word of a server about one request. It may be about a limit of the server, or about one bad text that
somebody sent, and its wording does not always tell. So a refusal changes nothing by itself: the same inputs are asked
for again in smaller parts, or without the field that was complained about. Only where the server then took **all** of
them was it the limit, and only then is that limit kept; where it refuses one of them again, that text is refused, and
nothing is learnt. What was learnt is forgotten after some minutes, so that a server that was mended is found out.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Sequence, Sized
from typing import Literal

Cause = Literal["count", "size", "base64"]
"""Why a server may have refused: too many inputs, too much text, or a format that it does not know."""

REMEMBERED = 300.0
"""Seconds after which a limit that was learnt is tried again."""

_REFUSALS = frozenset({400, 413, 422})
_MANY = re.compile(r"(?i)batch|too many (?!tokens)|array too long|at most \d+ (items|inputs|texts|strings|elements)")
_TOKENS = re.compile(r"(?i)tokens")  # a batch of too many of them: it is not the number of inputs that is too large
_NUMBER = re.compile(r"(?<![\d.])\d{1,6}(?![\d.])")
_SMALL = 1 << 16  # bytes: no server finds so few too many, so it is the inputs' number that it complains about


def cause_of(status: int, said: str, inputs: Sequence[Sized], *, base64: bool) -> Cause | None:
    """Return what a refusal may be about, other than the inputs themselves.

    Parameters
    ----------
    status, said
        The refusal.
    inputs
        What was asked for.
    base64
        Whether it was asked for in base64.

    Examples
    --------
    >>> cause_of(422, "batch size 64 > maximum allowed batch size 32", ["a text"] * 64, base64=True)
    'count'
    >>> cause_of(400, "this text is not allowed", ["a text"] * 64, base64=True) is None
    True
    """
    if status not in _REFUSALS:
        return None
    if base64 and status != 413 and "encoding_format" in said:
        return "base64"
    if len(inputs) < 2:
        return None
    if _MANY.search(said):
        return "size" if _TOKENS.search(said) else "count"
    if status != 413:
        return None
    return "size" if _is_large(inputs) else "count"


def _is_large(inputs: Sequence[Sized]) -> bool:
    """Say whether inputs are large as they are sent, where one letter has up to six bytes."""
    if sum(map(len, inputs)) > _SMALL:
        return True
    sent = json.dumps(list(inputs), ensure_ascii=False, separators=(",", ":"))
    return len(sent.encode("utf-8", "surrogatepass")) > _SMALL


def part_size(said: str, count: int) -> int:
    """Return how many of ``count`` inputs to try next: the number that the server names, or half of them.

    Examples
    --------
    >>> part_size("batch size 64 > maximum allowed batch size 24", 64), part_size("too large", 64)
    (24, 32)
    """
    named = [int(number) for number in _NUMBER.findall(said)]
    fitting = [number for number in named if 1 < number < count]
    return max(fitting) if fitting and _MANY.search(said) else (count + 1) // 2


class LearnedLimits:
    """What one server takes at once.

    Parameters
    ----------
    batch
        Inputs in one request, unless less is learnt.
    base64
        Whether to ask for base64, unless it is learnt that the server does not know it.
    clock
        Seconds that only go forward.

    Examples
    --------
    >>> limits = LearnedLimits(64)
    >>> limits.learn("count", 24, 0)
    >>> limits.bounds(["a text"] * 60)
    [(0, 24), (24, 48), (48, 60)]
    """

    def __init__(self, batch: int, *, base64: bool = True, clock: Callable[[], float] = time.monotonic) -> None:
        self._batch, self._base64, self._clock = batch, base64, clock
        self._learnt: dict[Cause, tuple[int, float]] = {}  # how much it takes, until when that is believed

    @property
    def base64(self) -> bool:
        """Whether to ask for base64."""
        return self._base64 and self._known("base64") is None

    @property
    def batch(self) -> int:
        """Inputs in one request."""
        known = self._known("count")
        return self._batch if known is None else min(self._batch, known)

    def learn(self, cause: Cause, count: int, letters: int) -> None:
        """Note that the server refused more and took this much: ``count`` inputs of ``letters`` in all."""
        self._learnt[cause] = (letters if cause == "size" else count, self._clock() + REMEMBERED)

    def bounds(self, inputs: Sequence[Sized]) -> list[tuple[int, int]]:
        """Cut inputs into parts that the server takes, each from its first to behind its last."""
        batch, letters = self.batch, self._known("size")
        if letters is None:
            return [(first, min(first + batch, len(inputs))) for first in range(0, len(inputs), batch)]
        cuts, held = [0], 0
        for place, size in enumerate(map(len, inputs)):
            held += size
            if place > cuts[-1] and (held > letters or place - cuts[-1] == batch):
                cuts.append(place)
                held = size
        return [*zip(cuts, [*cuts[1:], len(inputs)], strict=True)]

    def _known(self, cause: Cause) -> int | None:
        found = self._learnt.get(cause)
        if found is None:
            return None
        if self._clock() >= found[1]:
            del self._learnt[cause]
            return None
        return found[0]


def parts_of(first: int, last: int, size: int) -> list[tuple[int, int]]:
    """Cut ``first`` to ``last`` into parts of ``size``.

    Examples
    --------
    >>> parts_of(3, 8, 2)
    [(3, 5), (5, 7), (7, 8)]
    """
    return [(start, min(start + size, last)) for start in range(first, last, size)]


def largest(inputs: Sequence[Sized], bounds: Sequence[tuple[int, int]]) -> int:
    """Return the letters of the largest of these parts.

    Examples
    --------
    >>> largest(["a", "bb", "ccc"], [(0, 2), (2, 3)])
    3
    """
    return max(sum(map(len, inputs[first:last])) for first, last in bounds)
