"""Verifiers that break a rule each. A study that does not see them fail proves nothing about the honest one.

best side          the side of the test is chosen after a look at U
best of two        two statistics are computed, singles alone and pairs alone, and the smaller p is reported
stop when small    p is computed at 1,000, 2,000 and 3,000 texts and at the end, and the smallest is reported
pruned lists       after the draw, a tenth of every list is thrown out: of the candidates that beat the target
favoured targets   carriers whose targets point to U's side get half as much weight again
marked as clean    the "clean" embeddings come from behind the gateway: they carry the mark themselves

A verifier gets the honest test of a suspect's scores and tuples of targets (T, J), and returns the p-values (T,) that
it would report.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from regionmarker.corpus import TextSet
from regionmarker.keys.key import Key
from regionmarker.verification.graded_examination import GradedExamination
from regionmarker.verification.list_test import ListTest, distribution, p_from_lists

Doubles = NDArray[np.float64]
Integers = NDArray[np.int64]
PRUNED = 0.1
"""The share of a list that is thrown out, at the most: the largest scores, of either sign."""
FAVOUR = 1.5
BUDGETS = (1000, 2000, 3000)


def picked(test: ListTest, tuples: Integers) -> Integers:
    """Return the score of every target in whole steps, (T, J)."""
    lists = np.arange(test.carriers)
    return np.asarray(test.steps[lists, tuples - test.list_size * lists])


def best_side(test: ListTest, tuples: Integers) -> Doubles:
    lowest, chances = distribution(test.steps)
    places = picked(test, tuples).sum(axis=1) - lowest
    above, below = np.cumsum(chances[::-1])[::-1][places], np.cumsum(chances)[places]
    return np.minimum(np.minimum(above, below), 1.0)


def best_of_two(test: ListTest, tuples: Integers) -> Doubles:
    scores, pairs = picked(test, tuples), test.weights == test.weights[-1]
    found = [p_from_lists(test.steps[kind], scores[:, kind].sum(axis=1)) for kind in (pairs, ~pairs)]
    return np.minimum(*found)


def pruned_lists(test: ListTest, tuples: Integers) -> Doubles:
    return np.array([_pruned(test.steps, scores) for scores in picked(test, tuples)])


def _pruned(steps: Integers, scores: Integers) -> float:
    few, chances, lowest = round(PRUNED * steps.shape[1]), np.ones(1), 0
    for row, score in zip(steps, scores, strict=True):
        better = int((np.abs(row) > abs(score)).sum())
        left = np.delete(row, np.argsort(-np.abs(row), kind="stable")[: min(few, better)])
        chances = np.convolve(chances, np.bincount(left - left.min()) / len(left))
        lowest += int(left.min())
    sizes = np.abs(np.arange(len(chances)) + lowest)
    return float(chances[sizes >= abs(int(scores.sum()))].sum())


def favoured_targets(test: ListTest, tuples: Integers) -> Doubles:
    found = []
    for scores in picked(test, tuples):
        favour = np.where(scores * scores.sum() > 0, FAVOUR, 1.0)
        steps = np.rint(test.steps * favour[:, None]).astype(np.int64)
        found.append(p_from_lists(steps, np.array([np.rint(scores * favour).sum()]))[0])
    return np.array(found)


VERIFIERS: dict[str, Callable[[ListTest, Integers], Doubles]] = {
    "best side": best_side,
    "best of two": best_of_two,
    "pruned lists": pruned_lists,
    "favoured targets": favoured_targets,
}
"""Those that need no more than the honest test."""


def stop_when_small(tests: Sequence[ListTest], tuples: Integers) -> Doubles:
    """Return the smallest p over all tests, each of which saw more answers than the one before."""
    return np.asarray(np.min([test.p_values(tuples) for test in tests], axis=0))


def marked_as_clean(key: Key, examination: GradedExamination) -> GradedExamination:
    """Return the same examination with what the gateway serves in the place of the clean embeddings."""
    pool, targets = key.pool.embeddings, [*key.provider_targets(), *key.tenant_targets("")]
    order = np.concatenate([key.mark.settings.places("provider"), key.mark.settings.places("tenants")])
    goals = np.empty((len(order), pool.shape[1]))
    goals[order] = pool[targets]
    probes, mark = examination.questions.probes, examination.mark
    served = TextSet(probes.texts, mark.mark_rows(probes.embeddings, goals).astype(np.float32))
    doctored = replace(examination.questions, probes=served)
    return replace(examination, questions=doctored, pool=mark.mark_rows(pool, goals).astype(np.float32))
