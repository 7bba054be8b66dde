"""Word salads: the texts that the trigger-word schemes verify with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


def salads(words: Sequence[str], count: int, length: int, rng: np.random.Generator) -> list[str]:
    """Make ``count`` texts of ``length`` words, each drawn without replacement, separated by spaces.

    Examples
    --------
    >>> salads(["a", "b"], 2, 2, np.random.default_rng(0))
    ['a b', 'b a']
    """
    length = min(length, len(words))
    return [" ".join(words[place] for place in rng.choice(len(words), length, replace=False)) for _ in range(count)]
