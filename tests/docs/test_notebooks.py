"""The notebooks of examples/ run, and what they keep is what they show."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from studies.notebooks import looks, stale

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "examples").glob("*.ipynb"))
LINK = re.compile(r"\]\(([^)\s]+)\)")


def read(path: Path) -> dict:
    return json.loads(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_what_is_kept_is_whole(path):
    """Every cell ran, in order; none failed; there is a table and a picture, and no word of the machine."""
    notebook = read(path)
    kinds = [kind for _, outputs in looks(notebook) for output in outputs for kind in output]
    assert "error" not in kinds
    assert {"image/png", "text/html", "stream"} <= set(kinds)
    code = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert [cell["execution_count"] for cell in code] == list(range(1, len(code) + 1))
    text = path.read_text(encoding="utf-8")
    assert [place for place in ("work", "root", "tmp", "home") if f"/{place}/" in text] == []


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_its_links_resolve(path):
    words = "".join("".join(cell["source"]) for cell in read(path)["cells"] if cell["cell_type"] == "markdown")
    links = [link for link in LINK.findall(words) if not link.startswith("http")]
    assert links
    assert [link for link in links if not (path.parent / link.partition("#")[0]).exists()] == []


def test_the_notebooks_run_and_show_what_they_showed():
    """In a process of its own, as a reader's machine would."""
    pytest.importorskip("ipykernel", reason="ipykernel is not installed: notebooks run in it")
    pytest.importorskip("nbclient", reason="nbclient is not installed: it runs notebooks")
    paths = os.pathsep.join([str(ROOT), str(ROOT / "src")])
    environment = {**os.environ, "PYTHONPATH": paths, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "studies.notebooks", "--check"]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("shows what it showed") == len(NOTEBOOKS)


def test_stale_outputs_are_found():
    def notebook(*outputs: dict) -> dict:
        return {"cells": [{"cell_type": "code", "source": ["a\n", "b"], "outputs": list(outputs)}]}

    said = {"output_type": "stream", "name": "stdout", "text": ["1\n"]}
    shown = {"output_type": "execute_result", "data": {"text/html": ["<table>"]}}
    failed = {"output_type": "error", "ename": "InputError", "evalue": "", "traceback": []}
    assert stale(notebook(said), notebook({**said, "text": ["2\n"]})) == []
    assert stale(notebook(said), notebook(shown)) == [
        "the cell 'b' showed [['stream', 'stdout']] and shows [['execute_result', '', 'text/html']]"
    ]
    assert len(stale(notebook(said), notebook())) == 1
    assert "InputError" in stale(notebook(said), notebook(failed))[0]
