"""How the story of the demo ends, under a key that is known beforehand."""

from __future__ import annotations

import pytest

from regionmarker.demo import Story, run_demo
from regionmarker.verification.verdict import INFRINGEMENT


@pytest.fixture(scope="module")
def story() -> Story:
    return run_demo(lambda _: None, seed=3)


def test_every_copy_is_convicted_and_nobody_else(story):
    convicted = {name for name, verdict in story.verdicts.items() if verdict.outcome == INFRINGEMENT}
    assert len(story.guilty) == 3
    assert convicted == set(story.guilty)


def test_the_customer_who_leaked_is_named_and_nobody_else(story):
    accused = [row.tenant for row in story.traces if row.accused]
    assert accused == [story.utility()["leaked_by"]]


def test_the_published_rule_convicts_the_innocent_as_well(story):
    innocent = set(story.verdicts) - set(story.guilty)
    assert len(innocent) == 3
    assert sum(story.verdicts[name].paper.copy for name in innocent) >= 2


def test_the_picture_is_drawn(story, tmp_path):
    pytest.importorskip("matplotlib", reason="pictures need the extra report")
    story.draw(tmp_path / "verdicts.png")
    assert (tmp_path / "verdicts.png").read_bytes().startswith(b"\x89PNG")
