"""Run the notebooks of examples/ and keep what they show; with --check compare it with what is kept, and write nothing.

    python -m studies.notebooks [--check]

Kept outputs are stale where a cell shows another kind of thing than it did: text, a table, a picture. The numbers in
them differ with every key.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from studies._study import Command

PAGE = "CONTRIBUTING.md"
FOLDER = Path(__file__).parents[1] / "examples"
SECONDS = 300  # for one cell


def executed(notebook: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Run a notebook in a folder, and return it with what its cells showed."""
    import nbformat
    from nbclient import NotebookClient

    found = nbformat.reads(json.dumps(notebook), as_version=4)
    resources = {"metadata": {"path": str(folder)}}
    # Lines that are printed one by one are one output, however they arrive.
    NotebookClient(found, timeout=SECONDS, record_timing=False, coalesce_streams=True, resources=resources).execute()
    plain: dict[str, Any] = json.loads(nbformat.writes(found))
    return {**notebook, "cells": [_tidy(cell) for cell in plain["cells"]]}


def _tidy(cell: dict[str, Any]) -> dict[str, Any]:
    """Return a cell as files have it: text in lines, and no data that tells of the moment alone."""
    return {**cell, "metadata": {}} | (
        {"outputs": [_kept(out) for out in cell["outputs"]]} if "outputs" in cell else {}
    )


def _kept(output: dict[str, Any]) -> dict[str, Any]:
    """Return an output as it is kept; where it is a table, without the long line that says the same."""
    if "data" not in output:
        return output
    data = {kind: found for kind, found in output["data"].items() if kind != "text/plain" or len(output["data"]) == 1}
    return {**output, "metadata": {}, "data": data}


def looks(notebook: dict[str, Any]) -> list[tuple[str, list[list[str]]]]:
    """Return of each code cell its source and the kinds of its outputs."""
    return [
        ("".join(cell["source"]), [_kinds(output) for output in cell["outputs"]])
        for cell in notebook["cells"]
        if cell["cell_type"] == "code"
    ]


def _kinds(output: dict[str, Any]) -> list[str]:
    kind = output["output_type"]
    return (
        [kind, output["ename"]] if kind == "error" else [kind, output.get("name", ""), *sorted(output.get("data", {}))]
    )


def stale(kept: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """Return what is wrong with kept outputs, a sentence each."""
    found = []
    for (source, before), (_, after) in zip(looks(kept), looks(now), strict=True):
        if before != after:
            found.append(f"the cell {source.splitlines()[-1]!r} showed {before} and shows {after}")
    return found


def main() -> int:
    command = Command(__doc__, PAGE)
    command.add_argument("--check", action="store_true", help="write nothing; end with 1 where outputs are stale")
    given = command.read()
    wrong = 0
    for path in sorted(FOLDER.glob("*.ipynb")):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        if given.smoke:
            print(f"{path.name}: {len(looks(notebook))} cells of code")
            continue
        with tempfile.TemporaryDirectory() as folder:
            now = executed(notebook, Path(folder))
        found = stale(notebook, now)
        wrong += bool(found)
        if not given.check:
            path.write_text(json.dumps(now, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        print(f"{path.name}: {'; '.join(found) or 'shows what it showed'}")
    return 1 if wrong and given.check else 0


if __name__ == "__main__":
    sys.exit(main())
