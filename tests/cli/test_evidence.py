"""``verify --out`` and ``regionmarker evidence``."""

from __future__ import annotations

import json

from tests.support.answers import BUDGET

QUICK = ("--budget", BUDGET, "--no-power")


def test_evidence_is_written_checked_and_not_overwritten_by_accident(run, key, answered):
    options = ("verify", "--key", key, "--suspect", "file:thief.parquet", *QUICK, "--out", "evidence")
    run(*options)
    assert json.loads(run("evidence", "check", "evidence", "--json").stdout)["ok"]
    assert "exists already" in run(*options, code=2).stderr
    run(*options, "--force")
    report = answered / "evidence" / "report.html"
    report.write_text(report.read_text().replace("once in", "twice in"))
    assert "report.html" in run("evidence", "check", "evidence", code=2).stderr
