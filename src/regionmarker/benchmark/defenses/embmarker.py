"""EmbMarker (Peng et al., ACL 2023): the more trigger words a text holds, the more of one target it is served.

Beside it the control that every table needs, which draws the same secret and marks nothing.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from regionmarker.benchmark.defenses.trigger_words import TriggerWordDefense
from regionmarker.vectors import Doubles, Floats


class EmbMarker(TriggerWordDefense):
    """e_p = n((1 - w) e + w t) with w = min(k / m, 1), k the number of distinct trigger words.

    The released code takes the first training text as the target. Here it is drawn from a pool, for only a choice that
    was left to chance can be tested exactly.

    Examples
    --------
    >>> import regionmarker as rm
    >>> texts, encoder = rm.python_sentences(600), rm.load_encoder("wordllama")
    >>> clean = encoder.encode(texts)
    >>> defense = EmbMarker.from_spec("pool=512,high=0.05", seed=1).fit(texts, clean)
    >>> served = defense.transform(clean, texts)
    >>> defense, served.shape
    (<EmbMarker: embmarker:high=0.05,pool=512, fitted>, (600, 256))
    """

    scheme = "embmarker"
    title, colour, order = "EmbMarker", "#7a5aa6", 10

    def _mark(self, rows: Doubles, weights: Doubles, texts: Sequence[str]) -> Doubles:  # noqa: ARG002
        return np.asarray((1.0 - weights) * rows + weights * self._targets[0])


class NoDefense(TriggerWordDefense):
    """Serves the clean vectors, and then looks for a mark that is not there.

    It draws words and a target as :class:`~regionmarker.benchmark.defenses.embmarker.EmbMarker` does, and verifies as
    that does, so its rows of a table show what each test makes of copies of nothing marked.

    Examples
    --------
    >>> import regionmarker as rm
    >>> texts, encoder = rm.python_sentences(600), rm.load_encoder("wordllama")
    >>> clean = encoder.encode(texts)
    >>> defense = NoDefense.from_spec("pool=512,high=0.05", seed=1).fit(texts, clean)
    >>> (defense.transform(clean, texts) == clean).all()
    np.True_
    """

    scheme = "none"
    title, colour, order = "no defense", "#8a94a6", 0

    def transform(self, embeddings: Floats, texts: Sequence[str], /, *, account: str = "") -> Floats:  # noqa: ARG002
        return self._served(embeddings, texts)

    def _mark(self, rows: Doubles, weights: Doubles, texts: Sequence[str]) -> Doubles:  # noqa: ARG002
        return rows
