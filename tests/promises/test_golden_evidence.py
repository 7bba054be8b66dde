"""Evidence written by every released version checks for ever, and its key and answers give the same verdicts."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest

from regionmarker import Answers, RegionMarker, trace, verify
from regionmarker.evidence import check_evidence

GOLDEN = Path(__file__).parents[1] / "golden"
VERSIONS = ["v1"]
NUMBERS = [
    "commitment",
    "total",
    "null distribution",
    "p-value",
    "axes",
    "looks",
    "ledger",
    "power",
    "outcome",
    "dates",
]
SUMMARY = ["signature", "files", "time stamp", "fields", *NUMBERS, "the paper's totals"]
EXPERT = [*SUMMARY, "answers", "transcript", "scores", "the paper's statistics"]
COURT = [*EXPERT, "opened key", "draw", "from scratch", "traces"]
BUNDLES = {"copy-summary": SUMMARY, "copy-expert": EXPERT, "copy-court": COURT, "innocent-summary": SUMMARY}


@pytest.fixture(params=VERSIONS)
def folder(request, tmp_path) -> Path:
    """A copy in which only its owner can read the key: version control does not keep that."""
    found = shutil.copytree(GOLDEN / f"{request.param}-evidence", tmp_path / "golden")
    for path in found.iterdir():
        path.chmod(0o600)
    with zipfile.ZipFile(found / "copy-expert.zip") as bundle:
        (found / "copy-answers.parquet").write_bytes(bundle.read("answers.parquet"))
    return found


@pytest.fixture
def facts(folder) -> dict:
    return json.loads((folder / "facts.json").read_text())


def command(*arguments: object) -> dict:
    """Run the command line in a process of its own, and return the JSON that it prints."""
    words = [sys.executable, "-m", "regionmarker", *map(str, arguments), "--json"]
    return json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)


@pytest.mark.parametrize("name", BUNDLES)
def test_an_old_bundle_still_checks(folder, facts, name):
    report = check_evidence(folder / f"{name}.zip", signer=(folder / "signer.pem").read_bytes())
    suspect, level = name.split("-")
    assert report.failure is None
    said = [check.name for check in report.checks if check.name != "tenants"]
    assert said == [*BUNDLES[name], "draw of the salt", "cautions", "report"]
    assert report.level == level
    assert report.outcome == facts["verdicts"][suspect]["outcome"]
    assert report.p_value == facts["verdicts"][suspect]["p_value"]


@pytest.mark.parametrize("name", BUNDLES)
def test_the_command_line_checks_an_old_bundle(folder, facts, name):
    found = command("evidence", "check", folder / f"{name}.zip", "--signer", folder / "signer.pem")
    told = facts["verdicts"][name.split("-")[0]]
    assert (found["ok"], found["outcome"], found["p_value"]) == (True, told["outcome"], told["p_value"])


@pytest.mark.parametrize("name", BUNDLES)
def test_an_old_bundle_with_another_verdict_does_not_check(folder, name):
    with zipfile.ZipFile(folder / f"{name}.zip") as bundle:
        bundle.extractall(folder / "open")
    verdict = folder / "open" / "verdict.json"
    verdict.write_text(verdict.read_text().replace('"p_value": ', '"p_value": 1', 1))
    assert not check_evidence(folder / "open").ok


def test_an_old_key_marks_the_same_bytes(folder, facts):
    marker, vectors = RegionMarker.load(folder / "provider.rmkey"), np.load(folder / "marked.npz")
    assert marker.key_.id == facts["id"]
    assert marker.transform(vectors["inputs"]).tobytes() == vectors["served"].tobytes()
    assert marker.transform(vectors["inputs"], tenant="acme").tobytes() == vectors["acme"].tobytes()


@pytest.mark.parametrize("suspect", ["copy", "innocent"])
def test_an_old_key_gives_the_same_verdict_on_the_same_answers(folder, facts, suspect):
    marker, answers = RegionMarker.load(folder / "provider.rmkey"), folder / f"{suspect}-answers.parquet"
    found = verify(marker, Answers.from_file(answers), power=False)
    told = facts["verdicts"][suspect]
    assert {name: getattr(found, name) for name in told} == told


@pytest.mark.parametrize("suspect", ["copy", "innocent"])
def test_the_command_line_gives_the_same_verdict_on_the_same_answers(folder, facts, suspect):
    key, answers = folder / "provider.rmkey", folder / f"{suspect}-answers.parquet"
    budget = len(Answers.from_file(answers))
    said = command("verify", "--key", key, "--suspect", f"file:{answers}", "--budget", budget, "--no-power")
    told = {**facts["verdicts"][suspect], "judged_at": 0.0005}  # the first look that a ledger counts
    assert {name: said[name] for name in told} == told


def test_an_old_key_traces_the_same_tenant(folder, facts):
    marker = RegionMarker.load(folder / "provider.rmkey")
    answers = Answers.from_file(folder / "copy-answers.parquet")
    assert {one.tenant: one.p_value for one in trace(marker, answers, list(facts["traces"]))} == facts["traces"]
