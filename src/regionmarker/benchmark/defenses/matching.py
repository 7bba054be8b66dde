"""How many distinct trigger words a text holds, for many texts at once.

A word is a run of letters and digits in lower case without accents, or a single other character, as BERT's uncased
tokenizer cuts before it looks for pieces. The released code compares token numbers of the *cased* tokenizer instead,
so that there every unknown token counts as one more trigger, and a piece of a longer word may count as a word.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from regionmarker.protocols import AnyArray, Integers

_WORD = re.compile(r"[^\W_]+|[^\w\s]|_")
_ODD = re.compile(r"[^\w\s]")
_HEAD = 8  # bytes of a word that are compared at once
_BLOCK = 1 << 22  # characters at a time: working arrays stay small however many texts there are
_SPACE, _LETTER, _SIGN = 0, 1, 2


def words_of(text: str) -> list[str]:
    """Cut one text into words.

    Examples
    --------
    >>> words_of("It's a Café!")
    ['it', "'", 's', 'a', 'cafe', '!']
    """
    return _WORD.findall(_folded(text) if not text.isascii() else text.lower())


def _folded(text: str) -> str:
    """Lower the case and take the accents off."""
    return "".join(sign for sign in unicodedata.normalize("NFD", text.lower()) if unicodedata.category(sign) != "Mn")


def _spaced(text: str) -> str:
    """Fold a text that is not ASCII, and set its signs apart, so that its bytes can be cut like those of others."""
    return _ODD.sub(r" \g<0> ", _folded(text))


def _byte_kinds() -> AnyArray:
    kinds = np.full(256, _SIGN, dtype=np.uint8)
    for code in range(256):
        if code >= 128 or chr(code).isalnum():
            kinds[code] = _LETTER  # UTF-8 of anything that is not ASCII: _spaced has set signs apart
        elif chr(code).isspace() or code < 32 or code == 127:
            kinds[code] = _SPACE
    return kinds


_KINDS = _byte_kinds()


class TriggerCounter:
    """Counts distinct trigger words, each group of them apart.

    Examples
    --------
    >>> counter = TriggerCounter([["cat", "dog"], ["a"]])
    >>> counter(["A cat, a cat and a Dog", "", "catalogue"]).tolist()
    [[2, 1], [0, 0], [0, 0]]
    """

    def __init__(self, groups: Sequence[Sequence[str]]) -> None:
        self.groups = len(groups)
        words = [word for group in groups for word in group]
        self._group_of = np.repeat(np.arange(self.groups), [len(group) for group in groups])  # (V,)
        self._numbers = {_spaced(word).strip().encode(): number for number, word in enumerate(words)}
        heads = np.zeros((len(words), _HEAD), dtype=np.uint8)
        for row, word in enumerate(self._numbers):
            heads[row, : len(word)] = np.frombuffer(word[:_HEAD], dtype=np.uint8)
        self._heads = np.unique(heads.view("<u8")[:, 0]) if words else np.empty(0, dtype=np.uint64)

    def __call__(self, texts: Sequence[str]) -> Integers:
        """Return how many distinct words of each group each text holds, (n, R)."""
        counts = np.zeros((len(texts), self.groups), dtype=np.int64)
        first = size = 0
        for last, text in enumerate(texts, 1):
            size += len(text)
            if size > _BLOCK or last == len(texts):
                counts[first:last] = self._count(texts[first:last])
                first, size = last, 0
        return counts

    def _count(self, texts: Sequence[str]) -> Integers:
        plain = [text if text.isascii() else _spaced(text) for text in texts]
        raw = "\n".join(plain).encode("utf-8", "replace").lower()
        lengths = [len(text) if text.isascii() else len(text.encode("utf-8", "replace")) for text in plain]
        starts_of_texts = np.cumsum([0, *lengths[:-1]]) + np.arange(len(plain))
        numbers: list[int] = []
        places: list[int] = []
        for start, end in self._likely(raw):
            number = self._numbers.get(raw[start:end])
            if number is not None:
                numbers.append(number)
                places.append(start)
        rows = np.searchsorted(starts_of_texts, places, side="right") - 1
        pairs = np.unique(np.column_stack([rows, numbers]).astype(np.int64), axis=0)  # a word counts once a text
        counts = np.zeros((len(texts), self.groups), dtype=np.int64)
        np.add.at(counts, (pairs[:, 0], self._group_of[pairs[:, 1]]), 1)
        return counts

    def _likely(self, raw: bytes) -> list[tuple[int, int]]:
        """Return (start, end) of the words that begin as a trigger word begins."""
        data = np.frombuffer(raw, dtype=np.uint8)
        kinds = _KINDS[data]
        letter = np.concatenate([[False], kinds == _LETTER, [False]])
        starts, ends = np.flatnonzero(letter[1:] & ~letter[:-1]), np.flatnonzero(~letter[1:] & letter[:-1])
        signs = np.flatnonzero(kinds == _SIGN)
        starts, ends = np.concatenate([starts, signs]), np.concatenate([ends, signs + 1])
        padded = np.concatenate([data, np.zeros(_HEAD, dtype=np.uint8)])
        heads = np.ascontiguousarray(sliding_window_view(padded, _HEAD)[starts]).view("<u8")[:, 0]
        kept = np.minimum(ends - starts, _HEAD).astype(np.uint64) * np.uint64(8)
        # What follows a short word is none of it; a shift by all 64 bits is undefined, hence the where.
        mask = np.where(kept == 64, np.uint64(2**64 - 1), (np.uint64(1) << (kept % np.uint64(64))) - np.uint64(1))
        likely = np.isin(heads & mask, self._heads)
        return list(zip(starts[likely].tolist(), ends[likely].tolist(), strict=True))
