"""Tables for people, JSON for programs."""

from __future__ import annotations

import json

import pytest

from regionmarker.cli.output import print_result, print_table


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
