"""A stealer without torch: a bag of trainable token vectors, S(x) = n(b + sum of w_t over the tokens t of x).

What it is a bag of: hashed words and letter groups, or another model's own tokens. Token weights are tf-idf, rows are
scaled to unit length, and the vectors are the ridge solution against the targets:

    minimise  |b + X W - Y|^2 + penalty |W|^2        X (n, V) sparse, Y (n, D')

solved for all D' columns at once by conjugate gradients, which touch X only in two sparse products per step.
"""

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

from regionmarker.benchmark.protocols import Fidelity
from regionmarker.benchmark.stealers.base import check_clean, check_training_data, fidelity, split
from regionmarker.encoders.base import check_texts
from regionmarker.errors import InputError, MissingExtraError
from regionmarker.progress import Progress
from regionmarker.vectors import Floats, Integers, normalised

_BATCH = 8192  # texts that are answered at a time
_TOLERANCE = 1e-2  # of the residual: smaller buys no fidelity
_WORD = re.compile(r"\w+|[^\w\s]")


class Vocabulary(Protocol):
    """Texts in, lists of token numbers out."""

    @property
    def name(self) -> str:
        """What the copy's name shall say."""

    @property
    def size(self) -> int:
        """All token numbers are below this."""

    def tokens(self, texts: Sequence[str], /) -> list[list[int]]:
        """Return the numbers of each text's tokens, repeated as often as they occur."""


class HashedGrams:
    """Words, and groups of letters inside them, hashed: for a stealer that knows nothing of the provider's tokenizer.

    Letter groups say something about words that the stealer never saw.

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
        return int(self._tokenizer.get_vocab_size())

    def tokens(self, texts: Sequence[str], /) -> list[list[int]]:
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


class TokenBagModel:
    """A copy that is a bag of token vectors."""

    def __init__(
        self, name: str, vocabulary: Vocabulary, columns: Integers, weights: Floats, offset: Floats, vectors: Floats
    ) -> None:
        self.name = name
        self.fidelity: Fidelity
        self._vocabulary = vocabulary
        self._columns = columns  # (V,) the tokens that were seen in training
        self._weights = weights  # (V,)
        self._offset = offset  # (D',)
        self._vectors = vectors  # (V, D')

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    def encode(self, texts: Sequence[str], /) -> Floats:
        texts = check_texts(texts)
        answers = np.empty((len(texts), len(self._offset)), dtype=np.float32)
        for start in range(0, len(texts), _BATCH):
            bags = counts(self._vocabulary, texts[start : start + _BATCH])[:, self._columns]
            answers[start : start + _BATCH] = self._offset + weighted(bags, self._weights) @ self._vectors
        return normalised(answers)


class TokenBag:
    """A stealer that trains a bag of token vectors: seconds on one core, no torch, no network.

    Parameters
    ----------
    vocabulary
        What the tokens are; ``"hashed"`` for words and groups of three letters, ``"wordllama"`` for WordLlama's own
        tokens, which make a closer copy of a provider that is WordLlama.
    penalty
        Of the ridge; larger for few texts or noisy targets.
    iterations
        Of the conjugate gradients at the most.
    held_out
        The share of the texts that is kept for measuring.
    seed
        Decides which texts are held out.
    progress
        Called after each iteration with the number done and the number in all.

    Examples
    --------
    >>> from regionmarker import load_encoder
    >>> from regionmarker.sample_corpus import python_sentences
    >>> texts = python_sentences(1000)
    >>> served = load_encoder("wordllama").encode(texts)
    >>> copy = TokenBag().steal(texts, served)
    >>> copy.encode(["a new text"]).shape, copy.fidelity.cosine > 0.7
    ((1, 256), True)
    """

    def __init__(
        self,
        vocabulary: str | Vocabulary = "hashed",
        *,
        penalty: float = 0.1,
        iterations: int = 15,
        held_out: float = 0.1,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> None:
        if not penalty > 0 or iterations < 1:
            raise InputError(f"penalty must be positive and iterations at least 1, not {penalty} and {iterations}")
        self.vocabulary = _vocabulary(vocabulary)
        self.penalty, self.iterations, self.held_out = penalty, iterations, held_out
        self.seed, self.progress = seed, progress

    @classmethod
    def from_spec(cls, rest: str, **options: Any) -> TokenBag:
        return cls(rest, **options) if rest else cls(**options)

    @property
    def name(self) -> str:
        return f"token bag ({self.vocabulary.name})"

    def steal(self, texts: Sequence[str], targets: Floats, /, *, clean: Floats | None = None) -> TokenBagModel:
        texts, rows = check_training_data(texts, targets)
        parts = split(len(rows), held_out=self.held_out, seed=self.seed, texts=texts)
        held = np.concatenate([parts.steer, parts.measure])  # nothing is chosen here, so both may measure
        truth = check_clean(clean, len(rows), held)
        model = self._fit([texts[row] for row in parts.train], rows[parts.train])
        model.fidelity = fidelity(model.encode([texts[row] for row in held]), rows[held], clean=truth)
        return model

    def _fit(self, texts: list[str], targets: Floats) -> TokenBagModel:
        bags = counts(self.vocabulary, texts)  # (n, size)
        occurrences = np.bincount(bags.indices, minlength=bags.shape[1])
        columns: Integers = np.flatnonzero(occurrences)  # (V,)
        idf = np.log((1 + len(texts)) / (1 + occurrences[columns])) + 1
        weights: Floats = idf.astype(np.float32)
        offset: Floats = targets.mean(axis=0)
        design = weighted(bags[:, columns], weights)
        vectors = ridge(design, targets - offset, self.penalty, self.iterations, self.progress)
        return TokenBagModel(self.name, self.vocabulary, columns, weights, offset, vectors)


def _vocabulary(given: str | Vocabulary) -> Vocabulary:
    if not isinstance(given, str):
        return given
    if given == "hashed":
        return HashedGrams()
    if given == "wordllama":
        return WordLlamaTokens()
    raise InputError(f"unknown vocabulary {given!r}: give hashed, wordllama or an object with tokens(texts)")


def weighted(bags: Any, weights: Floats) -> Any:
    """Weigh the columns of a sparse matrix of counts (n, V) and scale its rows to unit length; empty rows stay empty.

    Examples
    --------
    >>> weighted(sparse.csr_array(np.array([[2.0, 0.0], [0.0, 0.0]])), np.ones(2)).toarray().tolist()
    [[1.0, 0.0], [0.0, 0.0]]
    """
    bags = (bags @ sparse.diags_array(weights)).tocsr()
    lengths = np.sqrt(bags.multiply(bags).sum(axis=1))
    inverse = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
    return (sparse.diags_array(inverse) @ bags).tocsr()


def ridge(design: Any, targets: Floats, penalty: float, iterations: int, progress: Progress | None = None) -> Floats:
    """Solve (X'X + penalty) W = X'Y by conjugate gradients, every column its own; (V, D').

    The preconditioner is the diagonal: tokens are rare or common by three orders of magnitude.

    Examples
    --------
    >>> ridge(sparse.csr_array(np.eye(2, dtype=np.float32)), np.eye(2, dtype=np.float32), 1.0, 9).tolist()
    [[0.5, 0.0], [0.0, 0.5]]
    """
    across = design.T.tocsr()
    scale = (1.0 / (design.multiply(design).sum(axis=0) + penalty)).astype(np.float32)[:, None]  # (V, 1)
    residual: Floats = across @ targets  # (V, D')
    solution = np.zeros_like(residual)
    direction = scale * residual
    energy = first = _dots(residual, direction)  # (D',)
    for step in range(iterations):
        image = across @ (design @ direction) + np.float32(penalty) * direction
        rate = energy / np.maximum(_dots(direction, image), 1e-30)
        solution += rate * direction
        residual -= rate * image
        image = np.multiply(scale, residual, out=image)
        energy, before = _dots(residual, image), energy
        direction *= energy / np.maximum(before, 1e-30)
        direction += image
        if progress is not None:
            progress(step + 1, iterations)
        if (energy <= _TOLERANCE**2 * first).all():
            break
    return solution


def _dots(left: Floats, right: Floats) -> Floats:
    """Multiply column by column; (V, D') and (V, D') to (D',)."""
    return np.asarray(np.einsum("ij,ij->j", left, right))
