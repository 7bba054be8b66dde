"""An examination: the suspect's answers laid beside what the key knows, ready to be scored.

Nothing in here looks up a target: :meth:`Examination.scores` cannot, because the key's targets are not part of it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from regionmarker.corpus import TextSet
from regionmarker.crypto.secret import Sealed
from regionmarker.errors import InputError
from regionmarker.keys.key import Key
from regionmarker.vectors import Doubles, Floats
from regionmarker.verification import decoy1
from regionmarker.verification.answers import Answers
from regionmarker.verification.clean_space import CleanSpace
from regionmarker.verification.questions import ENOUGH_PROBES, Questions, regroup

POOL_MISSING = 0.05  # share of the pool that may be without an answer

Statistic = Callable[[Floats, Floats, CleanSpace, tuple[int, ...], tuple[int, ...]], Doubles]
"""Scores z (R, M) from the answers to the probes and to the pool, the clean space, the regions to score and others."""

STATISTICS: dict[str, Statistic] = {decoy1.STATISTIC: decoy1.region_scores}
"""The statistics by the name that a key is committed to."""


@dataclass(frozen=True, repr=False, eq=False)
class Examination(Sealed):
    """Questions, the answers to them, which regions carry marks, and the statistic that scores them."""

    statistic: Statistic
    questions: Questions
    probe_answers: Floats  # (m, D'), NaN rows are missing
    pool_answers: Floats  # (M, D')
    regions: tuple[int, ...]
    tenant_regions: tuple[int, ...]

    @classmethod
    def of(cls, key: Key, answers: Answers, probes: TextSet | None = None) -> Examination:
        """Lay ``answers`` beside the key's questions; too few of them are refused."""
        questions = regroup(key, answers.texts, probes)
        check_enough(questions, answers)
        return cls.simulated(
            key, questions, answers.lookup(questions.probes.texts), answers.lookup(questions.pool.texts)
        )

    @classmethod
    def simulated(cls, key: Key, questions: Questions, probe_answers: Floats, pool_answers: Floats) -> Examination:
        """Lay given answer rows beside the questions."""
        return cls(
            statistic=_statistic_of(key),
            questions=questions,
            probe_answers=probe_answers,
            pool_answers=pool_answers,
            regions=key.mark.regions,
            tenant_regions=key.mark.tenant_regions,
        )

    def scores(self) -> Doubles:
        """Return z over the provider's regions, (R, M)."""
        return self._scores(self.regions, ())

    def tenant_scores(self) -> Doubles:
        """Return z over the tenants' regions; the provider's regions, marked as well, are kept apart."""
        return self._scores(self.tenant_regions, self.regions)

    def _scores(self, regions: tuple[int, ...], others: tuple[int, ...]) -> Doubles:
        return self.statistic(self.probe_answers, self.pool_answers, self.questions.clean, regions, others)

    def inside(self, region: int) -> Floats:
        """Return the answers to the probes of one region, missing ones left out."""
        return _present(self.probe_answers[self.questions.regions == region])

    def outside(self) -> Floats:
        """Return the answers to the probes in no provider region, missing ones left out."""
        return _present(self.probe_answers[~np.isin(self.questions.regions, self.regions)])


def _present(rows: Floats) -> Floats:
    return rows[np.isfinite(rows).all(axis=1)]


def _statistic_of(key: Key) -> Statistic:
    name = key.settings.statistic
    if name not in STATISTICS:
        raise InputError(f"this key is committed to the statistic {name}, but this version has {', '.join(STATISTICS)}")
    return STATISTICS[name]


def check_enough(questions: Questions, answers: Answers) -> None:
    """Refuse answers of which so much is missing that a verdict would mean little.

    Up to 5 % of the pool may be missing (such a text drops out of the pool), and as many probes as leave 30 in
    every region that was asked for as many.
    """
    pool = np.isnan(answers.lookup(questions.pool.texts)[:, 0])
    if pool.sum() > POOL_MISSING * len(pool):
        raise InputError(
            f"{answers.suspect} left {int(pool.sum())} of {len(pool)} pool texts without an answer, and at most "
            f"{int(POOL_MISSING * len(pool))} may be missing: ask the rest (regionmarker probes writes all texts)"
        )
    there = ~np.isnan(answers.lookup(questions.probes.texts)[:, 0])
    for region, planned in questions.counts.items():
        left = int((there & (questions.regions == region)).sum())
        if left < min(planned, ENOUGH_PROBES):
            # No region is named: which texts lie together is part of the secret.
            raise InputError(
                f"{answers.suspect} answered only {left} of the {planned} probes of one region, and "
                f"{min(planned, ENOUGH_PROBES)} are needed: ask the rest, or give the budget that was asked with"
            )


def scores_digest(z: Doubles) -> str:
    """Return the SHA-256 of a matrix of scores, written down before any target is looked up."""
    plain = np.ascontiguousarray(z, dtype="<f8")
    return hashlib.sha256(f"regionmarker scores 1 {plain.shape}\n".encode() + plain.tobytes()).hexdigest()
