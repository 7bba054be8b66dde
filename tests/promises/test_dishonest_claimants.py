"""A claimant who forges evidence and signs it again: every lie is refused or named, and two checkers agree on it."""

from __future__ import annotations

import ast
import subprocess
import sys
import zipfile
from collections import Counter
from pathlib import Path

import pytest

from regionmarker.evidence import Signer, check_evidence, save_evidence
from regionmarker.evidence.bundle import read_bundle
from regionmarker.verification.tracing import trace
from studies._forger import CHECKER, checker, contradictions, edits, is_accepted_lie, sample, seal, verdict_on_lie

GOLDEN = Path(__file__).parents[1] / "golden" / "v1-evidence"
LEVELS = ("summary", "expert", "court")
LIES = {"summary": 40, "expert": 30, "court": 25}
"""Edits of one bundle; ``python -m studies.claimant`` makes all of them."""


@pytest.fixture(scope="module")
def bundles(saved, graded_bundles):
    return {**{("decoy-1", level): saved[level] for level in LEVELS},
            **{("decoy-2", level): graded_bundles[level] for level in LEVELS}}  # fmt: skip


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("statistic", ["decoy-1", "decoy-2"])
def test_no_lie_is_accepted_and_no_checker_contradicts(bundles, statistic, level, tmp_path):
    bundle, forger = read_bundle(bundles[statistic, level]), Signer.generate()
    told: Counter[str] = Counter()
    wrong = []
    for edit in sample(list(edits(bundle)), LIES[level], seed=17):
        report = verdict_on_lie(bundle, edit, forger, tmp_path / "lie")
        told["refused" if not report.ok else "the claimant's word"] += 1
        if is_accepted_lie(report, edit):
            wrong.append(f"accepted: {edit}")
        wrong += [f"{name} contradicted: {edit}" for name in contradictions(tmp_path / "lie", report)]
    assert wrong == []
    assert told["refused"] > 0
    assert told["the claimant's word"] > 0 or level == "court"  # where little is left to be believed


def statuses(place, **known) -> dict[str, str]:
    return {name: status for name, status, _ in checker().check(place, **known)}


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("statistic", ["decoy-1", "decoy-2"])
def test_the_other_checker_agrees_on_true_bundles(bundles, statistic, level):
    place = bundles[statistic, level]
    report = check_evidence(place)
    assert report.failure is None
    assert contradictions(place, report) == []
    ours = {check.name: check.status for check in report.checks}
    theirs = statuses(place)
    assert {name: ours[name] for name in theirs} == theirs
    recomputed = {"signature", "files", "commitment", "total", "null distribution", "p-value", "looks", "outcome"}
    assert recomputed | ({"scores"} if level != "summary" else set()) <= set(theirs)


@pytest.mark.parametrize("name", ["copy-summary", "copy-expert", "copy-court", "innocent-summary"])
def test_the_other_checker_reads_bundles_of_the_first_version(name):
    place = GOLDEN / f"{name}.zip"
    assert contradictions(place, check_evidence(place)) == []
    assert "failed" not in statuses(place).values()


def test_the_other_checker_reads_looks_rings_and_tenants(verdict_on, answer_as, case_key, tmp_path):
    verdict = verdict_on(answer_as(), ledger=tmp_path / "ledger.jsonl")
    traces = trace(case_key, verdict.basis.answers, ["alice", "bob"])
    place = save_evidence(verdict, tmp_path / "bundle", level="expert", traces=traces)
    assert contradictions(place, check_evidence(place)) == []
    assert statuses(place)["tenants"] == "ok"


def test_both_refuse_a_conviction_by_withheld_answers(case_key, verdict_on, answer_as, tmp_path, monkeypatch):
    targets = case_key.provider_targets()
    others = [text for place, text in enumerate(case_key.pool.texts) if place not in targets]
    monkeypatch.setattr("regionmarker.verification.region_examination._check_enough", lambda questions, answers: None)
    for silent, holds in ((1, True), (6, False)):
        found = verdict_on(answer_as(silent=tuple(others[:silent])))
        place = save_evidence(found, tmp_path / f"{silent} silent")
        assert check_evidence(place).ok == holds
        assert (statuses(place)["p-value"] == "ok") == holds


def test_both_know_whom_and_what_to_expect(saved, signer):
    published = checker().Bundle(saved["summary"]).json("commitment.json")["commitment"]
    known = statuses(saved["summary"], signer=signer.public_pem, commitment=published)
    assert (known["signature"], known["commitment"]) == ("ok", "ok")
    assert statuses(saved["summary"], signer=Signer.generate().public_pem)["signature"] == "failed"
    assert statuses(saved["summary"], commitment="00" * 32)["commitment"] == "failed"
    assert statuses(saved["summary"])["signature"] == "unexpected"


def run(*arguments) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(CHECKER), *map(str, arguments)], capture_output=True, text=True, check=False
    )


def test_the_other_checker_runs_by_itself(saved, own_copy, tmp_path):
    good = run(saved["court"])
    assert (good.returncode, good.stderr) == (0, "")
    assert "Not looked at here" in good.stdout
    assert good.stdout.rstrip().endswith("ALL THAT WAS RECOMPUTED HOLDS")
    packed = run(f"{saved['court']}.zip")
    assert packed.stdout == good.stdout
    bad = own_copy("summary")
    (bad / "verdict.json").write_bytes((bad / "verdict.json").read_bytes() + b" ")
    found = run(bad)
    assert found.returncode == 2
    assert found.stdout.rstrip().endswith("REFUSED")
    for nothing in (tmp_path / "nowhere", tmp_path):
        lost = run(nothing)
        assert lost.returncode != 0
        assert "Traceback" not in lost.stderr


def test_the_other_checker_says_in_a_sentence_what_it_cannot_read(own_copy, signer, tmp_path):
    for name, content in (("verdict.json", b"[" * 90_000), ("scores.json", b"\xff"), ("commitment.json", b"{}")):
        bundle = read_bundle(own_copy("summary"))
        files = {one: held for one, held in bundle.files.items() if one not in ("manifest.json", "manifest.sig")}
        seal({**files, name: content}, bundle, signer, tmp_path / "bundle")
        found = run(tmp_path / "bundle")
        assert found.returncode == 2, found.stderr
        assert "Traceback" not in found.stderr
        for path in (tmp_path / "bundle").iterdir():
            path.unlink()
        (tmp_path / "bundle").rmdir()


def test_the_other_checker_trusts_nothing_of_ours():
    tree = ast.parse(CHECKER.read_text(encoding="utf-8"))
    modules = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            modules.add((node.module or "").partition(".")[0])
    assert modules - sys.stdlib_module_names == {"numpy", "cryptography"}


def test_a_zip_that_is_none_is_refused_in_a_sentence(tmp_path):
    path = tmp_path / "bundle.zip"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("hello", "world")
    assert run(path).returncode == 2
    path.write_bytes(b"PK")
    found = run(path)
    assert found.returncode != 0
    assert "Traceback" not in found.stderr
