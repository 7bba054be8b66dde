"""Checks of an expert's bundle: texts, groups, targets and answers."""

from __future__ import annotations

import pytest
from tests.support.evidence_case import lie

from regionmarker.evidence import check_evidence
from regionmarker.verification.answers import Answers

pytestmark = pytest.mark.usefixtures("quick_report")


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("pool.jsonl", lambda rows: rows[3]["z"].__setitem__(0, rows[3]["z"][0] + 1e-9)),
        ("pool.jsonl", lambda rows: rows.reverse()),
        ("probes.jsonl", lambda rows: rows.pop()),
        ("probes.jsonl", lambda rows: [row.update(region=1) for row in rows[:40]]),
        ("transcript.jsonl", lambda rows: rows[0].update(response="cd" * 32)),
        ("verdict.json", lambda verdict: verdict.update(answers_digest="00" * 32)),
        ("verdict.json", lambda verdict: verdict["paper"].update(delta_cos=0.5)),
    ],
)
def test_lies_at_expert_level_are_found(own_copy, name, change):
    assert name in str(lie(own_copy("expert"), name, change))


def test_other_targets_are_found_at_expert_level(own_copy):
    def move(rows):
        """Name the text with the highest score the target: the forger's dream."""
        for row in rows:
            row["target_of"] = 1 if row["target_of"] is None and row["place"] < 1 else row["target_of"]

    assert "pool.jsonl" in str(lie(own_copy("expert"), "pool.jsonl", move))


def test_a_file_may_hold_more_answers_than_are_judged(case_key, verdict_on, answer_as, tmp_path):
    """The file that the texts of ``probes`` come back in holds more than is asked of a copy whose axes match."""
    whole = answer_as()
    probes = [row for row, text in enumerate(whole.texts) if text not in case_key.pool.texts]
    kept = sorted(set(range(len(whole.texts))).difference(probes[:7]))
    some = Answers(whole.suspect, [whole.texts[row] for row in kept], whole.vectors[kept], whole.exchanges)
    report = check_evidence(verdict_on(some).save(tmp_path / "bundle", level="court"))
    assert report.failure is None
    said = next(check.detail for check in report.checks if check.name == "transcript")
    assert said == "1 exchanges are those of the answers; 7 other texts were asked in them and not judged"
