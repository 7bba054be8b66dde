"""``regionmarker demo``."""

from __future__ import annotations

import json


def test_the_demo_tells_the_whole_story_offline(run, tmp_path):
    facts = json.loads(run("demo", "--out", "out", "--json").stdout)
    assert facts["mean_cosine_of_marked_and_clean"] > 0.97
    assert 0.9 < facts["ten_nearest_neighbours_kept"] < 0.96
    assert facts["fidelity_of_the_copy"] > 0.85
    assert (tmp_path / "out" / "verdicts.png").stat().st_size > 10_000
    # Every run draws a new key; how the story ends under a known one is told in tests/test_demo.py.
    suspects = {row["suspect"]: row for row in facts["suspects"]}
    assert len(suspects) == 6
    assert all(0 < row["p_value"] <= 1 and row["paper"]["copy"] in (True, False) for row in suspects.values())
    assert suspects["the copy"]["outcome"] == "infringement"
    assert (tmp_path / "out" / "evidence" / "report.html").exists()
    first = facts["tenants"][0]
    assert (first["tenant"], first["accused"]) == (facts["leaked_by"], True)
