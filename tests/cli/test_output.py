"""Tables for people, JSON for programs."""

from __future__ import annotations

import json

import pytest

from regionmarker.cli import main
from regionmarker.cli.output import print_result, print_table, stderr


def test_facts_are_a_table_or_one_object(capsys: pytest.CaptureFixture[str]) -> None:
    facts = {"key_file": "keys[old]/k.rmkey", "tenants": ["acme", "zenith"], "salt": None, "names": []}
    print_result(facts, as_json=False, title="A [new] key")
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["A", "[new]", "key"],
        ["key", "file", "keys[old]/k.rmkey"],
        ["tenants", "acme,", "zenith"],
        ["salt", "none"],
        ["names", "none"],
    ]
    print_result(facts, as_json=True)
    assert json.loads(capsys.readouterr().out) == facts


def test_tables_have_headings_and_print_cells_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    print_table(("tenant", "p"), [("[bold]acme[/bold]", "0.5"), ("zenith", "1")], title="Tenants", right=True)
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == "Tenants"
    assert shown[1].split() == ["tenant", "p"]
    assert shown[2].split() == ["[bold]acme[/bold]", "0.5"]
    assert shown[3].startswith(" ")
    print_table(("part",), [])
    assert capsys.readouterr().out.strip() == "part"


HOSTILE = "\x1b]0;owned\x07\x1b[2Jacme\x9b31m\u202e"


def test_nothing_that_a_stranger_wrote_commands_the_terminal(capsys, tmp_path):
    """In tables, titles, lines on stderr and errors; JSON escapes it by itself."""
    print_table(("name",), [(HOSTILE,)], title=HOSTILE)
    print_result({"suspect": HOSTILE}, as_json=False, title=HOSTILE)
    print_result({"suspect": HOSTILE}, as_json=True)
    stderr.print(f"refused: {HOSTILE}")
    with pytest.raises(SystemExit):
        main(["key", "info", str(tmp_path / HOSTILE)])
    shown = "".join(capsys.readouterr())
    assert shown.count("acme") == 7
    assert not set(shown) & set("\x1b\x07\x9b\u202e")


def test_a_suspects_own_words_are_shown_and_not_obeyed(capsys):
    with pytest.raises(SystemExit):
        main(["verify", "--key", "nowhere.rmkey", f"nobody:{HOSTILE}"])
    assert not set("".join(capsys.readouterr())) & set("\x1b\x07\x9b\u202e")
