"""Who has which texts: the thief buys some, the key is made from others, and no text is in both."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from regionmarker.benchmark.corpora import Corpus
from regionmarker.errors import InputError
from regionmarker.protocols import Integers

_LEAST = 100  # texts that a key needs at the very least; what a defense needs beyond that it says itself
CLASSIFIED = 3000
"""Texts that the utility's classifier is trained on at the most: more do not change its accuracy by a point."""


@dataclass(frozen=True, eq=False)
class Scene:
    """The division of a corpus for one seed.

    Attributes
    ----------
    bought
        Places of the thief's texts, none of them for testing; those with stored paraphrases come first, so that an
        attack by paraphrasing has them.
    own
        Places of all others: the provider makes the key from them.
    train, test
        Places of the texts that the utility's classifier is trained and tested on.
    """

    bought: Integers
    own: Integers
    train: Integers
    test: Integers

    @classmethod
    def of(cls, corpus: Corpus, queries: int, seed: int) -> Scene:
        """Divide a corpus.

        Examples
        --------
        >>> from regionmarker.benchmark.corpora import load_corpus
        >>> scene = Scene.of(load_corpus("python", "wordllama", limit=500), queries=200, seed=0)
        >>> len(scene.bought), len(scene.own), len(set(scene.bought) & set(scene.own))
        (200, 300, 0)
        """
        for_sale = np.flatnonzero(~corpus.data.test)
        if queries > len(for_sale) or len(corpus.texts) - queries < _LEAST:
            raise InputError(
                f"{corpus.name} has {len(for_sale)} texts for sale and {len(corpus.texts)} in all, too few for "
                f"{queries} queries and a key: lower queries"
            )
        rng = np.random.default_rng([seed, 7])
        order = rng.permutation(for_sale)
        rephrased = np.array([corpus.texts[place] in corpus.paraphrases for place in order], dtype=bool)
        bought = np.sort(np.concatenate([order[rephrased], order[~rephrased]])[:queries])
        own = np.setdiff1d(np.arange(len(corpus.texts)), bought)
        test = np.flatnonzero(corpus.data.test)
        return cls(bought, own, np.sort(rng.permutation(for_sale)[:CLASSIFIED]), test)
