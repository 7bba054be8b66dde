"""``regionmarker doctor``."""

from __future__ import annotations

import json
import os


def test_doctor_names_what_is_missing_and_how_to_get_it(run):
    facts = json.loads(run("doctor", "--json").stdout)
    parts = {part["part"]: part for part in facts["parts"]}
    assert parts["numba"]["to_get_it"] == 'pip install "regionmarker[fast]"'
    assert parts["numpy"]["version"]
    assert "marking engine" in run("doctor").stdout


def test_install_lines_are_whole_and_test_tools_stand_apart(run):
    shown = run("doctor", env={**os.environ, "COLUMNS": "80"}).stdout
    packages, programs = shown.split("Programs, which only some tests and the benchmark want")
    assert "numpy" in packages
    assert "chromium" not in packages
    assert "chromium" in programs
    known = {part["to_get_it"] for part in json.loads(run("doctor", "--json").stdout)["parts"]}
    lines = [line.strip() for line in shown.splitlines() if "install" in line and line.startswith("  ")]
    assert set(lines) <= known
    narrow = run("doctor", env={**os.environ, "COLUMNS": "40"}).stdout
    assert [line.strip() for line in narrow.splitlines() if line.strip() in known] == lines
