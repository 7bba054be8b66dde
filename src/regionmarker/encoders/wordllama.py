"""The embedded default: WordLlama, 256 numbers per text, without torch and without a network.

Its table holds one float16 vector per token, and a text's vector is their mean. Two things follow.

A sum of float16 numbers is exact in float64, whatever the order: so the vector of a text does not depend on its
neighbours in the batch, nor on the machine.

A mean of n float16 numbers lies on a lattice of its own (multiples of 2^-24 / n): in float32 its last digits show that
lattice, a marked row lies off it, and so the digits would give away which rows are unmarked. Hence the answer is
normalised in float64 and rounded to the float16 grid, once: all that is served, marked or not, can then lie on one
grid, and digits that the weights never had are not served.
"""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from regionmarker.encoders.base import CheckedEncoder
from regionmarker.errors import InputError, MissingExtraError
from regionmarker.vectors import Doubles, Floats

_WIDTH = 256
_TOKENS = 65_536  # tokens of one text that are summed at a time: a book must not need gigabytes


class WordLlamaEncoder(CheckedEncoder):
    """WordLlama (``l2_supercat``, 256-d), whose weights come inside its wheel.

    Parameters
    ----------
    batch_size
        How many texts are tokenised at a time; no vector depends on it.

    Examples
    --------
    >>> encoder = WordLlamaEncoder()
    >>> rows = encoder.encode(["a cat sat on the mat", "a kitten lay on the rug", "the market fell"])
    >>> rows.shape, bool(rows[0] @ rows[1] > rows[0] @ rows[2])
    ((3, 256), True)
    """

    def __init__(self, *, batch_size: int = 512) -> None:
        if find_spec("wordllama") is None:
            raise MissingExtraError("wordllama is not installed: pip install wordllama")
        super().__init__("wordllama", batch_size=batch_size, width=_WIDTH, revision=version("wordllama"))

    @classmethod
    def from_spec(cls, rest: str, **options: Any) -> WordLlamaEncoder:
        if rest:
            raise InputError("the encoder wordllama takes nothing after its name: write wordllama")
        return cls(**options)

    @property
    def _model(self) -> Any:
        return _load()

    def _embed(self, texts: list[str], positions: Sequence[int]) -> Floats:
        tokens = self._model.tokenizer.encode_batch(texts, add_special_tokens=False)
        sums: Doubles = np.stack([self._sum(token.ids) for token in tokens])  # (n, 256), exact
        norms = np.linalg.norm(sums, axis=1, keepdims=True)
        if not norms.all():
            raise InputError(f"wordllama knows no token of text {positions[int(np.argmin(norms))]}: remove it")
        rounded: Floats = (sums / norms).astype(np.float16).astype(np.float32)
        return rounded

    def _sum(self, ids: list[int]) -> Doubles:
        """Sum the vectors of one text's tokens: their mean, but for a factor that normalising removes."""
        table = self._model.embedding
        total = np.zeros(table.shape[1], dtype=np.float64)
        for start in range(0, len(ids), _TOKENS):
            total += table[ids[start : start + _TOKENS]].sum(axis=0, dtype=np.float64)
        return total


@cache
def _load() -> Any:
    """Load the model once for all encoders of the process: nothing ever changes it."""
    with _root_logger_untouched():
        import wordllama
    model = wordllama.WordLlama.load(cache_dir=Path(wordllama.__file__).parent, disable_download=True)
    model.tokenizer.no_padding()
    return model


@contextlib.contextmanager
def _root_logger_untouched() -> Iterator[None]:
    """Import wordllama without its ``logging.basicConfig(level=INFO)``, which does nothing to a root with a handler."""
    root, handler = logging.getLogger(), logging.NullHandler()
    root.addHandler(handler)
    try:
        yield
    finally:
        root.removeHandler(handler)
