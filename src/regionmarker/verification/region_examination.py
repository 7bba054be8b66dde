"""An examination of the published mark: answers by region and to the pool, scored by decoy-1.

Nothing in here looks up a target: :meth:`RegionExamination.scores` cannot, for the key's targets are not part of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from regionmarker.crypto.secret import Sealed
from regionmarker.errors import InputError
from regionmarker.keys.key import Key
from regionmarker.marks.regions import RegionMark
from regionmarker.vectors import Doubles, Floats
from regionmarker.verification import decoy1
from regionmarker.verification.answers import Answers, Lookup
from regionmarker.verification.decoy_test import DecoyTest
from regionmarker.verification.paper_statistics import PaperStatistics, paper_statistics
from regionmarker.verification.questions import ENOUGH_PROBES, Questions, RegionQuestions


@dataclass(frozen=True, repr=False, eq=False)
class RegionExamination(Sealed):
    """Questions, the answers to them, and which regions carry marks."""

    axes: ClassVar[None] = None  # decoy-1 does not say whether it took the suspect's axes for the clean ones

    questions: RegionQuestions
    pool: Floats  # (M, D): clean
    probe_answers: Floats  # (m, D'), NaN rows are missing
    pool_answers: Floats  # (M, D')
    regions: tuple[int, ...]
    tenant_regions: tuple[int, ...]

    @classmethod
    def of(cls, key: Key, questions: Questions, lookup: Lookup) -> RegionExamination:
        """Lay the answers that ``lookup`` gives beside the questions."""
        if not isinstance(key.mark, RegionMark) or not isinstance(questions, RegionQuestions):
            raise InputError("decoy-1 judges the published mark only: this key has another")
        return cls(
            questions=questions,
            pool=key.pool.embeddings,
            probe_answers=lookup(questions.probes.texts),
            pool_answers=lookup(questions.pool.texts),
            regions=key.mark.regions,
            tenant_regions=key.mark.tenant_regions,
        )

    @classmethod
    def check_enough(cls, questions: Questions, answers: Answers) -> None:
        """Refuse answers of which so much is missing that a verdict would mean little.

        Every pool text must have an answer: who knows the targets and withholds the decoys that score highest, 5 % of
        the pool, convicts innocents four times as often as the level says. As many probes may be missing as leave 30
        in every region that was asked for as many.
        """
        if isinstance(questions, RegionQuestions):
            _check_enough(questions, answers)

    def scores(self) -> Doubles:
        """Return z over the provider's regions, (R, M)."""
        return self._scores(self.regions, ())

    def tenant_scores(self) -> Doubles:
        """Return z over the tenants' regions; the provider's regions, marked as well, are kept apart."""
        return self._scores(self.tenant_regions, self.regions)

    def _scores(self, regions: tuple[int, ...], others: tuple[int, ...]) -> Doubles:
        clean = self.questions.clean
        return decoy1.region_scores(self.probe_answers, self.pool_answers, clean, regions, others)

    def test(self, z: Doubles) -> DecoyTest:
        return DecoyTest(z)

    tenant_test = test

    def inside(self, place: int) -> Floats:
        """Return the answers to the probes of one of the provider's regions, missing ones left out."""
        return _present(self.probe_answers[self.questions.regions == self.regions[place]])

    def outside(self, place: int = 0) -> Floats:  # noqa: ARG002 - the same for every region
        """Return the answers to the probes in no provider region, missing ones left out."""
        return _present(self.probe_answers[~np.isin(self.questions.regions, self.regions)])

    def goals(self, targets: tuple[int, ...]) -> tuple[Floats, str]:
        """Return what stands for the targets in the suspect's space (R, D'), and where it comes from."""
        goals = self.pool_answers[list(targets)]
        return (goals, "suspect") if np.isfinite(goals).all() else (self.pool[list(targets)], "stored")

    def paper(self, targets: tuple[int, ...]) -> PaperStatistics:
        """Return the paper's own statistics."""
        goals, origin = self.goals(targets)
        places = range(len(self.regions))
        return paper_statistics([self.inside(place) for place in places], self.outside(), goals, target=origin)


def _present(rows: Floats) -> Floats:
    return rows[np.isfinite(rows).all(axis=1)]


def _check_enough(questions: RegionQuestions, answers: Answers) -> None:
    pool = np.isnan(answers.lookup(questions.pool.texts)[:, 0])
    if pool.any():
        raise InputError(
            f"{answers.suspect} left {int(pool.sum())} of {len(pool)} pool texts without an answer, and decoy-1 needs "
            "them all, because withheld ones would favour the accuser: ask the rest (regionmarker probes writes all "
            "texts)"
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
