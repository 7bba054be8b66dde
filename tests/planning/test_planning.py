"""A plan: what it tries, what it recommends, what it says when it cannot, and that it goes on where it was."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from regionmarker.errors import InputError
from regionmarker.planning import Candidate, Choices, Goals, Plan, PlanningCorpus, plan
from regionmarker.planning.search import Outcome, _best, _replaced, wilson
from regionmarker.planning.trials import PlannedStealer, Trial, TrialLog, TrialRunner, find_stealer
from regionmarker.verification.simulated_stealer import StudentView, student_views

WIDTH = 48
CHOICES = Choices((2,), (0.5,), (0.1, 0.4), (16, 8))


@pytest.fixture(scope="module")
def material(sentences: list[str], embeddings: np.ndarray) -> PlanningCorpus:
    """Real texts, and vectors narrow enough to be quick."""
    rows = embeddings[:2400, :WIDTH]
    return PlanningCorpus(sentences[:2400], rows / np.linalg.norm(rows, axis=1, keepdims=True), seed=1)


@pytest.fixture(scope="module")
def made(material: PlanningCorpus) -> Plan:
    return plan(material, Goals(utility_loss=0.5, fidelity=0.85), CHOICES, keys=1, confirm=2)


def test_it_tries_every_candidate_and_the_other_subspaces_at_the_best(made: Plan) -> None:
    tried = [outcome.candidate for outcome in made.tried]
    assert tried[:2] == [Candidate(2, 0.5, 0.1, 16), Candidate(2, 0.5, 0.4, 16)]
    assert [(one.strength, one.subspace) for one in tried[2:]] == [(0.4, 8)]
    assert all(outcome.trials == 1 for outcome in made.tried)


def test_it_recommends_the_strongest_signal_that_is_allowed(made: Plan) -> None:
    weak, strong = made.tried[:2]
    assert weak.signal < strong.signal
    assert weak.utility_loss < strong.utility_loss <= 0.5
    assert made.recommended is not None
    assert made.recommended.candidate.strength == 0.4
    assert made.recommended.trials == 2
    assert made.recommended.caught == 1.0
    assert made.catches
    assert made.interval == wilson(1.0, 2)
    assert made.innocents <= 0.01


def test_the_curves_go_from_worse_to_better_thieves(made: Plan) -> None:
    fidelities = [outcome.fidelity for outcome in made.by_fidelity]
    assert fidelities == sorted(fidelities)
    assert fidelities[-1] >= 0.85 > fidelities[0]
    assert [outcome.queries for outcome in made.by_queries] == [300, 600, 1200]
    assert made.by_queries[0].fidelity < made.by_queries[-1].fidelity


def test_a_plan_is_plain_json(made: Plan) -> None:
    assert json.loads(json.dumps(made.to_dict(), allow_nan=False))["catches"] is True


def test_nothing_allowed_means_nothing_recommended(material: PlanningCorpus) -> None:
    found = plan(
        material, Goals(utility_loss=1e-6, fidelity=0.5), Choices((2,), (0.5,), (0.4,), (16,)), keys=1, confirm=1
    )
    assert found.recommended is None
    assert not found.catches
    assert found.by_fidelity == ()
    assert json.dumps(found.to_dict(), allow_nan=False)


def test_settings_that_a_corpus_cannot_have_are_a_row_and_not_an_end(material: PlanningCorpus) -> None:
    found = plan(material, Goals(fidelity=0.5), Choices((8,), (1.0,), (0.2,), (16,)), keys=2, confirm=1)
    assert found.recommended is None
    assert "region" in found.tried[0].failed
    assert found.to_dict()["tried"][0]["signal"] is None  # type: ignore[index]


def test_settings_that_could_never_convict_are_not_recommended(material: PlanningCorpus) -> None:
    found = plan(material, Goals(utility_loss=0.3, fidelity=0.5), Choices((2,), (0.25,), (0.4,), (16,)), keys=1)
    assert found.tried[0].failed.startswith("1 of 400 targets cannot give p below 0.0025")
    assert found.recommended is None


def test_a_stopped_plan_goes_on_to_the_same_end(material: PlanningCorpus, tmp_path: Path) -> None:
    choices, wishes = Choices((2,), (0.5,), (0.2, 0.4), (16,)), Goals(utility_loss=0.5, fidelity=0.6)
    whole = plan(material, wishes, choices, keys=1, confirm=1)

    class Stopped(Exception):
        pass

    def stop(done: int, total: int) -> None:
        if done == 2:
            raise Stopped

    file = tmp_path / "trials.jsonl"
    with pytest.raises(Stopped):
        plan(material, wishes, choices, keys=1, confirm=1, store=file, progress=stop)
    with file.open("a") as half:
        half.write('{"plan": "half a li')
    kept = file.read_text().count("\n")
    assert kept == 2
    seen: list[tuple[int, int]] = []
    again = plan(material, wishes, choices, keys=1, confirm=1, store=file, progress=lambda *pair: seen.append(pair))
    assert again.to_dict() == whole.to_dict()
    assert seen[-1][0] <= seen[-1][1]
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert len({line["name"] for line in lines}) == len(lines) > kept


def test_trials_of_another_corpus_are_not_used(tmp_path: Path) -> None:
    TrialLog(tmp_path / "t", "one").put("a trial", Trial(0.1, 0.9, 3.0, 0.01))
    assert TrialLog(tmp_path / "t", "one").get("a trial") == Trial(0.1, 0.9, 3.0, 0.01)
    assert TrialLog(tmp_path / "t", "two").get("a trial") is None
    (tmp_path / "t").write_text("no json\n")
    with pytest.raises(InputError, match="is damaged: delete it"):
        TrialLog(tmp_path / "t", "one")


# ---- the thieves


def test_the_ladder_of_thieves_ends_where_the_fidelity_is_reached(material: PlanningCorpus) -> None:
    stealer, tried = find_stealer(material, 0.6)
    fidelities = [fidelity for _, fidelity in tried]
    assert stealer.fidelity == fidelities[-1] >= 0.6 > max(fidelities[:-1])
    assert next(student_views(WIDTH)) == StudentView(8)
    assert list(student_views(WIDTH))[-1] == StudentView(256, 32)


def test_a_thief_asks_only_its_queries(material: PlanningCorpus) -> None:
    """What is served for other texts does not change the copy."""
    stealer = PlannedStealer(material, StudentView(32), 200)
    served = material.embeddings[stealer.asked]
    assert len(stealer.asked) == 200
    assert not set(stealer.asked.tolist()) & set(material.own.tolist())
    assert np.array_equal(stealer.steal(served)(material.own[:9]), stealer.steal(served.copy())(material.own[:9]))


def test_targets_are_drawn_afresh_and_keys_differ(material: PlanningCorpus) -> None:
    bench = TrialRunner(material, TrialLog(None, ""), 1e-3)
    candidate = Candidate(2, 0.5, 0.2, 16)
    draws = {bench._key(candidate, number, draw).provider_targets() for number in (0, 1) for draw in (0, 1, 2)}
    assert len(draws) == 6
    assert bench._key(candidate, 0, 0).mark.settings.strength == 0.2
    assert bench._key(dataclasses.replace(candidate, strength=0.3), 0, 0).mark.settings.strength == 0.3
    assert bench._key(candidate, 0, 0).test


# ---- choosing


def test_another_subspace_must_be_clearly_better() -> None:
    def outcome(subspace: int, signal: float, loss: float = 0.05, failed: str = "") -> Outcome:
        return Outcome(Candidate(4, 0.2, 0.2, subspace), 0.8, 100, loss, 0.99, signal, 0.5, 1.0, 4, failed)

    best = outcome(32, 5.0)
    assert _replaced(best, [outcome(64, 6.0)], 0.1) is best
    assert _replaced(best, [outcome(64, 7.0)], 0.1).candidate.subspace == 64
    assert _replaced(best, [outcome(64, 7.0, loss=0.2)], 0.1) is best
    assert _best([outcome(32, 5.0, failed="no"), outcome(32, 4.0)], 0.1) == outcome(32, 4.0)
    assert _best([], 0.1) is None


@pytest.mark.parametrize(
    ("wish", "message"),
    [
        ({"fidelity": 0.0}, "fidelity is 0.0"),
        ({"utility_loss": 1.0}, "utility_loss is 1.0"),
        ({"query_share": 0.9}, "query_share is 0.9"),
        ({"level": 2.0}, "level is 2.0"),
    ],
)
def test_bad_wishes_are_refused(wish: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError, match=message):
        Goals(**wish)


def test_bad_choices_and_corpora_are_refused(material: PlanningCorpus) -> None:
    for choices in ({"dimensions": ()}, {"ratios": (0.2, 0.2)}, {"dimensions": (9,)}, {"strengths": (1.0,)}):
        with pytest.raises(InputError):
            Choices(**choices)  # type: ignore[arg-type]
    with pytest.raises(InputError, match="keys, draws and confirm must be at least 1"):
        plan(material, keys=0)
    with pytest.raises(InputError, match="at least 1000 distinct texts, but the corpus has 1"):
        PlanningCorpus(["the same"] * 3000, np.eye(3, dtype=np.float32).repeat(1000, axis=0))
    with pytest.raises(InputError, match="2 texts but 3 embeddings"):
        PlanningCorpus(["a", "b"], np.eye(3))


def test_a_corpus_is_divided_once_and_repeated_texts_are_used_once(
    material: PlanningCorpus, sentences: list[str]
) -> None:
    assert len(material.texts) == len(set(material.texts)) == 2400
    rows = np.vstack([material.embeddings, material.embeddings[:50]])
    again = PlanningCorpus([*material.texts, *material.texts[:50]], rows, query_share=0.25, seed=1)
    assert len(again.texts) == 2400
    assert (len(again.queries), len(again.own)) == (600, 1800)
    assert again.digest != material.digest
