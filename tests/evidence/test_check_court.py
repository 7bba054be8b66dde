"""Checks of a court's bundle: the key is made again from the opened parts."""

from __future__ import annotations

import numpy as np
import pytest
from tests.support.evidence_case import lie, reseal

from regionmarker.corpus import TextSet
from regionmarker.evidence import check_evidence
from regionmarker.verification.judging import judge

pytestmark = pytest.mark.usefixtures("quick_report")


def test_an_opened_part_that_was_not_committed_to_is_found(own_copy):
    bundle = own_copy("court")
    path = bundle / "opened-pool.bin"
    path.write_bytes(path.read_bytes().replace(b"the", b"teh", 1))
    reseal(bundle)
    assert check_evidence(bundle).failure == "opened-pool.bin: the opened part 'pool' is not what was committed to"


def test_groups_that_the_hyperplanes_do_not_give_are_found(own_copy):
    def swap(rows):
        inside = [row for row in rows if row["region"]]
        inside[0]["region"] = 0

    bundle = own_copy("court")
    lie(bundle, "probes.jsonl", swap)
    failures = [check.detail for check in check_evidence(bundle).checks if not check.ok]
    assert "probes.jsonl: the groups are not those of the committed hyperplanes" in failures


def test_own_probes_can_be_checked_in_court(case_key, sentences, embeddings, tmp_path):
    from regionmarker import RegionMarker
    from regionmarker.verification.asking import ask

    rows = slice(3000, 4500)
    probes = TextSet(tuple(sentences[rows]), embeddings[rows])
    row_of = {text: row for row, text in enumerate(sentences)}
    marker = RegionMarker.from_key(case_key)
    answers = ask(
        case_key, lambda texts: marker.transform(embeddings[[row_of[text] for text in texts]]), 500, probes=probes
    )
    report = check_evidence(judge(case_key, answers, probes=probes, power=False).save(tmp_path / "own", level="court"))
    assert report.failure is None


def test_a_salted_key_opens(case_key, answer_as, tmp_path):
    salted = case_key.with_salt(b"public randomness")
    found = judge(salted, answer_as(), power=False)
    report = check_evidence(found.save(tmp_path / "bundle", level="court"))
    assert report.failure is None
    assert np.isfinite(found.total)
    assert "all choices are drawn from the master secret and the salt" in [c.detail for c in report.checks]


def test_usual_texts_that_were_not_asked_are_counted_again(own_copy):
    """A claimant who hides them, and the caution that they call for, is found out."""

    def hide(verdict):
        assert verdict["unasked"] > 0
        verdict["notes"] = [note for note in verdict["notes"] if "usually asked" not in note]
        verdict["unasked"] = 0

    bundle = own_copy("court")
    lie(bundle, "verdict.json", hide)
    failures = [check.detail for check in check_evidence(bundle).checks if not check.ok]
    assert any("of the usual texts were not asked, not 0" in failure for failure in failures)
