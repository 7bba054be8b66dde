"""What a bag of tokens is a bag of: hashed words and letter groups, or another model's own tokens."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Protocol
from zlib import crc32

import numpy as np
from scipy import sparse

from regionmarker.errors import InputError, MissingExtraError

_WORD = re.compile(r"\w+|[^\w\s]")


class Vocabulary(Protocol):
    """Texts in, lists of token numbers out."""

    @property
    def name(self) -> str:
        """What the copy's name shall say."""
        ...

    @property
    def size(self) -> int:
        """All token numbers are below this."""
        ...

    def tokens(self, texts: Sequence[str], /) -> list[list[int]]:
        """Return the numbers of each text's tokens, repeated as often as they occur."""
        ...


class HashedGrams:
    """Words, and groups of letters inside them, hashed: a thief who knows nothing of the provider's tokenizer.

    Letter groups say something about words that the thief never saw.

    Parameters
    ----------
    letters
        How many letters a group has; 0 for words alone.
    size
        Into how many numbers all of them are hashed.

    Examples
    --------
    >>> [len(numbers) for numbers in HashedGrams().tokens(["a cat", "a cat!"])]
    [5, 6]
    """

    def __init__(self, letters: int = 3, *, size: int = 1 << 18) -> None:
        if letters < 0 or size < 1:
            raise InputError(f"hashed grams need letters >= 0 and size >= 1, not {letters} and {size}")
        self.letters, self.size = letters, size
        self.name = f"{letters}-grams" if letters else "words"

    def tokens(self, texts: Sequence[str], /) -> list[list[int]]:
        """Return the numbers of each text's words and letter groups."""
        known: dict[str, list[int]] = {}  # most words come again
        rows = []
        for text in texts:
            row: list[int] = []
            for word in _WORD.findall(text.lower()):
                numbers = known.get(word)
                if numbers is None:
                    numbers = known[word] = [
                        crc32(gram.encode("utf-8", "replace")) % self.size for gram in self._grams(word)
                    ]
                row.extend(numbers)
            rows.append(row)
        return rows

    def _grams(self, word: str) -> list[str]:
        grams = [f"word {word}"]  # the space keeps a word apart from a group of the same letters
        if self.letters and len(word) > 1:
            fenced = f"<{word}>"
            grams += [fenced[at : at + self.letters] for at in range(max(1, len(fenced) - self.letters + 1))]
        return grams


class WordLlamaTokens:
    """WordLlama's own tokens: the strongest bag against a provider that is WordLlama, for it is one itself.

    Examples
    --------
    >>> WordLlamaTokens().size
    32000
    """

    name = "wordllama-tokens"

    @cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import Tokenizer  # a dependency of wordllama

        package = find_spec("wordllama")
        if package is None or package.origin is None:
            raise MissingExtraError("wordllama is not installed: pip install wordllama")
        path = Path(package.origin).parent / "tokenizers" / "l2_supercat_tokenizer_config.json"
        tokenizer = Tokenizer.from_file(str(path))
        tokenizer.no_padding()
        return tokenizer

    @property
    def size(self) -> int:
        """How many tokens it knows."""
        return int(self._tokenizer.get_vocab_size())

    def tokens(self, texts: Sequence[str], /) -> list[list[int]]:
        """Return the numbers of each text's tokens."""
        return [row.ids for row in self._tokenizer.encode_batch(list(texts), add_special_tokens=False)]


def counts(vocabulary: Vocabulary, texts: Sequence[str]) -> Any:
    """Count the tokens of each text: a sparse matrix (n, size) of float32.

    Examples
    --------
    >>> counts(HashedGrams(0), ["to be or not to be"]).sum()
    np.float32(6.0)
    """
    rows = vocabulary.tokens(texts)
    starts = np.cumsum([0, *(len(row) for row in rows)])
    columns = np.fromiter((number for row in rows for number in row), dtype=np.int64, count=int(starts[-1]))
    ones = np.ones(len(columns), dtype=np.float32)
    matrix = sparse.csr_array((ones, columns, starts), shape=(len(rows), vocabulary.size))
    matrix.sum_duplicates()
    return matrix
