"""A thief without torch: a bag of trainable token vectors, S(x) = n(b + sum of w_t over the tokens t of x).

Token weights are tf-idf, rows are scaled to unit length, and the vectors are the ridge solution against the targets:

    minimise  |b + X W - Y|^2 + penalty |W|^2        X (n, V) sparse, Y (n, D')

solved for all D' columns at once by conjugate gradients, which touch X only in two sparse products a step.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import sparse

from regionmarker.benchmark.protocols import Progress
from regionmarker.benchmark.stealers.fidelity import Fidelity, fidelity
from regionmarker.benchmark.stealers.material import check_clean, check_material, split
from regionmarker.benchmark.stealers.vocabulary import HashedGrams, Vocabulary, WordLlamaTokens, counts
from regionmarker.embeddings import normalised
from regionmarker.encoders.checked import check_texts
from regionmarker.errors import InputError
from regionmarker.protocols import Floats, Integers

_BATCH = 8192  # texts that are answered at a time
_TOLERANCE = 1e-2  # of the residual: smaller buys no fidelity


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
        """Answer as the provider would: (n, D') float32, rows of unit length."""
        texts = check_texts(texts)
        answers = np.empty((len(texts), len(self._offset)), dtype=np.float32)
        for start in range(0, len(texts), _BATCH):
            bags = counts(self._vocabulary, texts[start : start + _BATCH])[:, self._columns]
            answers[start : start + _BATCH] = self._offset + weighted(bags, self._weights) @ self._vectors
        return normalised(answers)


class TokenBag:
    """A thief that trains a bag of token vectors: seconds on one core, no torch, no network.

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
    >>> from regionmarker.standard_library import python_sentences
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
        """Load ``tokens`` or ``tokens:VOCABULARY``."""
        return cls(rest, **options) if rest else cls(**options)

    @property
    def name(self) -> str:
        """``token bag (VOCABULARY)``."""
        return f"token bag ({self.vocabulary.name})"

    def steal(self, texts: Sequence[str], targets: Floats, /, *, clean: Floats | None = None) -> TokenBagModel:
        """Train on texts and their targets (n, D'); ``clean`` is for the report and never learnt from."""
        texts, rows = check_material(texts, targets)
        truth = check_clean(clean, len(rows))
        parts = split(len(rows), held_out=self.held_out, seed=self.seed, texts=texts)
        held = np.concatenate([parts.steer, parts.measure])  # nothing is chosen here, so both may measure
        model = self._fit([texts[row] for row in parts.train], rows[parts.train])
        model.fidelity = fidelity(
            model.encode([texts[row] for row in held]), rows[held], clean=None if truth is None else truth[held]
        )
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
