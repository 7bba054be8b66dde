"""Everything that is asked of one key: each suspect's verdict, redrawn targets, sabotaged verifiers, tracing."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from regionmarker.keys.key import Key
from regionmarker.verification.answers import Answers
from regionmarker.verification.asking import further_questions
from regionmarker.verification.decoy_test import holm
from regionmarker.verification.examination import examine
from regionmarker.verification.graded_examination import GradedExamination
from regionmarker.verification.judging import judge
from regionmarker.verification.list_test import ListTest, p_from_lists
from regionmarker.verification.questions import DEFAULT_BUDGET, plan_questions
from studies.innocents.sabotage import BUDGETS, VERIFIERS, marked_as_clean, picked, stop_when_small
from studies.innocents.suspects import (
    AS_IT_IS,
    INNOCENTS,
    OWN,
    THIEF,
    THIEFS_KEY,
    TURNED,
    Array,
    Corpus,
    Forms,
)

LEVEL = 1e-3
LOOSE = 0.05
REDRAWS = 10_000
TENANTS = tuple(f"tenant {number}" for number in range(200))
PAPER_KEYS = 20
"""How many keys judge by the whole of ``judge``, the paper's statistics included; the others by what p comes from."""
FURTHER_KEYS, STOPPED_KEYS, MISLED_KEYS, SAME_KEYS = 100, 300, 60, 5
"""Under how many keys further suspects are judged; sabotaged verifiers stop when p is small and get redrawn targets;
one of them takes marked vectors for clean ones; strangers are judged as they are."""


class Room:
    """One key, and how a suspect is asked and examined by it."""

    def __init__(self, corpus: Corpus, key: Key, seed: int, budget: int = DEFAULT_BUDGET) -> None:
        self.key, self._place, self._seed = key, corpus.place, seed
        self.questions = plan_questions(key, budget, seed=seed)

    def asked(self, name: str, vectors: Array) -> Answers:
        """Ask as ``regionmarker.ask`` does: 3,000 texts, and the rest where axes are unknown."""
        answers = self._answers(name, vectors, self.questions.texts)
        more = further_questions([self.key], [self.questions], answers, seed=self._seed)
        return answers.joined(self._answers(name, vectors, more)) if more else answers

    def judged(self, answers: Answers, *, whole: bool) -> tuple[GradedExamination, ListTest, dict[str, bool]]:
        """Judge answers: by ``judge``, with the paper's decision, or by the part of it that p comes from."""
        if not whole:
            examination = examine(self.key, answers)
            return examination, self.test(examination), {}
        verdict = judge(self.key, answers, power=False)
        return verdict.basis.examination, verdict.basis.test, {"paper": verdict.paper.copy}

    def test(self, examination: GradedExamination) -> ListTest:
        return examination.test(examination.scores())  # sees no target

    def test_at(self, name: str, vectors: Array, budget: int) -> ListTest:
        """Return the test after so many texts."""
        texts = plan_questions(self.key, budget, seed=self._seed).texts
        return self.test(examine(self.key, self._answers(name, vectors, texts)))

    def _answers(self, name: str, vectors: Array, texts: tuple[str, ...]) -> Answers:
        return Answers(name, texts, vectors[[self._place[text] for text in texts]])


def judge_key(corpus: Corpus, answers: dict[str, Forms], key: Key, seed: int, redraws: int = REDRAWS) -> dict[str, Any]:
    """Return what the key of this seed makes of every suspect."""
    room = Room(corpus, key, seed)
    size = key.mark.settings.list_size(len(key.pool))
    carriers = len(key.mark.settings.places("provider"))
    drawn = np.random.default_rng([seed, 11]).integers(size, size=(redraws, carriers)) + size * np.arange(carriers)
    chosen = INNOCENTS[seed % len(INNOCENTS)]  # whom the sabotaged verifiers judge
    row: dict[str, Any] = {"suspects": {}, "sabotaged": {"suspect": chosen}, "misled": {}}
    for name, forms in answers.items():
        row["suspects"][name] = {}
        for form, vectors in forms.items():
            if not _tried(name, form, seed):
                continue
            asked = room.asked(name, vectors)
            examination, test, paper = room.judged(asked, whole=seed < PAPER_KEYS)
            found = {"axes": _axes(key, test), "asked": len(asked), **_judged(test, key.provider_targets(), drawn)}
            row["suspects"][name][form] = found | paper
            if name == chosen and form != AS_IT_IS:
                row["sabotaged"][form] = _sabotaged(key, test)
            if name == chosen and form != AS_IT_IS and seed < STOPPED_KEYS:
                for title, more in _redrawn_and_stopped(room, asked, vectors, test, drawn).items():
                    row["sabotaged"][form].setdefault(title, {}).update(more)
            if name == chosen and form == TURNED:
                row["trace"] = _trace(key, examination)
            if name == OWN and seed < MISLED_KEYS:
                row["misled"][form] = room.test(marked_as_clean(key, examination)).p_value(key.provider_targets())
    return row


def _tried(name: str, form: str, seed: int) -> bool:
    """Say whether the key of this seed judges a suspect in a form."""
    if seed == THIEFS_KEY:
        return name == THIEF
    if form == AS_IT_IS:
        return seed < SAME_KEYS
    return name in INNOCENTS or seed < FURTHER_KEYS


def _axes(key: Key, test: ListTest) -> str:
    """Tell from the weights of a test which branch its scores came from, which is cheaper than to find out again."""
    matched = np.array_equal(test.weights, key.mark.settings.test_weights("provider", matched=True))
    return "matched" if matched else "unknown"


def _judged(test: ListTest, targets: tuple[int, ...], drawn: NDArray[np.int64]) -> dict[str, Any]:
    """Return p, how often redrawn tuples have a p at or below the levels, and how often they do exactly."""
    every = p_from_lists(test.steps, np.arange(int(np.abs(test.steps).max(axis=1).sum()) + 1))  # p of each |U|
    redrawn = every[np.abs(picked(test, drawn).sum(axis=1))]
    return {
        "p": test.p_value(targets),
        "redrawn": _count(redrawn, LEVEL),
        "redrawn_loose": _count(redrawn, LOOSE),
        "exactly": float(every[every <= LEVEL].max(initial=0.0)),
    }


def _sabotaged(key: Key, test: ListTest) -> dict[str, Any]:
    targets = np.array([key.provider_targets()])
    return {title: {"p": float(verifier(test, targets)[0])} for title, verifier in VERIFIERS.items()}


def _redrawn_and_stopped(
    room: Room, asked: Answers, vectors: Array, test: ListTest, drawn: NDArray[np.int64]
) -> dict[str, Any]:
    found: dict[str, Any] = {
        title: {"redrawn": _count(VERIFIERS[title](test, drawn), LEVEL)} for title in ("best side", "best of two")
    }
    looks = [*(room.test_at(asked.suspect, vectors, budget) for budget in BUDGETS if budget < len(asked)), test]
    found["stop when small"] = {
        "p": float(stop_when_small(looks, np.array([room.key.provider_targets()]))[0]),
        "redrawn": _count(stop_when_small(looks, drawn), LEVEL),
    }
    return found


def _trace(key: Key, examination: GradedExamination) -> dict[str, Any]:
    """Return the smallest corrected p over tenants none of whom leaked."""
    test = examination.tenant_test(examination.tenant_scores())
    corrected = holm(test.p_values(np.array([key.tenant_targets(name) for name in TENANTS])))
    return {"holm": float(corrected.min()), "accused": _count(corrected, LEVEL)}


def _count(p_values: NDArray[np.float64], level: float) -> int:
    return int((p_values <= level).sum())
