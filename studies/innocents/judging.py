"""Everything that is asked of one key: each suspect's verdict, redrawn targets, the sabotaged verifiers, tracing."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import regionmarker as rm
from regionmarker.verification.decoy_test import DecoyTest, holm
from regionmarker.verification.examination import Examination
from regionmarker.verification.paper_statistics import paper_statistics
from regionmarker.verification.questions import DEFAULT_BUDGET, plan_questions
from studies.innocents.sabotage import believing_marked, distinct, far_targets, plain_scores
from studies.innocents.suspects import THIEF, Array, Corpus, make_marker

LEVEL = 1e-3
REDRAWS = 10_000
TENANTS = tuple(f"tenant {number}" for number in range(200))
MISLED, MISLED_KEYS = "unmarked provider", 300
"""Whom the verifier with the marked encoder is tried on, under how many keys: it costs as much as two suspects."""


def judge_key(corpus: Corpus, answers: dict[str, Array], seed: int) -> dict[str, Any]:
    """Return what the key of this seed makes of every suspect."""
    marker = make_marker(corpus, seed)
    key = marker.key_
    questions = plan_questions(key, DEFAULT_BUDGET, seed=seed)
    probes = [corpus.place[text] for text in questions.probes.texts]
    pool = [corpus.place[text] for text in questions.pool.texts]
    rng = np.random.default_rng([seed, 11])
    size = (REDRAWS + 200, len(key.mark.regions))  # 0.3 % of the tuples use a text twice
    drawn = distinct(rng.integers(len(pool), size=size))[:REDRAWS]
    far = far_targets(key, questions, REDRAWS, rng)
    row: dict[str, Any] = {"suspects": {}, "misled": None}
    innocents = [name for name in answers if name != THIEF]
    for name, vectors in answers.items():
        examination = Examination.simulated(key, questions, vectors[probes], vectors[pool])
        row["suspects"][name] = _judge(marker, examination, drawn, far)
        if name == MISLED and seed < MISLED_KEYS:
            test = DecoyTest(believing_marked(marker, examination).scores())
            row["misled"] = test.p_value(key.provider_targets())
        if name == innocents[seed % len(innocents)]:
            row["trace"] = {"suspect": name, **_trace(marker, examination)}
    return row


def _judge(
    marker: rm.RegionMarker, examination: Examination, drawn: NDArray[np.int64], far: NDArray[np.int64]
) -> dict[str, Any]:
    key = marker.key_
    test, second = DecoyTest(examination.scores()), DecoyTest(plain_scores(examination))
    targets = key.provider_targets()  # looked up after the scores are there
    goals = examination.pool_answers[list(targets)]
    paper = paper_statistics([examination.inside(region) for region in key.mark.regions], examination.outside(), goals)
    p_value, redrawn = test.p_value(targets), test.p_values(drawn)
    return {
        "p": p_value,
        "attained": test.attained(LEVEL),
        "redrawn": _count(redrawn),
        "far_p": float(test.p_values(far[:1])[0]),
        "far_redrawn": _count(test.p_values(far)),
        "two_p": min(p_value, second.p_value(targets)),
        "two_redrawn": _count(np.minimum(redrawn, second.p_values(drawn))),
        "paper_p": paper.p_value,
        "paper_copy": paper.copy,
    }


def _trace(marker: rm.RegionMarker, examination: Examination) -> dict[str, Any]:
    """Return the smallest corrected p over tenants none of whom leaked, and how many are accused."""
    test = DecoyTest(examination.tenant_scores())
    p_values = test.p_values(np.array([marker.key_.tenant_targets(name) for name in TENANTS]))
    corrected = holm(p_values)
    return {"holm": float(corrected.min()), "accused": _count(corrected)}


def _count(p_values: NDArray[np.float64]) -> int:
    return int((p_values <= LEVEL).sum())
