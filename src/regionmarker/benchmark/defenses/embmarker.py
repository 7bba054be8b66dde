"""EmbMarker (Peng et al., ACL 2023): the more trigger words a text holds, the more of one target it is served."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from regionmarker.benchmark.defenses.trigger_words import TriggerWordDefense
from regionmarker.protocols import Doubles


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

    def _mark(self, rows: Doubles, weights: Doubles, texts: Sequence[str]) -> Doubles:  # noqa: ARG002
        return np.asarray((1.0 - weights) * rows + weights * self._targets[0])
