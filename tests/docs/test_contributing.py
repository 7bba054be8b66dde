"""CONTRIBUTING's map is true: its ladder is the one that lint-imports checks, and the files that it names are there."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
QUESTIONS = (
    "a new mark",
    "a new attack",
    "a new upstream dialect",
    "another headline of the report",
    "a new column in the leaderboard",
)


def table(heading: str) -> dict[str, str]:
    """The first table with this heading, by its first column."""
    rows = PAGE.partition(f"| {heading} |")[2].partition("\n\n")[0].splitlines()[2:]
    return {first.strip(): rest.strip() for first, rest in (row.strip("|").split("|", 1) for row in rows)}


def test_the_ladder_is_the_one_that_is_checked():
    drawn = [re.findall(r"`(\w+)`", rung) for rung in table("rung")]
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    ladder = next(contract for contract in settings["contracts"] if contract["name"] == "The ladder")
    rungs = [[name.strip(" ()") for name in layer.split("|")] for layer in ladder["layers"]]
    assert drawn == rungs


def test_every_question_has_a_file_that_exists():
    answers = table("you want")
    assert tuple(answers) == QUESTIONS
    for question, answer in answers.items():
        named = re.findall(r"`(src/[^`]+)`", answer)
        assert named, question
        assert [name for name in named if not (ROOT / name).exists()] == []


def test_every_path_of_the_page_exists():
    named = re.findall(r"`((?:src|tests|docs|studies|deploy)/[^`<]*)`", PAGE)
    assert len(named) > 10
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_lint_checks_the_contracts():
    recipe = (ROOT / "Makefile").read_text(encoding="utf-8").partition("\nlint:")[2].partition("\n\n")[0]
    assert "lint-imports" in recipe
