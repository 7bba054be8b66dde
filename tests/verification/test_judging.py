"""Every key of a ring judges; the strongest finding is the verdict, and all of them are paid for."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from tests.support.suspects import BUDGET

from regionmarker import Answers, KeyRing, RegionMarker, ask, verify
from regionmarker.errors import InputError
from regionmarker.keys.key import key_from_key
from regionmarker.verification.decoy_test import holm
from regionmarker.verification.judging import judge
from regionmarker.verification.questions import merged_texts, plan_questions
from regionmarker.verification.verdict import INFRINGEMENT, NO_EVIDENCE

QUICK = {"budget": BUDGET, "power": False}


@pytest.fixture(scope="module")
def ring(judge_marker) -> KeyRing:
    """Three keys on one fit, the oldest first."""
    old = judge_marker.key_
    return KeyRing((old, key_from_key(old, seed=21), key_from_key(old, seed=22)))


@pytest.fixture(scope="module")
def stolen(ring, copy_of) -> Answers:
    """The answers of a copy of what the oldest key served."""
    return ask(ring, copy_of(RegionMarker.from_key(ring.keys[0]), 0.9), BUDGET)


def test_a_copy_of_what_an_older_key_served_is_convicted(ring, stolen):
    verdict = verify(ring, stolen, power=False)
    assert (verdict.outcome, verdict.key_id) == (INFRINGEMENT, ring.keys[0].id)
    assert verdict.judged_at == pytest.approx(1e-3 / 3)
    assert {other.key_id for other in verdict.other_keys} == {key.id for key in ring.keys[1:]}
    assert not any(other.infringement for other in verdict.other_keys)
    assert "3 keys judged" in " ".join(verdict.notes)
    assert verify(ring.primary, stolen, power=False).outcome == NO_EVIDENCE  # the newest alone would have missed it


def test_a_suspect_that_two_keys_marked_is_found_by_both(ring, copy_of, clean_of):
    first, second = (RegionMarker.from_key(key) for key in ring.keys[:2])
    copy = copy_of(first, 0.9)
    verdict = verify(ring, lambda texts: second.transform(copy(texts)), **QUICK)
    assert verdict.outcome == INFRINGEMENT
    assert verdict.other_keys[0].infringement
    assert {verdict.key_id, verdict.other_keys[0].key_id} == {key.id for key in ring.keys[:2]}
    assert not verdict.other_keys[1].infringement


def test_the_correction_is_holm_over_keys_and_looks(ring, stolen, tmp_path):
    ledger = tmp_path / "ledger.jsonl"
    judge(ring.keys[1], ask(ring.keys[1], lambda texts: np.ones((len(texts), 2)), BUDGET), ledger=ledger, power=False)
    renamed = Answers("<lambda>", stolen.texts, stolen.vectors)
    verdict = judge(ring, renamed, ledger=ledger, power=False)
    p_of = {verdict.key_id: verdict.p_value, **{other.key_id: other.p_value for other in verdict.other_keys}}
    look_of = {verdict.key_id: verdict.look, **{other.key_id: other.look for other in verdict.other_keys}}
    assert [look_of[key.id] for key in ring] == [1, 2, 1]
    paid = np.array([min(p_of[key.id] * look_of[key.id] * (look_of[key.id] + 1), 1.0) for key in ring])
    corrected = dict(zip((key.id for key in ring), holm(paid), strict=True))
    assert {other.key_id: other.holm for other in verdict.other_keys} == pytest.approx(
        {other.key_id: corrected[other.key_id] for other in verdict.other_keys}
    )
    assert verdict.judged_at == pytest.approx(1e-3 / (2 * 3))
    lines = [json.loads(line) for line in ledger.read_text().splitlines()]
    assert sorted(line["key_id"] for line in lines[1:]) == sorted(key.id for key in ring)
    assert judge(ring, renamed, ledger=ledger, power=False).look == verdict.look  # the same answers are the same look


def test_a_ring_of_one_is_a_key(judge_marker, copy_of):
    answers = ask(judge_marker, copy_of(judge_marker, 0.8), BUDGET)
    alone, ring = (judge(given, answers, power=False) for given in (judge_marker, KeyRing((judge_marker.key_,))))
    assert {**alone.to_dict(), "created": ""} == {**ring.to_dict(), "created": ""}
    assert alone.other_keys == ()


def test_the_questions_of_all_keys_are_asked_once(ring):
    planned = [plan_questions(key, BUDGET) for key in ring]
    texts = merged_texts(planned)
    assert set(texts) == {text for one in planned for text in one.texts}
    assert len(texts) == len(set(texts)) < sum(len(one) for one in planned)
    assert texts != merged_texts(planned)  # shuffled anew: the order says nothing
    assert set(ask(ring, lambda asked: np.ones((len(asked), 2)), BUDGET).texts) == set(texts)


def test_innocents_are_acquitted_by_every_key(ring, innocents):
    for name, suspect in innocents.items():
        verdict = verify(ring, suspect, **QUICK)
        assert verdict.outcome == NO_EVIDENCE, name
        assert not any(other.infringement for other in verdict.other_keys)


def test_answers_that_are_too_few_for_one_key_name_it(ring, copy_of):
    answers = ask(ring.keys[0], copy_of(RegionMarker.from_key(ring.keys[0]), 0.9), BUDGET)
    other = RegionMarker(seed=3, pool=64, reservoir=512)
    other.fit([f"text {row}" for row in range(600)], embeddings=ring.primary.reservoir.embeddings[:600])
    with pytest.raises(InputError, match=f"(?s)key {other.key_.id} of the ring: .*--key-id"):
        judge(ring.rotated(other.key_), answers, power=False)


def test_old_and_missing_answers_are_told(judge_marker, copy_of):
    fresh = ask(judge_marker, copy_of(judge_marker, 0.9), BUDGET)
    assert not any(
        "answers are" in note or "no answer" in note for note in judge(judge_marker, fresh, power=False).notes
    )
    earlier = tuple(replace(one, time="2020-02-03T04:05:06+00:00") for one in fresh.exchanges)
    vectors = fresh.vectors.copy()
    silent = [text for text in fresh.texts if text not in judge_marker.key_.pool.texts][:3]
    vectors[[fresh.texts.index(text) for text in silent]] = np.nan
    verdict = judge(judge_marker, Answers("old", fresh.texts, vectors, earlier), power=False)
    assert verdict.outcome == INFRINGEMENT
    told = " ".join(verdict.notes)
    assert "the answers are of 2020-02-03" in told
    assert "3 texts have no answer and are left out: p holds if the silence is the suspect's own" in told
