"""The gateway's reference names every route, every error code and every metric that the code has."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "reference" / "gateway.md").read_text(encoding="utf-8")
CODE = {path: ast.parse(path.read_text(encoding="utf-8")) for path in (ROOT / "src/regionmarker/gateway").rglob("*.py")}


def calls(tree: ast.AST) -> Iterator[tuple[str, list[object], dict[str, object]]]:
    """Every call with its constants: the name of what is called, positional arguments, keywords."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            given = [getattr(argument, "value", None) for argument in node.args]
            yield name, given, {word.arg: getattr(word.value, "value", None) for word in node.keywords if word.arg}


def metrics() -> set[str]:
    found = set()
    for tree in CODE.values():
        for name, given, _ in calls(tree):
            if name in ("Counter", "Gauge", "Histogram") and given and str(given[0]).startswith("regionmarker_"):
                found.add(f"{given[0]}_total" if name == "Counter" else str(given[0]))
    return found


def routes() -> set[str]:
    paths = {str(given[0]) for tree in CODE.values() for name, given, _ in calls(tree) if name == "Route" and given}
    return {path.partition("/{")[0] for path in paths if path.startswith("/")}


def codes() -> set[str]:
    """What stands after a status, and what is given as ``code=``."""
    found = set()
    for tree in CODE.values():
        for _, given, named in calls(tree):
            if len(given) > 1 and isinstance(given[0], int) and 400 <= given[0] < 600:
                found.add(given[1])
            found.add(named.get("code"))
    return {code for code in found if isinstance(code, str)}


@pytest.mark.parametrize(
    ("found", "least"),
    [(metrics(), 18), (routes(), 10), (codes(), 20)],
    ids=["metrics", "routes", "codes"],
)
def test_everything_is_in_the_reference(found, least):
    assert len(found) >= least  # otherwise the search above has gone blind
    assert sorted(name for name in found if f"`{name}`" not in PAGE and f" {name}`" not in PAGE) == []
