"""An examination: the suspect's answers laid beside what the key knows, ready to be scored.

Nothing in here looks up a target: :meth:`Examination.scores` cannot, because the key's targets are not part of it.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

import numpy as np

from regionmarker.keys.key import Key, TextSet
from regionmarker.keys.secret import Sealed
from regionmarker.protocols import Doubles, Floats
from regionmarker.verification.answers import Answers
from regionmarker.verification.asking import check_enough
from regionmarker.verification.questions import Questions, regroup
from regionmarker.verification.scores import region_scores


@dataclass(frozen=True, repr=False, eq=False)
class Examination(Sealed):
    """Questions, the answers to them, and which regions carry marks."""

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
            questions=questions,
            probe_answers=probe_answers,
            pool_answers=pool_answers,
            regions=key.regions,
            tenant_regions=key.tenant_regions,
        )

    def scores(self) -> Doubles:
        """Return z over the provider's regions, (R, M)."""
        return self._scores(self.regions, ())

    def tenant_scores(self) -> Doubles:
        """Return z over the tenants' regions; the provider's regions, marked as well, are kept apart."""
        return self._scores(self.tenant_regions, self.regions)

    def _scores(self, regions: tuple[int, ...], others: tuple[int, ...]) -> Doubles:
        return region_scores(self.probe_answers, self.pool_answers, self.questions.clean, regions, others)

    def inside(self, region: int) -> Floats:
        """Return the answers to the probes of one region, missing ones left out."""
        return _present(self.probe_answers[self.questions.cells == region])

    def outside(self) -> Floats:
        """Return the answers to the probes in no provider region, missing ones left out."""
        return _present(self.probe_answers[~np.isin(self.questions.cells, self.regions)])


def _present(rows: Floats) -> Floats:
    return rows[np.isfinite(rows).all(axis=1)]


def scores_digest(z: Doubles) -> str:
    """Return the SHA-256 of a matrix of scores, written down before any target is looked up."""
    plain = np.ascontiguousarray(z, dtype="<f8")
    return hashlib.sha256(f"regionmarker scores 1 {plain.shape}\n".encode() + plain.tobytes()).hexdigest()
