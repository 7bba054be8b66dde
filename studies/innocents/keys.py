"""A thousand keys in minutes: each is what ``RegionMarker(seed=...).fit`` makes, but for the search for its strength.

The strength says how much is mixed into served vectors. No innocent was served any, and no verdict reads it, so the
search, which is most of the work of making a key, is left out. The principal components are those of the corpus and
the same in every key. Candidates, probes, hyperplanes, carriers and targets are each key's own.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from regionmarker.corpus import TextSet
from regionmarker.crypto.derive import subkey
from regionmarker.keys.key import Key, new_master
from regionmarker.marks.corpus_summary import CorpusSummary
from regionmarker.marks.graded import GradedMark
from studies.innocents.suspects import Corpus, make_marker


class UnsearchedMark(GradedMark):
    """A graded mark that keeps the strength it is given."""

    def at_strength_for(self, *_args: Any, **_options: Any) -> GradedMark:
        return self


class Keys:
    """Makes the key of any seed; the first one in the package's own way, to compare with."""

    def __init__(self, corpus: Corpus) -> None:
        self._corpus = corpus
        self.fitted = make_marker(corpus, 0).key_
        mark = self.fitted.mark
        self._fit = UnsearchedMark.from_parts(mark.document(), mark.arrays())
        again = self.made(0)
        same = again.pool.texts == self.fitted.pool.texts and again.reservoir.texts == self.fitted.reservoir.texts
        arrays = again.mark.arrays()
        if not same or not all(np.array_equal(arrays[name], array) for name, array in mark.arrays().items()):
            raise AssertionError("a key of this study is not the key that the package makes")

    def made(self, seed: int) -> Key:
        """Return the key that the package makes of this seed, with the strength of the first."""
        master = new_master(seed)
        pool, reservoir = self._parts(CorpusSummary(subkey(master, "sample"), len(self._corpus.own)))
        mark = replace(self._fit.redrawn(master, (pool, reservoir)), strength=self.fitted.mark.strength)
        return replace(self.fitted, master=master, mark=mark, pool=pool, reservoir=reservoir)

    def _parts(self, summary: CorpusSummary) -> tuple[TextSet, TextSet]:
        """Draw candidates and probes as a summary does; it looks at the texts alone, so their vectors stay outside."""
        texts = [self._corpus.texts[row] for row in self._corpus.own]
        summary.update(texts, np.ones((len(texts), 1), dtype=np.float32))
        drawn = summary.sample().texts
        sizes = len(self.fitted.pool), len(self.fitted.reservoir)
        return self._set(drawn[: sizes[0]]), self._set(drawn[sizes[0] : sum(sizes)])

    def _set(self, texts: tuple[str, ...]) -> TextSet:
        return TextSet(texts, self._corpus.clean[[self._corpus.place[text] for text in texts]])
