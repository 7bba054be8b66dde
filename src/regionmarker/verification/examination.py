"""An examination: the suspect's answers laid beside what the key knows, ready to be scored.

There is one kind for every statistic. Each has ``of`` and ``check_enough``; ``scores`` and ``tenant_scores``, which see
no target; ``test`` and ``tenant_test``, the exact test of such scores; and what the paper compares: ``inside``,
``outside``, ``goals``, ``paper``.
"""

from __future__ import annotations

import hashlib
from typing import TypeAlias

import numpy as np

from regionmarker.corpus import TextSet
from regionmarker.errors import InputError
from regionmarker.keys.key import Key
from regionmarker.vectors import Doubles
from regionmarker.verification import decoy1, decoy2
from regionmarker.verification.answers import Answers, Lookup
from regionmarker.verification.decoy_test import DecoyTest
from regionmarker.verification.graded_examination import GradedExamination
from regionmarker.verification.list_test import ListTest
from regionmarker.verification.questions import Questions, regroup
from regionmarker.verification.region_examination import RegionExamination

Examination: TypeAlias = RegionExamination | GradedExamination
ExactTest: TypeAlias = DecoyTest | ListTest

EXAMINATIONS: dict[str, type[Examination]] = {
    decoy1.STATISTIC: RegionExamination,
    decoy2.STATISTIC: GradedExamination,
}
"""The kinds of examination by the statistic that a key is committed to."""


def examine(key: Key, answers: Answers, probes: TextSet | None = None) -> Examination:
    """Lay ``answers`` beside the key's questions; too few of them are refused."""
    questions = regroup(key, answers.texts, probes)
    check_enough(key, questions, answers)
    return laid_out(key, questions, answers.lookup)


def laid_out(key: Key, questions: Questions, lookup: Lookup) -> Examination:
    """Lay what ``lookup`` answers beside the questions."""
    return _kind_of(key).of(key, questions, lookup)


def check_enough(key: Key, questions: Questions, answers: Answers) -> None:
    """Refuse answers of which so much is missing that a verdict would mean little."""
    _kind_of(key).check_enough(questions, answers)


def _kind_of(key: Key) -> type[Examination]:
    name = key.settings.statistic
    if name not in EXAMINATIONS:
        known = ", ".join(EXAMINATIONS)
        raise InputError(f"this key is committed to the statistic {name}, but this version has {known}")
    return EXAMINATIONS[name]


def scores_digest(z: Doubles) -> str:
    """Return the SHA-256 of a matrix of scores, written down before any target is looked up."""
    plain = np.ascontiguousarray(z, dtype="<f8")
    return hashlib.sha256(f"regionmarker scores 1 {plain.shape}\n".encode() + plain.tobytes()).hexdigest()
