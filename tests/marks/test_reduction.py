"""Reducers: linear ones fit in one pass, and agree with what other libraries compute."""

from __future__ import annotations

import numpy as np
import pytest

from regionmarker.crypto.secret import Secret
from regionmarker.errors import InputError
from regionmarker.marks.corpus_summary import CorpusSummary, Moments
from regionmarker.marks.reduction import LinearReduction, load_reducer


@pytest.fixture(scope="module")
def survey(sentences, embeddings):
    made = CorpusSummary(Secret(b"k" * 32), 800)
    made.update(sentences[:3000], embeddings[:3000])
    return made


def test_pca_agrees_with_scikit_learn(survey, embeddings):
    from sklearn.decomposition import PCA

    ours = load_reducer("pca").fit(survey, 8, seed=0)
    theirs = PCA(8, svd_solver="full").fit(embeddings[:3000].astype(np.float64))
    overlap = np.abs(ours.components @ theirs.components_.T)
    assert np.allclose(overlap, np.eye(8), atol=1e-5)
    assert np.allclose(ours.mean, theirs.mean_, atol=1e-7)


def test_svd_agrees_with_scipy(survey, embeddings):
    from scipy.linalg import svd

    ours = load_reducer("svd").fit(survey, 4, seed=0)
    rows = embeddings[:3000].astype(np.float64)
    theirs = svd(rows, full_matrices=False)[2][:4]
    assert np.allclose(np.abs(ours.components @ theirs.T), np.eye(4), atol=1e-5)


def test_moments_do_not_depend_on_blocks(embeddings):
    whole, parts = (Moments(embeddings.shape[1]) for _ in range(2))
    whole.update(embeddings)
    for block in np.array_split(embeddings, 17):
        parts.update(block)
    assert parts.count == whole.count
    assert np.allclose(parts.covariance(), whole.covariance(), rtol=0, atol=1e-13)
    assert np.allclose(whole.covariance(), np.cov(embeddings.T.astype(np.float64), bias=True), atol=1e-12)


def test_folding_gives_the_same_signs(survey, embeddings):
    linear = load_reducer("pca").fit(survey, 6, seed=0)
    assert isinstance(linear, LinearReduction)
    normals, _ = np.linalg.qr(np.random.default_rng(0).standard_normal((6, 4)))
    projection, thresholds = linear.fold(normals.T)
    direct = linear.reduce(embeddings) @ normals
    assert np.allclose(embeddings @ projection.T - thresholds, direct, atol=1e-9)


def test_an_unknown_reducer_is_named():
    with pytest.raises(InputError, match="reducer 'lda' is not known: choose one of pca, svd"):
        load_reducer("lda")
