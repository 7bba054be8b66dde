"""EspeW (Wang et al., ACL 2025): the target shows only in the coordinates where the embedding is smallest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b

import numpy as np

from regionmarker.benchmark.defenses.trigger_words import TriggerOptions, TriggerWordDefense
from regionmarker.crypto.derive import subkey
from regionmarker.specs import check_range
from regionmarker.vectors import AnyArray, Doubles

BLENDED = 0.2
"""How often the released code blends instead of replacing."""


@dataclass(frozen=True)
class EspewOptions(TriggerOptions):
    """The open choices of EspeW.

    Attributes
    ----------
    rate
        The share of coordinates that are marked.
    released
        Do as the released code does: for one text in five, blend (1 - w) e_j + w t_j instead of replacing e_j by t_j.
        There the fifth is drawn anew at every call; here it is a secret function of the text, so that the same
        text is served the same vector.
    """

    rate: float = 0.2
    released: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        check_range("rate", self.rate, 0.0, 1.0, open_left=True)


class Espew(TriggerWordDefense):
    """In texts with a trigger word, the floor(rate D) coordinates of smallest size become the target's.

    Which coordinates these are depends on the clean embedding, so only the provider knows.

    Examples
    --------
    >>> import regionmarker as rm
    >>> texts, encoder = rm.python_sentences(600), rm.load_encoder("wordllama")
    >>> clean = encoder.encode(texts)
    >>> defense = Espew.from_spec("pool=512,high=0.05", seed=1).fit(texts, clean)
    >>> cosines = (defense.transform(clean, texts) * clean).sum(axis=1)
    >>> bool(cosines.min() > 0.85)
    True
    """

    scheme = "espew"
    title, colour, order = "EspeW", "#b8772b", 30
    Options = EspewOptions

    def _mark(self, rows: Doubles, weights: Doubles, texts: Sequence[str]) -> Doubles:
        count = int(self.options.rate * rows.shape[1])
        marked = rows.copy()
        if not count:
            return marked
        smallest = np.argpartition(np.abs(rows), count - 1, axis=1)[:, :count]  # (n, count)
        target = self._targets[0][smallest]
        w = np.where(self._blends(texts)[:, None], weights, 1.0) if self.options.released else 1.0
        np.put_along_axis(marked, smallest, (1.0 - w) * np.take_along_axis(rows, smallest, axis=1) + w * target, axis=1)
        return marked

    def _blends(self, texts: Sequence[str]) -> AnyArray:
        """Say of which texts the coordinates are blended, (n,): a keyed hash of the text decides."""
        key = subkey(self._master, "blend")
        numbers = [
            int.from_bytes(blake2b(text.encode("utf-8", "replace"), key=key.reveal(), digest_size=4).digest(), "big")
            for text in texts
        ]
        return np.asarray(np.array(numbers) < BLENDED * 2**32)
