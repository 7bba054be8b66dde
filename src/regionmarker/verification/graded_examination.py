"""An examination of the graded mark: the answers to the probes, scored by decoy-2.

Nothing in here looks up a target: :meth:`GradedExamination.scores` cannot, because the key's targets are not part of
it. No candidate was asked, so nobody can withhold an answer that would change the lists.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from regionmarker.crypto.secret import Sealed
from regionmarker.errors import InputError
from regionmarker.keys.key import Key
from regionmarker.marks.graded import GradedMark
from regionmarker.marks.graded_settings import LEAST_PROBES
from regionmarker.vectors import AnyArray, Doubles, Floats, Integers
from regionmarker.verification.answers import Answers, Lookup
from regionmarker.verification.decoy2 import GradedScores, axes_match, graded_scores, own_list_scores
from regionmarker.verification.list_test import ListTest
from regionmarker.verification.paper_statistics import PaperStatistics, paper_statistics
from regionmarker.verification.questions import Questions

_FIFTHS = (0.2, 0.4, 0.6, 0.8)
_PENALTY = 3.0  # of the ridge map that says what a suspect would answer for a text that it was not asked


@dataclass(frozen=True, repr=False, eq=False)
class GradedExamination(Sealed):
    """Questions, the answers to them, and the mark without its targets."""

    questions: Questions
    mark: GradedMark
    pool: Floats  # (M, D): all candidates, clean
    answers: Floats  # (m, D'), NaN rows are missing

    @classmethod
    def of(cls, key: Key, questions: Questions, lookup: Lookup) -> GradedExamination:
        """Lay the answers that ``lookup`` gives beside the questions."""
        if not isinstance(key.mark, GradedMark):
            raise InputError("decoy-2 judges the graded mark only: this key has another")
        return cls(questions, key.mark, key.pool.embeddings, lookup(questions.probes.texts))

    @classmethod
    def check_enough(cls, questions: Questions, answers: Answers) -> None:
        """Refuse answers that are too few to tell anything."""
        there = int(np.isfinite(answers.lookup(questions.probes.texts)).all(axis=1).sum())
        if there < LEAST_PROBES:
            raise InputError(
                f"{answers.suspect} answered {there} of this key's probes, and at least {LEAST_PROBES} are needed: "
                "ask the rest (regionmarker probes writes all texts)"
            )

    # ---- the statistic

    @property
    def axes(self) -> str:
        """Whether the suspect's dimensions are taken for the clean ones: "matched" or "unknown"."""
        clean, answers = self.questions.probes.embeddings[self._there], self.answers[self._there]
        found = axes_match(clean - clean.mean(axis=0), answers - answers.mean(axis=0))
        return "matched" if found else "unknown"

    def scores(self) -> Doubles:
        """Return z of every candidate in the list of its carrier, for the provider's carriers, (J, L)."""
        return self._own_lists("provider")

    def tenant_scores(self) -> Doubles:
        """Return the same for the tenants' carriers."""
        return self._own_lists("tenants")

    def test(self, z: Doubles) -> ListTest:
        return ListTest(z, self.mark.settings.test_weights("provider", matched=self._found.matched))

    def tenant_test(self, z: Doubles) -> ListTest:
        return ListTest(z, self.mark.settings.test_weights("tenants", matched=self._found.matched))

    @cached_property
    def _there(self) -> AnyArray:
        return np.asarray(np.isfinite(self.answers).all(axis=1))

    @cached_property
    def _found(self) -> GradedScores:
        clean = self.questions.probes.embeddings[self._there]
        return graded_scores(self.mark, clean, self.answers[self._there], self.pool)

    def _own_lists(self, group: str) -> Doubles:
        return own_list_scores(self.mark, self._found.scores, len(self.pool), group)

    # ---- the paper's comparison: a carrier's upper fifth against its middle

    def fifths(self) -> Integers:
        """Return which fifth of each of the provider's carriers every probe lies in, 0 .. 4, (m, J)."""
        return self._fifths

    @cached_property
    def _fifths(self) -> Integers:
        carriers = self.mark.carriers(self.questions.probes.embeddings)[:, self.mark.settings.places("provider")]
        return np.asarray((carriers[:, :, None] > np.quantile(carriers, _FIFTHS, axis=0).T).sum(axis=2))

    def inside(self, place: int) -> Floats:
        """Return the answers to the probes in the upper fifth of a carrier, missing ones left out."""
        return np.asarray(self.answers[self._there & (self._fifths[:, place] == len(_FIFTHS))])

    def outside(self, place: int = 0) -> Floats:
        """Return the answers to the probes in the middle fifth of a carrier, missing ones left out."""
        return np.asarray(self.answers[self._there & (self._fifths[:, place] == len(_FIFTHS) // 2)])

    def goals(self, targets: tuple[int, ...]) -> tuple[Floats, str]:
        """Return what the suspect would answer for the targets, had it been asked, by a ridge map (J, D')."""
        clean, answers = self.questions.probes.embeddings[self._there], self.answers[self._there]
        centre, mean = clean.mean(axis=0), answers.mean(axis=0)
        x = (clean - centre).astype(np.float64)
        gram = x.T @ x
        gram[np.diag_indices_from(gram)] += _PENALTY
        wanted = np.linalg.solve(gram, (self.pool[list(targets)] - centre).T)  # (D, J)
        return ((x @ wanted).T @ (answers - mean) + mean).astype(np.float32), "predicted"

    def paper(self, targets: tuple[int, ...]) -> PaperStatistics:
        """Return the paper's own statistics, carrier by carrier."""
        goals, origin = self.goals(targets)
        places = range(len(targets))
        inside, outside = [self.inside(place) for place in places], [self.outside(place) for place in places]
        return paper_statistics(inside, outside, goals, target=origin)
