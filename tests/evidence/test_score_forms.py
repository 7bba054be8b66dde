"""The graded mark's evidence: every level checks, every lie about its scores is found."""

from __future__ import annotations

import json
import shutil
from hashlib import sha256

import numpy as np
import pytest

from regionmarker.evidence import check_evidence
from regionmarker.evidence.bundle import MANIFEST, manifest_of, read_bundle
from regionmarker.evidence.fields import written


@pytest.mark.parametrize("level", ["summary", "expert", "court"])
def test_true_bundles_pass(graded_bundles, level):
    report = check_evidence(graded_bundles[level])
    assert report.failure is None
    assert report.outcome == "infringement"
    page = (graded_bundles[level] / "report.html").read_text()
    assert "The key marks every embedding" in page
    assert "trigger region" not in page


def test_a_summary_shows_no_text_and_no_order(graded_bundles, graded_marker):
    bundle = read_bundle(graded_bundles["summary"])
    whole = b"\n".join(bundle.files.values())
    key = graded_marker.key_
    assert not [text for text in (*key.pool.texts, *key.reservoir.texts) if len(text) > 12 and text.encode() in whole]
    observed = bundle.json("scores.json")["observed"]
    assert observed == sorted(observed, reverse=True)


def rewritten(bundle, tmp_path, name, change):
    """Return a copy of a bundle in which one file was changed, and the manifest made to fit."""
    target = tmp_path / "lie"
    shutil.copytree(bundle, target)
    files = dict(read_bundle(target).files)
    lines = name.endswith(".jsonl")
    document = [json.loads(line) for line in files[name].splitlines()] if lines else json.loads(files[name])
    change(document)
    files[name] = written(name, document)
    (target / name).write_bytes(files[name])
    level = read_bundle(target).disclosure
    listed = {file: content for file, content in files.items() if file != MANIFEST}
    (target / MANIFEST).write_bytes(manifest_of(level, listed))
    assert sha256((target / name).read_bytes()).hexdigest() in (target / MANIFEST).read_text()
    return target


def _raise_observed(scores):
    scores["observed"][0] = scores["lists"][0][0] + 1


def _other_weights(scores):
    scores["weights"] = [weight * 1.1 for weight in scores["weights"]]


def _drop_decoys(scores):
    scores["lists"] = [row[:10] for row in scores["lists"]]


def _lower_lists(scores):
    scores["lists"] = [[min(score, 0) for score in row] for row in scores["lists"]]


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (_raise_observed, "an observed score is not among its carrier's scores"),
        (_other_weights, "the weights are not those of singles and pairs"),
        (_drop_decoys, "the lists are not 12 lists of"),
        (_lower_lists, "an observed score is not among"),
    ],
)
def test_lies_about_the_lists_are_found(graded_bundles, tmp_path, change, complaint):
    report = check_evidence(rewritten(graded_bundles["summary"], tmp_path, "scores.json", change))
    assert not report.ok
    assert complaint in str(report.failure)


def _smaller_p(verdict):
    verdict["p_value"] *= 0.5


def _other_floor(verdict):
    verdict["floor"] *= 10


@pytest.mark.parametrize(("change", "complaint"), [(_smaller_p, "but the lists give"), (_other_floor, "the floor is")])
def test_lies_about_p_are_found(graded_bundles, tmp_path, change, complaint):
    report = check_evidence(rewritten(graded_bundles["summary"], tmp_path, "verdict.json", change))
    assert complaint in str(report.failure)


def _other_target(rows):
    first = next(row for row in rows if row["target_of"] == 1)
    other = next(row for row in rows if row["list"] == 1 and row["target_of"] is None)
    first["target_of"], other["target_of"] = None, 1


def _other_list(rows):
    rows[0]["list"] = 2


def _moved_score(rows):
    rows[3]["z"] += 0.5


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        (_other_target, "the observed scores are not those of the targets"),
        (_other_list, "a candidate is not in the list of its place"),
        (_moved_score, "does not hold the scores whose digest"),
    ],
)
def test_lies_about_candidates_are_found(graded_bundles, tmp_path, change, complaint):
    report = check_evidence(rewritten(graded_bundles["expert"], tmp_path, "pool.jsonl", change))
    assert complaint in str(report.failure)


def _other_fifth(rows):
    rows[0]["fifths"][0] = (rows[0]["fifths"][0] + 1) % 5


def _even_weights(scores):
    """Weights that six singles and six pairs would have: right for some key, not for this one."""
    scores["weights"] = [1.0 / np.sqrt(12)] * 12


def test_a_court_finds_weights_of_another_mark(graded_bundles, tmp_path):
    report = check_evidence(rewritten(graded_bundles["court"], tmp_path, "scores.json", _even_weights))
    assert not report.ok
    assert any("the weights are not the mark's" in check.detail for check in report.checks)


def test_a_court_finds_probes_that_lie_elsewhere(graded_bundles, tmp_path):
    report = check_evidence(rewritten(graded_bundles["court"], tmp_path, "probes.jsonl", _other_fifth))
    assert "the groups are not those of the committed hyperplanes" in str(report.failure)
