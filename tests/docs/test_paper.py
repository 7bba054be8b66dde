"""The page of the paper: its files and functions are there, its commands would be understood."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest
import typer

from regionmarker.cli.app import app

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "paper.md").read_text(encoding="utf-8")
FILES = sorted(set(re.findall(r"`([\w/]+\.py)`", PAGE)))
COMMANDS = sorted(set(re.findall(r"`regionmarker ([^`]+)`", PAGE)))


@pytest.mark.parametrize("name", FILES)
def test_the_file_is_there(name):
    assert (ROOT / "src" / "regionmarker" / name).exists()


@pytest.mark.parametrize("line", COMMANDS)
def test_the_command_parses(line):
    command, words = typer.main.get_command(app), shlex.split(line)
    while hasattr(command, "commands"):
        command = command.commands[words.pop(0)]
    command.make_context(command.name, words)
    assert [word for word in words if word.startswith("studies/") and not (ROOT / word).exists()] == []


@pytest.mark.parametrize(("file", "function"), re.findall(r"`([\w/]+\.py)`: `(\w+)`", PAGE))
def test_the_function_is_there(file, function):
    assert f"def {function}(" in (ROOT / "src" / "regionmarker" / file).read_text(encoding="utf-8")


def test_every_table_has_its_function():
    source = (ROOT / "src" / "regionmarker" / "benchmark" / "tables" / "paper_tables.py").read_text(encoding="utf-8")
    named = re.findall(
        r"^\|[^|]+\| `(\w+)` \|", PAGE.partition("## Tables")[2].partition("## Figures")[0], re.MULTILINE
    )
    assert len(named) == 9
    assert [name for name in named if f"def {name}(" not in source] == []


def test_there_is_something_to_check():
    assert len(FILES) > 15
    assert len(COMMANDS) > 8
