"""What a release is made of: a lock with hashes and public addresses, builds that repeat, no stored secret."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PUBLIC = {"https://pypi.org", "https://files.pythonhosted.org"}


@pytest.fixture(scope="module")
def lock() -> dict:
    return tomllib.loads((ROOT / "uv.lock").read_text(encoding="utf-8"))


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def test_the_lock_names_public_addresses_only():
    assert set(re.findall(r"\w+://[^/\"]+", (ROOT / "uv.lock").read_text(encoding="utf-8"))) == PUBLIC


def test_every_file_of_the_lock_has_a_hash(lock):
    for package in lock["package"]:
        if package["source"] == {"editable": "."}:
            continue
        files = [*package.get("wheels", []), *([package["sdist"]] if "sdist" in package else [])]
        assert files, package["name"]
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", file["hash"]) for file in files), package["name"]


def test_the_lock_holds_all_that_pyproject_asks_for(lock):
    """``make lock`` writes it again; ``make lock-check`` compares versions, too."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    asked = [*project["dependencies"], *(one for extra in project["optional-dependencies"].values() for one in extra)]
    names = {normal(re.match(r"[\w.-]+", one)[0]) for one in asked} - {"regionmarker"}
    assert names - {package["name"] for package in lock["package"]} == set()
    (own,) = (package for package in lock["package"] if package["name"] == "regionmarker")
    known = {(one["name"], one.get("specifier")) for one in own["metadata"]["requires-dist"]}
    for one in asked:
        name, _, wanted = re.fullmatch(r"([\w.-]+)(\[[\w,-]+\])?\s*([^;]*)(;.*)?", one).groups()[:3]
        if normal(name) != "regionmarker":
            assert (normal(name), wanted.strip() or None) in known, f"{one}: run make lock"


def test_the_release_trusts_no_stored_secret():
    yaml = pytest.importorskip("yaml", reason="PyYAML is not installed")
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    workflow = yaml.safe_load(text)
    assert workflow["permissions"] == {}
    assert "secrets." not in text
    assert not re.search(r"(?i)password|api[-_]token", text.partition("name: release")[2])
    jobs = workflow["jobs"]
    assert {name for name, job in jobs.items() if "id-token" in job["permissions"]} == {"provenance", "publish"}
    assert jobs["publish"]["environment"] == "pypi"
    assert jobs["publish"]["needs"] == "provenance"
    assert jobs["provenance"]["needs"] == "build"
    assert not any("run" in step for step in jobs["publish"]["steps"])  # nothing of ours runs with that right
    used = set(re.findall(r"\bmake ([\w-]+)", text))
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert {"lock-check", "audit", "release"} == used
    assert used <= targets


def test_two_builds_of_one_commit_are_equal(tmp_path):
    """In two folders, at two times; and a change in the tree that is not committed is not built."""
    pytest.importorskip("build", reason="build is not installed")
    pytest.importorskip("hatchling", reason="hatchling is not installed")
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("no git checkout")
    done = subprocess.run(
        [sys.executable, str(ROOT / "deploy" / "build_twice.py"), "--no-isolation", "--out", str(tmp_path / "dist")],
        capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": ""},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    names = sorted(path.name for path in (tmp_path / "dist").iterdir())
    assert [re.sub(r"-\d[^-]*?(\.tar|-py3)", r"\1", name) for name in names] == [
        "regionmarker-none-any.whl".replace("regionmarker", "regionmarker-py3"), "regionmarker.tar.gz",
    ]  # fmt: skip
    assert len(done.stdout.splitlines()) == 2
