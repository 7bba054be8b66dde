"""Tests stand where their module stands: a newcomer finds them without a search, and no module is without."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
SOURCE = TESTS.parent / "src" / "regionmarker"
FREE = ("promises", "contracts", "docs", "support", "deploy", "golden", "studies", "fuzz")
"""Folders whose files are not named after a module."""

EXEMPT = {
    "_version": "one constant",
    "marking.simd": "compiled into numba_engine, whose tests compare it with the formula bit for bit",
}
"""Modules without a test of their own folder, each with its reason."""


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


def imported_by(test: Path) -> tuple[set[str], set[str]]:
    """The modules that a file imports, and the names that it takes from packages, inside functions too."""
    modules, names = set(), set()
    for node in ast.walk(ast.parse(test.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "regionmarker":
            source = _below(node.module or "")
            modules |= {source, *(f"{source}.{alias.name}".strip(".") for alias in node.names)}
            if MODULES.get(source, SOURCE).name == "__init__.py":
                names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Import):
            modules |= {_below(alias.name) for alias in node.names}
    return modules, names


def _below(name: str) -> str:
    return name.removeprefix("regionmarker").removeprefix(".")


def own_tests(module: str) -> list[Path]:
    """The test files of a module's own folder: beside it, and beside its package under the package's name."""
    *package, _ = module.split(".")
    here = list(TESTS.joinpath(*package).glob("test_*.py"))
    if MODULES[module].name == "__init__.py":
        here += TESTS.joinpath(*module.split(".")).glob("test_*.py")
    above = TESTS.joinpath(*package[:-1]).glob("test_*.py")
    return here + [test for test in above if package and named_after(test) == ".".join(package)]


def code_of(path: Path) -> list[ast.stmt]:
    """The statements of a file but its docstring and imports: an ``__init__`` may have none."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    return [node for node in body if not isinstance(node, ast.Expr | ast.Import | ast.ImportFrom)]


def is_tested(module: str) -> bool:
    """Whether a test of its own folder bears its name, imports it, or takes a name of it from a package's index."""
    defined = {getattr(node, "name", "") for node in code_of(MODULES[module])} - {""}
    for test in own_tests(module):
        modules, names = imported_by(test)
        if named_after(test) == module or module in modules or defined & names:
            return True
    return False


UNTESTED = [name for name, path in MODULES.items() if name and code_of(path) and not is_tested(name)]


def test_every_test_file_names_a_module():
    files = [path for path in TESTS.rglob("test_*.py") if path.relative_to(TESTS).parts[0] not in FREE]
    lost = [str(path.relative_to(TESTS)) for path in files if path != Path(__file__) and not named_after(path)]
    assert sorted(lost) == []


def test_every_module_has_a_test_in_its_own_folder():
    assert sorted(set(UNTESTED) - EXEMPT.keys()) == []


def test_nothing_is_exempt_without_need():
    assert sorted(EXEMPT.keys() - set(UNTESTED)) == []


@pytest.mark.parametrize(
    ("name", "module"),
    [("test_vectors.py", "vectors"), ("test_vectors_x.py", "vectors"), ("test_x.py", ""), ("keys/test_vectors.py", "")],
)
def test_the_rule_can_fail(name, module):
    assert named_after(TESTS / name) == module
