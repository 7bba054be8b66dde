"""A summary shows nothing of the key, not even to a suspect who knows its own answers."""

from __future__ import annotations

import base64
import json
import re
import zipfile

import numpy as np
import pytest

from regionmarker.evidence.bundle import read_bundle
from regionmarker.keys.commitment import PARTS, SCHEMES, blinding, content

VERDICT_FIELDS = {
    "answers_digest", "asked", "axes", "created", "disclosure", "floor", "inputs_digest", "judged_at", "key_id",
    "ledger", "level", "look", "missing", "notes", "other_keys", "outcome", "p_value", "paper", "power", "probes",
    "scores_digest", "statistic", "suspect", "total", "unasked",
}  # fmt: skip
SCORES_FIELDS = {"lists", "null", "observed", "paper_deciles", "pool", "regions", "step", "unanswered"}


def forms(material: bytes) -> set[bytes]:
    return {material, material.hex().encode(), base64.b64encode(material), str(list(material))[1:-1].encode()}


@pytest.fixture(scope="module")
def summary(saved) -> bytes:
    """Everything in the bundle, as one heap of bytes; the zip as well."""
    with zipfile.ZipFile(saved["summary"].with_name("summary.zip")) as packed:
        return b"\n".join([*read_bundle(saved["summary"]).files.values(), *map(packed.read, packed.namelist())])


def test_no_secret_bytes(summary, case_key):
    secrets = forms(case_key.master.reveal())
    for part in PARTS[SCHEMES[case_key.mark.kind]]:
        if part not in ("statistic", "level"):
            secrets |= forms(blinding(case_key, part)) | forms(content(case_key, part)[:64])
    for array in (case_key.mark.normals, *case_key.mark.reduction.arrays().values()):
        secrets |= {np.ascontiguousarray(row).tobytes()[:32] for row in np.atleast_2d(array)}
        secrets |= {repr(float(value)).encode() for value in array.ravel()[:200] if abs(value) > 1e-6}
    assert [secret[:12] for secret in secrets if secret in summary] == []


def test_no_texts(summary, case_key):
    texts = [*case_key.pool.texts, *case_key.reservoir.texts]
    assert [text for text in texts if len(text) > 12 and text.encode() in summary] == []


def test_no_exact_cosines_or_scores(summary, verdict):
    examination_scores = {f"{value:.5f}".encode() for value in verdict.scores.ravel()}
    answers = verdict.basis.answers.vectors
    cosines = {f"{value:.5f}".encode() for value in (answers[:100] @ answers.T).ravel()[::7] if abs(value) < 0.999}
    # Coordinates of the pictures have six digits; a few fall on a cosine's five by chance, as with any other numbers.
    seen = set(re.findall(rb"(?<![\d.])-?0\.\d{5}(?!\d)", summary))
    assert not seen & examination_scores
    assert not seen & cosines


def test_only_known_fields(saved):
    bundle = read_bundle(saved["summary"])
    assert set(bundle.json("verdict.json")) == VERDICT_FIELDS
    assert set(bundle.json("scores.json")) == SCORES_FIELDS
    assert set(bundle.json("commitment.json")["opened"]) == {"statistic", "level"}
    assert [set(line) for line in bundle.lines("transcript.jsonl")] == [
        {"number", "time", "count", "request", "response"}
    ]


def test_regions_come_in_an_order_that_is_not_the_keys(saved, verdict, case_key):
    scores = read_bundle(saved["summary"]).json("scores.json")
    assert scores["observed"] == sorted(scores["observed"], reverse=True)
    assert all(row == sorted(row, reverse=True) for row in scores["lists"])
    for region in read_bundle(saved["summary"]).json("verdict.json")["paper"]["regions"]:
        assert len(f"{abs(region['delta_cos']):.12g}".replace("0.", "").lstrip("0")) <= 3


def test_the_papers_curves_are_coarse(saved):
    for curve in read_bundle(saved["summary"]).json("scores.json")["paper_deciles"]:
        assert len(curve) == 11
        assert all(round(share, 2) == share for share in curve)


def test_an_expert_bundle_keeps_the_key_closed(saved, case_key):
    heap = b"\n".join(read_bundle(saved["expert"]).files.values())
    secrets = forms(case_key.master.reveal()) | forms(content(case_key, "regions")[:64])
    assert not [secret for secret in secrets if secret in heap]
    assert json.loads((saved["expert"] / "pool.jsonl").read_text().splitlines()[0])["text"] in case_key.pool.texts


def test_a_court_bundle_opens_the_key(saved, case_key):
    opened = read_bundle(saved["court"]).json("commitment.json")["opened"]
    assert opened["master"]["content"] == case_key.master.reveal().hex()
