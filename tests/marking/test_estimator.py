"""scikit-learn's contract, without scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest

from regionmarker import RegionMarker
from regionmarker.errors import InputError

SMALL = {"seed": 3, "pool": 64, "reservoir": 512}


def test_scikit_learn_can_clone_and_pipe_it(sentences, embeddings):
    from sklearn.base import clone
    from sklearn.pipeline import Pipeline
    from sklearn.utils.validation import check_is_fitted

    original = RegionMarker(ratio=0.1, **SMALL)
    copy = clone(original)
    assert copy.get_params() == original.get_params()
    pipeline = Pipeline([("mark", copy)]).fit(sentences, mark__embeddings=embeddings)
    check_is_fitted(pipeline)
    assert np.array_equal(pipeline.transform(embeddings), copy.transform(embeddings))
    assert np.array_equal(original.fit_transform(sentences, embeddings=embeddings), copy.transform(embeddings))
    with pytest.raises(InputError, match="'rate' is not a parameter"):
        original.set_params(rate=0.5)
