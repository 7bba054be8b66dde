"""The published mark laid out: which answers belong to a region, and what stands for a target."""

from __future__ import annotations

import numpy as np
import pytest
from tests.support.suspects import BUDGET

from regionmarker import ask
from regionmarker.errors import InputError
from regionmarker.verification.answers import Answers
from regionmarker.verification.examination import examine
from regionmarker.verification.region_examination import RegionExamination


@pytest.fixture(scope="module")
def answers(judge_marker, copy_of) -> Answers:
    return ask(judge_marker, copy_of(judge_marker), budget=BUDGET)


def test_inside_and_outside_are_all_probes_but_for_missing_ones(judge_marker, answers):
    examination = examine(judge_marker.key_, answers)
    regions = len(judge_marker.key_.regions)
    counts = [len(examination.inside(place)) for place in range(regions)] + [len(examination.outside())]
    assert sum(counts) == len(examination.questions.probes)
    silent = answers.vectors.copy()
    lost = examination.questions.probes.texts[0]
    silent[answers.texts.index(lost)] = np.nan
    again = examine(judge_marker.key_, Answers("quiet", answers.texts, silent))
    assert sum(len(again.inside(place)) for place in range(regions)) + len(again.outside()) == sum(counts) - 1


def test_targets_are_the_suspects_answers_unless_one_is_missing(judge_marker, answers, monkeypatch):
    key, targets = judge_marker.key_, judge_marker.key_.provider_targets()
    goals, origin = examine(key, answers).goals(targets)
    assert origin == "suspect"
    monkeypatch.setattr("regionmarker.verification.region_examination._check_enough", lambda questions, answers: None)
    assert np.array_equal(goals, answers.lookup([key.pool.texts[place] for place in targets]))
    silent = answers.vectors.copy()
    silent[answers.texts.index(key.pool.texts[targets[0]])] = np.nan
    goals, origin = examine(key, Answers("quiet", answers.texts, silent)).goals(targets)
    assert origin == "stored"
    assert np.array_equal(goals, key.pool.embeddings[list(targets)])


def test_it_judges_the_published_mark_only(graded_marker, graded_answers):
    key = graded_marker.key_
    with pytest.raises(InputError, match="decoy-1 judges the published mark only"):
        RegionExamination.of(key, examine(key, graded_answers()).questions, graded_answers().lookup)
