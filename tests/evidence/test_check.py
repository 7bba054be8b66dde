"""Checking: true bundles pass, every changed byte and every lie is found and named."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tests.support.evidence_case import lie

from regionmarker.errors import InputError
from regionmarker.evidence import Signer, check_evidence, save_evidence
from regionmarker.keys.files import KeyRing
from regionmarker.keys.key import key_from_key
from regionmarker.verification.judging import judge

pytestmark = pytest.mark.usefixtures("quick_report")

SUMMARY_CHECKS = [
    "signature",
    "files",
    "time stamp",
    "fields",
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
    "the paper's totals",
]
EXPERT_CHECKS = [*SUMMARY_CHECKS, "answers", "transcript", "scores", "the paper's statistics"]
COURT_CHECKS = [*EXPERT_CHECKS, "opened key", "draw", "from scratch", "traces"]
LAST_CHECKS = ["draw of the salt", "cautions", "report"]


@pytest.mark.parametrize(
    ("level", "names"), [("summary", SUMMARY_CHECKS), ("expert", EXPERT_CHECKS), ("court", COURT_CHECKS)]
)
def test_true_bundles_pass(saved, verdict, signer, level, names):
    report = check_evidence(saved[level], signer=signer.public_pem)
    assert report.failure is None
    found = [check.name for check in report.checks if check.name != "tenants"]
    assert found == [*names, *LAST_CHECKS]
    assert report.ok
    assert (report.level, report.outcome, report.p_value) == (level, verdict.outcome, verdict.p_value)
    assert f"p = {verdict.p_value:g}, recomputed exactly" in [check.detail for check in report.checks]


@pytest.mark.parametrize("level", ["summary", "court"])
def test_a_changed_byte_in_any_file_is_found(own_copy, level):
    bundle = own_copy(level)
    for path in sorted(bundle.iterdir()):
        whole = path.read_bytes()
        place = len(whole) // 2
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        failure = check_evidence(bundle).failure
        assert failure is not None, path.name
        assert path.name in failure
        path.write_bytes(whole[:place])
        assert path.name in str(check_evidence(bundle).failure)
        path.unlink()
        assert path.name in str(check_evidence(bundle).failure)
        path.write_bytes(whole)
    assert check_evidence(bundle).ok


def test_a_file_that_does_not_belong_is_found(own_copy):
    bundle = own_copy("summary")
    (bundle / "report2.html").write_text("the other report")
    assert str(check_evidence(bundle).failure).startswith("report2.html does not belong to the bundle")


def test_unsigned_or_signed_by_an_unexpected_key_is_never_ok(own_copy, verdict, tmp_path):
    expected, forger = Signer.generate(), Signer.generate()
    forged = save_evidence(verdict, tmp_path / "forged", signer=forger)
    assert check_evidence(forged).ok
    assert check_evidence(forged).checks[0].status == "unexpected"
    assert check_evidence(forged, signer=expected.public_pem).checks[0].status == "unexpected"
    failure = check_evidence(forged, signer=expected.public_pem).failure
    assert failure == f"signer.pem: the bundle is signed by {forger.name}, not by the expected signer"
    unsigned = save_evidence(verdict, tmp_path / "unsigned")
    assert check_evidence(unsigned).checks[0].status == "absent"
    assert check_evidence(unsigned).checks[0].detail == "not signed: anyone may have written this"
    assert "not signed" in str(check_evidence(unsigned, signer=expected.public_pem).failure)


def test_a_rewritten_bundle_without_a_lie_passes(own_copy):
    assert lie(own_copy("court"), "verdict.json", lambda verdict: None) is None


def test_lies_in_the_commitment_are_found(own_copy):
    def other(document):
        document["opened"]["level"]["content"] = document["opened"]["statistic"]["content"]

    assert "commitment.json" in str(lie(own_copy("summary"), "commitment.json", other))


def test_withheld_pool_answers_of_an_older_bundle_are_bounded(case_key, verdict_on, answer_as, tmp_path, monkeypatch):
    """0.1.0 judged with 5 % of the pool missing; that is believed as far as withholding could not do it."""
    targets = case_key.provider_targets()
    others = [text for place, text in enumerate(case_key.pool.texts) if place not in targets]
    with pytest.raises(InputError, match="left 1 of 128 pool texts without an answer, and decoy-1 needs them all"):
        verdict_on(answer_as(silent=tuple(others[:1])))
    monkeypatch.setattr("regionmarker.verification.region_examination._check_enough", lambda questions, answers: None)
    one = verdict_on(answer_as(silent=tuple(others[:1])))
    assert check_evidence(save_evidence(one, tmp_path / "one", level="court")).failure is None
    some = verdict_on(answer_as(silent=tuple(others[:6])))
    assert some.outcome == "infringement"
    assert "6 pool texts have no answer, and p would be up to" in str(
        check_evidence(save_evidence(some, tmp_path / "some", level="court")).failure
    )
    mute = verdict_on(answer_as(silent=(case_key.pool.texts[targets[0]],)))
    assert mute.p_value == 1.0
    for level in ("summary", "expert"):
        report = check_evidence(save_evidence(mute, tmp_path / level, level=level))
        assert report.failure is None
        assert "p = 1, because a target has no answer" in [check.detail for check in report.checks]


def test_looks_that_were_counted(verdict_on, answer_as, tmp_path):
    verdict = verdict_on(answer_as(), ledger=tmp_path / "ledger.jsonl")
    report = check_evidence(verdict.save(tmp_path / "bundle"))
    assert "look 1 at level 0.001 is judged at 0.0005" in [check.detail for check in report.checks]


@pytest.fixture
def ring_verdict(case_key, answer_as, tmp_path):
    """The case, judged by three keys of one ring."""
    newer = [replace(key_from_key(case_key, seed=seed), test=False) for seed in (6, 7)]
    return judge(KeyRing((case_key, *newer)), answer_as(), ledger=tmp_path / "ledger.jsonl", power=False)


def test_a_ring_that_judged_can_be_checked(ring_verdict, case_key, tmp_path):
    assert ring_verdict.key_id == case_key.id
    report = check_evidence(ring_verdict.save(tmp_path / "bundle", level="court"))
    assert report.failure is None
    assert "look 1 at level 0.001 with 3 keys is judged at 0.000166667" in [check.detail for check in report.checks]


RING_LIES = {
    "fewer keys": lambda verdict: verdict["other_keys"].pop(),
    "a stronger key": lambda verdict: verdict["other_keys"][0].update(p_value=1e-12),
    "another correction": lambda verdict: verdict["other_keys"][1].update(holm=0.5),
    "another outcome": lambda verdict: verdict["other_keys"][1].update(infringement=True),
}


@pytest.mark.parametrize("change", RING_LIES)
def test_lies_about_the_ring_are_found(ring_verdict, change, tmp_path):
    bundle = ring_verdict.save(tmp_path / "bundle")
    assert "verdict.json" in str(lie(bundle, "verdict.json", RING_LIES[change]))


def test_a_verdict_that_was_changed_before_saving_is_found(verdict, tmp_path):
    changed = replace(verdict, p_value=1e-12)
    assert "verdict.json" in str(check_evidence(changed.save(tmp_path / "bundle")).failure)
