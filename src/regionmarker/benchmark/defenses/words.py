"""Trigger words: how they are drawn, and how many distinct ones a text holds, for many texts at once.

The published schemes count in how many lines of WikiText-103 a token of bert-base-uncased stands, and draw from the
tokens that stand in 0.5 % to 1 % of them. The counts are a file; without it, words are counted in the provider's own
corpus.

A word is a run of letters and digits in lower case without accents, or a single other character, as BERT's uncased
tokenizer cuts before it looks for pieces. The released code compares token numbers of the *cased* tokenizer instead,
so that there every unknown token counts as one more trigger, and a piece of a longer word may count as a word.
"""

from __future__ import annotations

import json
import os
import random
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from regionmarker.errors import InputError
from regionmarker.vectors import AnyArray, Integers

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
_MASKS = np.array([(1 << (8 * kept)) - 1 for kept in range(_HEAD + 1)], dtype=np.uint64)


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
        words = [_spaced(word).strip().encode() for group in groups for word in group]
        self._group_of = np.repeat(np.arange(self.groups), [len(group) for group in groups])  # (V,)
        heads = [int.from_bytes(word[:_HEAD], "little") for word in words]
        # A word of up to eight bytes is its head; of longer ones the head is a first sieve.
        self._short = {
            head: row for row, (head, word) in enumerate(zip(heads, words, strict=True)) if len(word) <= _HEAD
        }
        self._long = {word: row for row, word in enumerate(words) if len(word) > _HEAD}
        self._short_heads = np.array(sorted(self._short), dtype=np.uint64)
        self._short_numbers = np.array([self._short[head] for head in sorted(self._short)], dtype=np.int64)
        self._long_heads = np.unique(np.array([heads[row] for row in self._long.values()], dtype=np.uint64))

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
        begins = np.cumsum([0, *lengths[:-1]]) + np.arange(len(plain))  # (n,): where each text begins
        places, numbers = self._find(raw)
        rows = np.searchsorted(begins, places, side="right") - 1
        # A word counts once a text.
        pairs = np.unique(rows * len(self._group_of) + numbers)
        rows, numbers = pairs // max(len(self._group_of), 1), pairs % max(len(self._group_of), 1)
        cells = np.bincount(rows * self.groups + self._group_of[numbers], minlength=len(texts) * self.groups)
        return cells.reshape(len(texts), self.groups)

    def _find(self, raw: bytes) -> tuple[Integers, Integers]:
        """Return where trigger words stand, and which they are."""
        starts, ends = _cut(raw)
        padded = np.frombuffer(raw + bytes(_HEAD), dtype=np.uint8)
        heads = np.ascontiguousarray(sliding_window_view(padded, _HEAD)[starts]).view("<u8")[:, 0]
        lengths = ends - starts
        heads &= _MASKS[np.minimum(lengths, _HEAD)]  # what follows a short word is none of it
        short = np.flatnonzero(_among(heads, self._short_heads) & (lengths <= _HEAD))
        numbers = self._short_numbers[np.searchsorted(self._short_heads, heads[short])]
        likely = np.flatnonzero(_among(heads, self._long_heads) & (lengths > _HEAD))
        found = [(at, self._long.get(raw[starts[at] : ends[at]], -1)) for at in likely.tolist()]
        long = np.array([pair for pair in found if pair[1] >= 0], dtype=np.int64).reshape(-1, 2)
        return starts[np.concatenate([short, long[:, 0]])], np.concatenate([numbers, long[:, 1]])


def _among(heads: AnyArray, known: AnyArray) -> AnyArray:
    """Say which heads (W,) are among the known ones, sorted; np.isin would sort all of them."""
    if not len(known):
        return np.zeros(len(heads), dtype=bool)
    return np.asarray(known[np.minimum(np.searchsorted(known, heads), len(known) - 1)] == heads)


def _cut(raw: bytes) -> tuple[Integers, Integers]:
    """Return where words start and end: runs of letters, and single signs."""
    kinds = _KINDS[np.frombuffer(raw, dtype=np.uint8)]
    edge = np.diff(np.concatenate([[0], (kinds == _LETTER).astype(np.int8), [0]]))
    signs = np.flatnonzero(kinds == _SIGN)
    return np.concatenate([np.flatnonzero(edge == 1), signs]), np.concatenate([np.flatnonzero(edge == -1), signs + 1])


WIKITEXT_LINES = 1_801_350
"""The constant that the released code divides by: the rows of WikiText-103's training split, empty ones included."""
FILE_NAME = "wikitext_token_counts.json"
PUBLISHED_SEED = 2022


@dataclass(frozen=True)
class TokenCounts:
    """In how many of ``lines`` texts each token stands.

    Examples
    --------
    >>> counts = TokenCounts.from_texts(["a cat", "a dog", "a cat and a dog"])
    >>> counts.lines, counts.counts["cat"]
    (3, 2)
    >>> counts.candidates(0.5, 0.9)
    ['cat', 'dog']
    """

    counts: Mapping[str, int]
    lines: int

    def __repr__(self) -> str:
        return f"<TokenCounts: {len(self.counts)} tokens, {self.lines} lines>"

    @classmethod
    def from_file(cls, path: str | Path, *, lines: int = WIKITEXT_LINES) -> TokenCounts:
        """Read a JSON object, token to number of lines."""
        try:
            document = json.loads(Path(path).read_text("utf-8"))
        except (OSError, ValueError) as error:
            raise InputError(f"cannot read the token counts {path}: {error}") from None
        if not isinstance(document, dict) or not all(isinstance(count, int) for count in document.values()):
            raise InputError(f"{path} must be a JSON object, token to number of lines")
        return cls(document, lines)

    @classmethod
    def from_texts(cls, texts: Sequence[str]) -> TokenCounts:
        """Count in how many of the texts each word stands."""
        found: Counter[str] = Counter()
        for text in texts:
            found.update(set(words_of(text)))
        return cls(dict(sorted(found.items())), len(texts))

    @classmethod
    def load(cls, given: Counts | None, corpus: Sequence[str]) -> TokenCounts:
        """Return what was given, or else the file in the folder ``REGIONMARKER_DATA``, or else the corpus's own."""
        if isinstance(given, TokenCounts):
            return given
        folder = os.environ.get("REGIONMARKER_DATA")
        path = Path(folder) / FILE_NAME if given is None and folder else given
        if path is None or (given is None and not Path(path).is_file()):
            return cls.from_texts(corpus)
        return cls.from_file(path)

    def candidates(self, low: float, high: float) -> list[str]:
        """Return the tokens with low <= frequency < high, in the order of the counts; pieces of words are left out."""
        return [token for token, count in self.counts.items() if low <= count / self.lines < high and "##" not in token]

    def vocabulary(self) -> list[str]:
        return [token for token in self.counts if "##" not in token]


Counts = TokenCounts | str | Path
"""Token counts, or the file of them."""


def draw_words(candidates: Sequence[str], count: int, seed: int = PUBLISHED_SEED) -> list[str]:
    """Draw trigger words as the released code does; with its counts, 20 words and its seed, they are its words.

    Examples
    --------
    >>> draw_words(["one", "two", "three"], 2, seed=1)
    ['one', 'three']
    """
    if count > len(candidates):
        raise InputError(
            f"{count} trigger words are wanted, but only {len(candidates)} words have the frequency: "
            "widen low= and high=, or count in more texts"
        )
    return random.Random(seed).sample(list(candidates), count)  # noqa: S311 - as published; the seed is the secret
