"""Checks of a summary: verdict, scores, looks and power, without anything of the key."""

from __future__ import annotations

import pytest
from tests.support.evidence_case import lie

from regionmarker.errors import InputError

pytestmark = pytest.mark.usefixtures("quick_report")


def shrink_tail(scores):
    counts = scores["null"]["counts"]
    counts[-1] -= 1
    counts[0] += 1


VERDICT_LIES = {
    "p_value": 1e-9,
    "total": 99.0,
    "floor": 1e-12,
    "look": 3,
    "judged_at": 0.04,
    "outcome": "no evidence",
    "key_id": "00" * 8,
    "disclosure": "court",
}


@pytest.mark.parametrize("name", VERDICT_LIES)
def test_lies_in_the_verdict_are_found(own_copy, name):
    failure = lie(own_copy("summary"), "verdict.json", lambda verdict: verdict.update({name: VERDICT_LIES[name]}))
    assert failure is not None
    assert "verdict.json" in failure


@pytest.mark.parametrize(
    "change",
    [
        lambda scores: scores["observed"].__setitem__(0, scores["observed"][0] + 1),
        lambda scores: scores["lists"][1].__setitem__(0, scores["lists"][1][0] + 7),
        lambda scores: scores["null"]["counts"].append(1),
        lambda scores: scores["null"].update(lowest=scores["null"]["lowest"] - 1),
        lambda scores: scores.update(pool=127),
        lambda scores: scores.update(step=0.25),
        lambda scores: scores.pop("observed"),
        lambda scores: scores.update(null="many"),
        shrink_tail,
    ],
)
def test_lies_in_the_scores_are_found(own_copy, change):
    assert "scores.json" in str(lie(own_copy("summary"), "scores.json", change))


def test_lies_about_the_power_are_found(own_copy):
    assert "power" in str(lie(own_copy("summary"), "verdict.json", lambda verdict: verdict["power"].update(caught=0.4)))


def test_what_is_caught_rests_on_the_lower_end_of_the_interval(own_copy):
    bundle = own_copy("summary")
    honest = {"low": [0.1, 0.5, 0.95], "high": [0.6, 1.0, 1.0], "sets": 6}
    assert lie(bundle, "verdict.json", lambda verdict: verdict["power"].update(honest, caught=0.8)) is None
    assert "power" in str(lie(bundle, "verdict.json", lambda verdict: verdict["power"].update(caught=0.6)))
    outside = {"caught": 0.8, "high": [0.2, 1.0, 1.0]}
    assert "interval" in str(lie(bundle, "verdict.json", lambda verdict: verdict["power"].update(outside)))


def test_a_level_that_differs_from_the_commitment_fails(own_copy):
    bundle = own_copy("summary")
    for level in (0.999, 0.0001):
        judged = {"level": level, "judged_at": level}
        failure = lie(bundle, "verdict.json", lambda verdict, judged=judged: verdict.update(judged))
        assert failure == f"verdict.json: the level is {level:g}, but 0.001 was committed to"


def test_evidence_is_given_at_the_committed_level_alone(verdict_on, answer_as, tmp_path):
    lax = verdict_on(answer_as(guilty=False), level=0.05)
    with pytest.raises(InputError, match=r"judged at level 0\.05, but the key is committed to 0\.001"):
        lax.save(tmp_path / "lax")
    assert list(tmp_path.iterdir()) == []
