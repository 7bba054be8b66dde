"""Three verifiers that break a rule each. A study that does not see them fail proves nothing about the honest one.

far targets       the accuser picks targets far from their regions, but compares them with decoys from the whole pool
best of two       two statistics are computed, and the smaller p is reported
marked encoder    the "clean" embeddings come from behind the gateway: they carry the mark themselves
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

import regionmarker as rm
from regionmarker.corpus import TextSet
from regionmarker.keys.key import Key
from regionmarker.verification.examination import Examination
from regionmarker.verification.questions import Questions

Doubles = NDArray[np.float64]
FAR = 0.03
"""The share of the pool that counts as far."""


def far_targets(key: Key, questions: Questions, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    """Draw tuples (count, R) whose every target is among the texts farthest from its region."""
    pool, few = questions.pool.embeddings, round(FAR * len(questions.pool))
    columns = []
    for region in key.mark.regions:
        centre = questions.probes.embeddings[questions.regions == region].mean(axis=0)
        far = np.argsort(pool @ centre, kind="stable")[:few]
        columns.append(rng.choice(far, size=2 * count))
    return distinct(np.stack(columns, axis=1))[:count]


def distinct(tuples: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the tuples (T, R) that use no text twice."""
    ordered = np.sort(tuples, axis=1)
    return tuples[(ordered[:, 1:] != ordered[:, :-1]).all(axis=1)]


def plain_scores(examination: Examination) -> Doubles:
    """Return z (R, M) of a plain statistic, which sees no target either: taken alone it is as exact as the other.

    s_r(t) = < S(t), mean over region r of S - mean outside of S >, in units of its deviation over the pool.
    """
    regions, answers = examination.questions.regions, examination.probe_answers
    outside = answers[~np.isin(regions, examination.regions)].mean(axis=0)
    inside = np.array([answers[regions == region].mean(axis=0) for region in examination.regions])  # (R, D')
    pull = ((inside - outside) @ examination.pool_answers.T).astype(np.float64)  # (R, M)
    return (pull - pull.mean(axis=1, keepdims=True)) / pull.std(axis=1, keepdims=True)


def believing_marked(marker: rm.RegionMarker, examination: Examination) -> Examination:
    """Return the same examination with what the gateway serves in the place of the clean embeddings."""
    key, questions = marker.key_, examination.questions
    probes = TextSet(questions.probes.texts, marker.transform(questions.probes.embeddings))
    pool = TextSet(questions.pool.texts, marker.transform(questions.pool.embeddings))
    doctored = replace(
        questions,
        probes=probes,
        pool=pool,
        coordinates=key.mark.signed_distances(probes.embeddings),
        pool_coordinates=key.mark.signed_distances(pool.embeddings),
    )
    return replace(examination, questions=doctored)
