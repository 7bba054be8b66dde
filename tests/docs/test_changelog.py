"""What a plug-in must rename: every new name can be imported."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path

import pytest

PAGE = (Path(__file__).parents[2] / "CHANGELOG.md").read_text(encoding="utf-8")
TABLE = PAGE.partition("### What a plug-in must rename")[2].partition("\n## ")[0]
ROWS = [row.strip("| ").split(" | ") for row in TABLE.splitlines() if row.startswith("| ")]
NEW = sorted({name for _, new in ROWS for name in re.findall(r"`(regionmarker\.[\w.]+)`", new)})


@pytest.mark.parametrize("name", NEW)
def test_the_new_name_is_there(name):
    try:
        import_module(name)
    except ModuleNotFoundError:
        module, _, attribute = name.rpartition(".")
        assert hasattr(import_module(module), attribute)


def test_there_are_names():
    assert len(NEW) > 25
