"""The graded mark judged: copies as they are and rotated, tenants, missing answers, what is asked and when to stop."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from regionmarker import ask, trace, verify
from regionmarker.crypto.secret import Secret
from regionmarker.errors import InputError
from regionmarker.verification.answers import Answers
from regionmarker.verification.examination import examine, scores_digest
from regionmarker.verification.ledger import correction
from regionmarker.verification.questions import DEFAULT_BUDGET, plan_all, plan_questions
from regionmarker.verification.verdict import INFRINGEMENT, NO_EVIDENCE


@pytest.mark.parametrize("rotated", [False, True])
def test_a_copy_is_convicted_and_its_tenant_named(graded_marker, graded_answers, rotated):
    answers = graded_answers(tenant="acme", rotated=rotated)
    verdict = verify(graded_marker, answers, power=False)
    assert verdict.outcome == INFRINGEMENT
    assert verdict.p_value < 1e-9
    assert verdict.axes == ("unknown" if rotated else "matched")
    first, *others = trace(graded_marker, answers, [f"customer {n}" for n in range(40)] + ["acme"])
    assert (first.tenant, first.accused) == ("acme", True)
    assert not any(row.accused for row in others)


def test_the_provider_itself_is_not(graded_marker, clean_of, turn):
    for suspect in (clean_of, lambda texts: clean_of(texts) @ turn):
        verdict = verify(graded_marker, suspect, power=False)
        assert verdict.outcome == NO_EVIDENCE
        assert verdict.paper.copy  # the paper's comparison calls it one


def test_no_candidate_is_ever_asked(graded_marker):
    candidates = set(graded_marker.key_.pool.texts)
    assert not candidates & set(plan_all(graded_marker.key_).texts)
    own = replace(graded_marker.key_.reservoir, texts=graded_marker.key_.reservoir.texts)
    mixed = type(own)((*graded_marker.key_.pool.texts[:50], *own.texts), np.vstack(
        [graded_marker.key_.pool.embeddings[:50], own.embeddings]
    ))  # fmt: skip
    assert not candidates & set(plan_questions(graded_marker.key_, 1000, mixed).texts)


def test_more_is_asked_only_where_the_axes_do_not_match(graded_marker, copy_of, turn):
    copy = copy_of(graded_marker, 0.9)
    most = len(plan_all(graded_marker.key_))
    assert most > DEFAULT_BUDGET
    assert len(ask(graded_marker, copy)) == DEFAULT_BUDGET
    assert len(ask(graded_marker, lambda texts: copy(texts) @ turn)) == most
    assert len(ask(graded_marker, lambda texts: copy(texts) @ turn, 1000)) == 1000  # a budget of one's own is kept


def test_the_scores_see_no_target(graded_marker, graded_answers):
    key, answers = graded_marker.key_, graded_answers()
    redrawn = [key, replace(key, master=Secret(b"1" * 32)), replace(key, salt=b"s" * 32)]
    assert len({scores_digest(examine(one, answers).scores()) for one in redrawn}) == 1
    assert len({one.provider_targets() for one in redrawn}) == 3


def test_silence_changes_no_list_and_enough_must_be_left(graded_marker, graded_answers):
    answers = graded_answers()
    silent = answers.vectors.copy()
    silent[::10] = np.nan
    verdict = verify(graded_marker, Answers("quiet", answers.texts, silent), power=False)
    assert verdict.outcome == INFRINGEMENT
    assert any("200 texts have no answer and are left out" in note for note in verdict.notes)
    silent[200:] = np.nan
    with pytest.raises(InputError, match="answered 180 of this key's probes, and at least 256 are needed"):
        verify(graded_marker, Answers("mute", answers.texts, silent), power=False)


def test_a_look_is_a_set_of_inputs_whatever_the_suspect_is_called(graded_marker, graded_answers, tmp_path):
    ledger, answers = tmp_path / "ledger.jsonl", graded_answers()
    renamed = Answers("another name", answers.texts[::-1], answers.vectors[::-1])
    fewer = Answers("a copy", answers.texts[:1500], answers.vectors[:1500])
    judged = [verify(graded_marker, one, ledger=ledger, power=False) for one in (answers, renamed, fewer, answers)]
    assert [verdict.look for verdict in judged] == [1, 1, 2, 1]
    level = graded_marker.key_.settings.level
    assert [verdict.judged_at for verdict in judged] == pytest.approx(
        [level / correction(look, "decoy-2") for look in (1, 1, 2, 1)]
    )


def test_a_budget_is_checked(graded_marker):
    with pytest.raises(InputError, match="a budget of 100 queries is too small: this key needs at least 256"):
        plan_questions(graded_marker.key_, 100)


def test_a_key_without_tenants_cannot_trace(sentences, embeddings, clean_of):
    from regionmarker import RegionMarker

    marker = RegionMarker(seed=1, tenants=False).fit(sentences[:2000], embeddings=embeddings[:2000])
    answers = ask(marker, clean_of, 600)
    with pytest.raises(InputError, match="this key has no marks for tenants"):
        trace(marker, answers, ["acme"])
