"""``regionmarker doctor``: what is installed, what is missing, how to get it."""

from __future__ import annotations

import platform
import shutil
import sys
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from regionmarker._version import __version__
from regionmarker.cli.options import Json
from regionmarker.cli.output import print_result, print_table

# package -> (what for, how to get it)
PACKAGES = {
    "numpy": ("arrays", "core"),
    "cryptography": ("key files", "core"),
    "pyarrow": ("Parquet", "core"),
    "wordllama": ("the embedded encoder", "core"),
    "numba": ("marking at the speed of memory", "fast"),
    "sentence-transformers": ("encoders from the hub", "sentence-transformers"),
    "torch": ("encoders from the hub; on CPUs install torch==2.13.0 first", "sentence-transformers"),
    "matplotlib": ("pictures and reports", "report"),
    "jinja2": ("reports", "report"),
    "rfc3161-client": ("time stamps of evidence", "report"),
    "scikit-learn": ("auto-encoder reducer, benchmark", "benchmark"),
    "umap-learn": ("UMAP reducer", "benchmark"),
    "aiohttp": ("the gateway", "gateway"),
    "ray": ("bulk marking on a cluster", "ray"),
}
PROGRAMS = {
    "chromium": ("tests of the report", "apt-get install chromium"),
    "postgres": ("tests of the gateway's tenants", "apt-get install postgresql"),
    "apertium": ("offline paraphrases", "apt-get install apertium apertium-eng-spa apertium-eng-cat"),
    "node": ("tests with the npm client", "apt-get install nodejs"),
}


def doctor(json: Json = False) -> None:
    """Show what is installed, what is missing and how to get it.

    Example: regionmarker doctor
    """
    from regionmarker.marking.engine import engine

    rows = [_package_row(name, *about) for name, about in PACKAGES.items()]
    programs = [_program_row(name, *about) for name, about in PROGRAMS.items()]
    facts = {
        "regionmarker": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "marking_engine": engine().name,
    }
    if json:
        print_result({**facts, "parts": rows + programs}, as_json=True)
        return
    print_result(facts, as_json=False)
    _show(rows, "Packages")
    _show(programs, "Programs, which only some tests and the benchmark want")


def _show(rows: list[dict[str, Any]], title: str) -> None:
    """Print what is there, and below it, whole and each once, the lines that get what is not."""
    sys.stdout.write("\n")
    shown = [(row["part"], row["version"] or "missing", row["for"]) for row in rows]
    print_table(("part", "version", "for"), shown, title=title)
    missing = list(dict.fromkeys(row["to_get_it"] for row in rows if not row["version"]))
    if missing:
        sys.stdout.write("\nTo get what is missing:\n" + "".join(f"  {line}\n" for line in missing))


def _package_row(name: str, purpose: str, extra: str) -> dict[str, Any]:
    try:
        found: str | None = version(name)
    except PackageNotFoundError:
        found = None
    how = "pip install regionmarker" if extra == "core" else f'pip install "regionmarker[{extra}]"'
    return {"part": name, "version": found, "for": purpose, "to_get_it": how}


def _program_row(name: str, purpose: str, how: str) -> dict[str, Any]:
    return {"part": name, "version": "found" if shutil.which(name) else None, "for": purpose, "to_get_it": how}
