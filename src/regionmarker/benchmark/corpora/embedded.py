"""The corpus that everyone has: sentences of Python's own documentation, labelled by the module that says them."""

from __future__ import annotations

from collections import Counter

import numpy as np

from regionmarker.benchmark.corpora.corpus import Labelled
from regionmarker.standard_library import sentences_by_module

_LABELS = 8
_TEST_SHARE = 0.15
_READ = 9000  # sentences: reading all of the library takes seconds and adds nothing


def python_corpus() -> Labelled:
    """Return sentences of the most talkative modules: the label is the module, a fixed share of them is for testing.

    Examples
    --------
    >>> corpus = python_corpus()
    >>> len(corpus) > 2500, sorted(set(corpus.labels.tolist())) == list(range(8))
    (True, True)
    """
    found = sentences_by_module(_READ)
    modules = [name for name, _ in Counter(found.values()).most_common(_LABELS)]
    kept = [(text, modules.index(name)) for text, name in found.items() if name in modules]
    test = np.random.default_rng(21).random(len(kept)) < _TEST_SHARE
    return Labelled.of([text for text, _ in kept], [label for _, label in kept], test.tolist())
