"""Tests stand where their module stands: a newcomer finds them without a search."""

from __future__ import annotations

from pathlib import Path

import pytest

TESTS = Path(__file__).parent
SOURCE = TESTS.parent / "src" / "regionmarker"
FREE = ("promises", "contracts", "docs", "support", "deploy", "golden", "studies")
"""Folders whose files are not named after a module."""


def module_of(path: Path) -> str:
    """The dotted name of a source file below ``regionmarker``; of a package's ``__init__`` the package's."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_of(path): path for path in sorted(SOURCE.rglob("*.py"))}


def named_after(test: Path) -> str:
    """The module of ``test_<module>.py`` or ``test_<module>_<aspect>.py`` in the module's own folder; "" for none."""
    folder = test.parent.relative_to(TESTS).parts
    stem = test.stem.removeprefix("test_")
    beside = {name.rpartition(".")[2]: name for name in MODULES if tuple(name.split(".")[:-1]) == folder}
    beside |= {folder[-1]: ".".join(folder)} if folder else {}  # the package itself: its __init__
    fitting = [name for name in beside if stem == name or stem.startswith(f"{name}_")]
    return beside[max(fitting, key=len)] if fitting else ""


def test_every_test_file_names_a_module():
    files = [path for path in TESTS.rglob("test_*.py") if path.relative_to(TESTS).parts[0] not in FREE]
    lost = [str(path.relative_to(TESTS)) for path in files if path != Path(__file__) and not named_after(path)]
    assert sorted(lost) == []


@pytest.mark.parametrize(
    ("name", "module"),
    [("test_vectors.py", "vectors"), ("test_vectors_x.py", "vectors"), ("test_x.py", ""), ("keys/test_vectors.py", "")],
)
def test_the_rule_can_fail(name, module):
    assert named_after(TESTS / name) == module
