"""Trigger words: words of middling frequency, drawn at random.

The published schemes count in how many lines of WikiText-103 a token of bert-base-uncased stands, and draw from the
tokens that stand in 0.5 % to 1 % of them. The counts are a file; without it, words are counted in the provider's own
corpus.
"""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from regionmarker.benchmark.defenses.matching import words_of
from regionmarker.errors import InputError

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
    def load(cls, given: TokenCounts | str | Path | None, corpus: Sequence[str]) -> TokenCounts:
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
        """Return all tokens that are whole words."""
        return [token for token in self.counts if "##" not in token]


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
