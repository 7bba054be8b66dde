"""What every reducer promises: it reduces row by row, and survives a key file."""

from __future__ import annotations

import numpy as np
import pytest

from regionmarker.crypto.secret import Secret
from regionmarker.marks.corpus_summary import CorpusSummary
from regionmarker.marks.reduction import REDUCERS, from_arrays, load_reducer


@pytest.fixture(scope="module")
def survey(sentences, embeddings):
    made = CorpusSummary(Secret(b"k" * 32), 800)
    made.update(sentences[:3000], embeddings[:3000])
    return made


@pytest.fixture(scope="module", params=list(REDUCERS))
def reduction(request, survey):
    return load_reducer(request.param).fit(survey, 4, seed=1)


def test_every_reducer(reduction, embeddings):
    rows = embeddings[:3000:10]
    whole = reduction.reduce(rows)
    assert whole.shape == (300, reduction.width)
    assert np.isfinite(whole).all()
    assert reduction.reduce(rows[:0]).shape == (0, reduction.width)
    parts = np.concatenate([reduction.reduce(rows[start : start + 37]) for start in range(0, 300, 37)])
    assert np.allclose(parts, whole, rtol=0, atol=1e-12)
    again = from_arrays(reduction.kind, reduction.arrays())
    assert np.array_equal(again.reduce(rows), whole)
    if reduction.kind != "none":
        assert np.abs(whole.mean(axis=0)).max() < 0.35 * whole.std(axis=0).max()
