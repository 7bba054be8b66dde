"""Saving writes what was judged: nothing is examined a second time."""

from __future__ import annotations

import pickle
from dataclasses import replace

import pytest

from regionmarker import KeyRing, verify
from regionmarker.errors import InputError
from regionmarker.evidence import check_evidence
from regionmarker.keys.key import key_from_key
from regionmarker.verification import decoy1
from regionmarker.verification.decoy_test import DecoyTest
from regionmarker.verification.region_examination import RegionExamination

pytestmark = pytest.mark.usefixtures("quick_report")


@pytest.fixture
def counted(monkeypatch) -> dict[str, int]:
    """Count examinations, matrices of scores and decoy tests from now on."""
    counts = {"examinations": 0, "scores": 0, "tests": 0}

    def counting(name, function):
        def count(*arguments):
            counts[name] += 1
            return function(*arguments)

        return count

    monkeypatch.setattr(RegionExamination, "of", counting("examinations", RegionExamination.of))
    monkeypatch.setattr(decoy1, "region_scores", counting("scores", decoy1.region_scores))
    monkeypatch.setattr(DecoyTest, "__init__", counting("tests", DecoyTest.__init__))
    return counts


@pytest.mark.parametrize("level", ["summary", "expert", "court"])
def test_a_verdict_and_its_evidence_take_one_examination(case_key, answer_as, counted, tmp_path, level):
    verdict = verify(case_key, answer_as(), power=False)
    verdict.save(tmp_path / "bundle", level=level)
    assert counted == {"examinations": 1, "scores": 1, "tests": 1}
    assert check_evidence(tmp_path / "bundle").ok
    assert counted["examinations"] == 1 + (level == "court")  # the counter does count: a court examines for itself


def test_every_key_of_a_ring_examines_once(case_key, answer_as, counted, tmp_path):
    newer = [replace(key_from_key(case_key, seed=seed), test=False) for seed in (6, 7)]
    verdict = verify(KeyRing((case_key, *newer)), answer_as(), power=False)
    for level in ("summary", "expert", "court"):
        verdict.save(tmp_path / level, level=level)
    assert counted == {"examinations": 3, "scores": 3, "tests": 3}


def test_a_verdict_that_travelled_has_no_basis_to_save(verdict, tmp_path):
    arrived = pickle.loads(pickle.dumps(verdict))
    assert arrived.basis is None
    with pytest.raises(InputError, match="came without its key and answers"):
        arrived.save(tmp_path / "bundle")
