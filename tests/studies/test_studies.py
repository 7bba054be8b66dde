"""Every study runs, names a page that is there, and is named by it."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = re.compile(r'^PAGE = "(.*)"$', re.MULTILINE)
SOURCES = {
    ".".join(part for part in path.relative_to(ROOT).with_suffix("").parts if part != "__main__"): path
    for path in sorted((ROOT / "studies").rglob("*.py"))
}
PAGES = {name: found[1] for name, path in SOURCES.items() if (found := PAGE.search(path.read_text()))}


@pytest.fixture(scope="session")
def small_data(tmp_path_factory):
    """The folder of corpora that --smoke makes, once for all studies."""
    folder = tmp_path_factory.mktemp("data")
    code = f"from pathlib import Path; from studies._study import small_data; small_data(Path({str(folder)!r}))"
    subprocess.run([sys.executable, "-c", code], env=environment(), check=True)
    return folder


def environment():
    return {
        **{name: value for name, value in os.environ.items() if name != "REGIONMARKER_DATA"},
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src")]),
        "OPENBLAS_NUM_THREADS": "1",
        "OMP_NUM_THREADS": "1",
    }


def test_every_program_is_a_study():
    programs = {name for name, path in SOURCES.items() if "__name__ == " in path.read_text()}
    assert programs - {"studies.gateway.stub"} == PAGES.keys()  # the null upstream, which studies start


@pytest.mark.parametrize("study", PAGES)
def test_it_runs(study, small_data, tmp_path):
    reads_data = "data=True" in SOURCES[study].read_text()
    command = [sys.executable, "-m", study, "--smoke", *(["--data-dir", str(small_data)] if reads_data else [])]
    done = subprocess.run(command, env=environment(), cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


@pytest.mark.parametrize(("study", "page"), PAGES.items())
def test_its_page_names_it(study, page):
    assert study in (ROOT / page).read_text(encoding="utf-8")


def test_docs_name_studies_that_are_there():
    pages = [*ROOT.glob("docs/**/*.md"), ROOT / "CONTRIBUTING.md", ROOT / "README.md", ROOT / "Makefile"]
    named = {name for page in pages for name in re.findall(r"-m (studies\.[a-z_.]*[a-z])", page.read_text("utf-8"))}
    assert named
    assert named - PAGES.keys() == set()
