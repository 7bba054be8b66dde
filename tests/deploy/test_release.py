"""The parts of ``make release`` that need no network: what it refuses, what it believes, what it writes."""

from __future__ import annotations

import doctest
import importlib.util
import json
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def release():
    spec = importlib.util.spec_from_file_location("release", ROOT / "deploy" / "release.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules["release"] = module
    spec.loader.exec_module(module)
    yield module
    del sys.modules["release"]


def commit_of(version, *, unreleased=""):
    """A commit that is a release of a version, as a reader of its files."""
    files = {
        "CHANGELOG.md": f"# Changelog\n\n## [Unreleased]\n{unreleased}\n## [{version}]\n\n- It is good.\n",
        "deploy/kubernetes.yaml": f"image: regionmarker-gateway:{version}",
        "docs/how-to/deploy.md": f"docker build -t regionmarker-gateway:{version} .",
    }
    return files.__getitem__


def bill_of(**about):
    hashed = {"name": "numpy", "externalReferences": [{"hashes": [{"alg": "SHA-256", "content": "0"}]}]}
    return {"metadata": {"component": {"name": "regionmarker", **about}}, "components": [hashed]}


def test_its_examples_are_true(release):
    found = doctest.testmod(release)
    assert (found.failed, found.attempted) == (0, 3)


def test_a_release_names_its_version_and_leaves_nothing_behind(release):
    assert release.not_ready("1.2.3", commit_of("1.2.3"), "") == []


@pytest.mark.parametrize(
    ("version", "unreleased", "uncommitted", "said"),
    [
        ("1.2.4", "", "", "CHANGELOG.md does not name ## [1.2.4]"),
        ("1.2.4", "", "", "deploy/kubernetes.yaml does not name regionmarker-gateway:1.2.4"),
        ("1.2.3", "\n- Something new.\n", "", "CHANGELOG.md has lines under Unreleased"),
        ("1.2.3", "", " M README.md\n", "not committed, so not built: README.md"),
    ],
)
def test_what_is_no_release_yet_is_told(release, version, unreleased, uncommitted, said):
    found = release.not_ready(version, commit_of("1.2.3", unreleased=unreleased), uncommitted)
    assert any(line.startswith(said) for line in found), found


def test_the_files_that_name_the_version_are_all(release):
    """A release is one commit: what names the version beside these files would be forgotten."""
    version = release.version_of((ROOT / "src" / "regionmarker" / "_version.py").read_text())
    image = re.compile(r"regionmarker-gateway:[\w.]+")
    deployed = [path for path in (ROOT / "deploy").iterdir() if path.is_file()]
    for path in [*(ROOT / "docs").rglob("*.md"), *deployed, ROOT / "README.md"]:
        for name in image.findall(path.read_text(encoding="utf-8")):
            assert name == f"regionmarker-gateway:{version}", path
            assert str(path.relative_to(ROOT)) in release.NAMES_VERSION


def test_the_readmes_promises_are_kept_or_told(release):
    source = release.python_block(f"Metadata-Version: 2.4\nName: regionmarker\n\n{(ROOT / 'README.md').read_text()}")
    assert source.startswith("import regionmarker as rm")
    assert len(release.promised(source)) == 3
    trace = "Trace(tenant='acme', p_value=1e-17, holm=3e-17, total=9.1, accused=True, label='acme')"
    kept = f"infringement\n{trace}\nno evidence\n"
    assert release.broken_promises(source, kept) == []
    for broken in (kept.replace("infringement", "no evidence"), kept.replace("True", "False"), "", kept + "more\n"):
        assert release.broken_promises(source, broken)
    assert release.broken_promises("x = 1", "")  # lines that promise nothing


def test_a_bill_of_materials_is_looked_at(release, tmp_path):
    path = tmp_path / "sbom.cdx.json"
    path.write_text(json.dumps(bill_of()))
    assert json.loads(release.checked_bill(path, "1.2.3"))["metadata"]["component"]["version"] == "1.2.3"
    bare = bill_of()
    bare["components"][0]["externalReferences"] = []
    for wrong in (bill_of(name="other"), bill_of(version="9"), bare, {**bill_of(), "components": []}, "no bill"):
        path.write_text(json.dumps(wrong) if wrong != "no bill" else wrong)
        with pytest.raises(release.ReleaseError, match=r"make sbom|hashes"):
            release.checked_bill(path, "1.2.3")
    with pytest.raises(release.ReleaseError, match="run make sbom"):
        release.checked_bill(tmp_path / "missing.json", "1.2.3")


def test_the_sums_are_those_that_a_stranger_checks(release, tmp_path):
    (tmp_path / "b.whl").write_bytes(b"wheel")
    (tmp_path / "a.tar.gz").write_bytes(b"source")
    said = release.sums(tmp_path)
    assert [line.split()[1] for line in said.splitlines()] == ["a.tar.gz", "b.whl"]
    (tmp_path / release.SUMS).write_text(said)
    assert release.sums(tmp_path) == said  # without the file of sums itself
    subprocess.run(["sha256sum", "--check", "--strict", release.SUMS], cwd=tmp_path, check=True, capture_output=True)


def test_a_wheel_says_what_it_is(release, tmp_path):
    with zipfile.ZipFile(tmp_path / "x-1-py3-none-any.whl", "w") as wheel:
        wheel.writestr("x-1.dist-info/METADATA", "Name: x\nVersion: 1\n\nA page without code.")
    said = release.metadata_of(tmp_path / "x-1-py3-none-any.whl")
    assert "Version: 1" in said
    with pytest.raises(release.ReleaseError, match="no Python block"):
        release.python_block(said)


def test_a_program_that_fails_is_quoted_and_sees_nothing_of_the_checkout(release, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(ROOT / "src"))
    code = "import os, sys; print(os.environ.get('PYTHONPATH')); sys.exit('the reason')"
    with pytest.raises(release.ReleaseError, match=r"ended with 1:\nNone\nthe reason"):
        release.run(sys.executable, "-c", code)
    assert release.run(sys.executable, "-c", code, may_fail=True).startswith("None")


def test_it_stops_with_a_sentence_where_the_commit_is_no_release(release, monkeypatch, capsys, tmp_path):
    monkeypatch.setattr(sys, "argv", ["release.py", "--out", str(tmp_path / "dist")])
    monkeypatch.setattr(release, "not_ready", lambda *_: ["CHANGELOG.md does not name ## [9.9.9]"])
    assert release.main() == 1
    said = capsys.readouterr()
    assert said.err == "make release: CHANGELOG.md does not name ## [9.9.9] (make release REHEARSE=1 goes on)\n"
    assert "Traceback" not in said.out
    assert not (tmp_path / "dist").exists()


def test_the_makefile_and_the_workflow_call_it():
    makefile = (ROOT / "Makefile").read_text()
    assert "deploy/release.py" in makefile.partition("\nrelease:")[2].partition("\n\n")[0]
    workflow = (ROOT / ".github" / "workflows" / "release.yml").read_text()
    assert "run: make release\n" in workflow
