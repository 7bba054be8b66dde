"""Checks of an expert's bundle: texts, groups, targets and answers."""

from __future__ import annotations

import pytest
from tests.support.evidence_case import lie

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
