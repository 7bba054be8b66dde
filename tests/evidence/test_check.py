"""Checking: true bundles pass, every changed byte and every lie is found and named."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from regionmarker.corpus import TextSet
from regionmarker.evidence import Signer, check_evidence, save_evidence
from regionmarker.evidence.bundle import manifest_of, plain_json, plain_lines, read_bundle
from regionmarker.keys.files import KeyRing
from regionmarker.keys.key import key_from_key
from regionmarker.verification.judging import judge

pytestmark = pytest.mark.usefixtures("quick_report")

SUMMARY_CHECKS = [
    "signature",
    "files",
    "time stamp",
    "commitment",
    "total",
    "null distribution",
    "p-value",
    "looks",
    "power",
    "outcome",
]
EXPERT_CHECKS = [*SUMMARY_CHECKS, "answers", "transcript", "scores", "the paper's statistics"]
COURT_CHECKS = [*EXPERT_CHECKS, "opened key", "draw", "from scratch", "traces"]


@pytest.mark.parametrize(
    ("level", "names"), [("summary", SUMMARY_CHECKS), ("expert", EXPERT_CHECKS), ("court", COURT_CHECKS)]
)
def test_true_bundles_pass(saved, verdict, signer, level, names):
    report = check_evidence(saved[level], signer=signer.public_pem)
    assert report.failure is None
    assert [check.name for check in report.checks] == names
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


def test_another_signer_is_found(own_copy, verdict, tmp_path):
    expected, forger = Signer.generate(), Signer.generate()
    forged = save_evidence(verdict, tmp_path / "forged", signer=forger)
    assert check_evidence(forged).ok
    failure = check_evidence(forged, signer=expected.public_pem).failure
    assert failure == f"signer.pem: the bundle is signed by {forger.name}, not by the expected signer"
    unsigned = save_evidence(verdict, tmp_path / "unsigned")
    assert check_evidence(unsigned).checks[0].detail == "not signed: anyone may have written this"
    assert "not signed" in str(check_evidence(unsigned, signer=expected.public_pem).failure)


def lie(bundle, name, change, *, signer=None) -> str | None:
    """Change a JSON file, make the manifest fit again as a forger would, and check."""
    lines = name.endswith(".jsonl")
    found = read_bundle(bundle)
    document = found.lines(name) if lines else found.json(name)
    change(document)
    (bundle / name).write_bytes(plain_lines(document) if lines else plain_json(document))
    reseal(bundle)
    return check_evidence(bundle).failure


def reseal(bundle) -> None:
    for name in ("manifest.sig", "signer.pem"):
        (bundle / name).unlink(missing_ok=True)
    found = read_bundle(bundle)
    files = {name: content for name, content in found.files.items() if name != "manifest.json"}
    (bundle / "manifest.json").write_bytes(manifest_of(found.disclosure, files))


def test_a_rewritten_bundle_without_a_lie_passes(own_copy):
    assert lie(own_copy("court"), "verdict.json", lambda verdict: None) is None


def shrink_tail(scores):
    counts = scores["null"]["counts"]
    counts[-1] -= 1
    counts[0] += 1


VERDICT_LIES = {
    "p_value": 1e-9,
    "total": 99.0,
    "floor": 1e-12,
    "look": 3,
    "judged_at": 0.04,
    "outcome": "no evidence",
    "key_id": "00" * 8,
    "statistic": "decoy-2",
    "disclosure": "court",
}


@pytest.mark.parametrize("name", VERDICT_LIES)
def test_lies_in_the_verdict_are_found(own_copy, name):
    failure = lie(own_copy("summary"), "verdict.json", lambda verdict: verdict.update({name: VERDICT_LIES[name]}))
    assert failure is not None
    assert "verdict.json" in failure


@pytest.mark.parametrize(
    "change",
    [
        lambda scores: scores["observed"].__setitem__(0, scores["observed"][0] + 1),
        lambda scores: scores["lists"][1].__setitem__(0, scores["lists"][1][0] + 7),
        lambda scores: scores["null"]["counts"].append(1),
        lambda scores: scores["null"].update(lowest=scores["null"]["lowest"] - 1),
        lambda scores: scores.update(pool=127),
        lambda scores: scores.update(step=0.25),
        lambda scores: scores.pop("observed"),
        lambda scores: scores.update(null="many"),
        shrink_tail,
    ],
)
def test_lies_in_the_scores_are_found(own_copy, change):
    assert "scores.json" in str(lie(own_copy("summary"), "scores.json", change))


def test_lies_about_the_power_are_found(own_copy):
    assert "power" in str(lie(own_copy("summary"), "verdict.json", lambda verdict: verdict["power"].update(caught=0.4)))


def test_a_laxer_level_than_the_committed_one_is_said(verdict_on, answer_as, tmp_path):
    lax = verdict_on(answer_as(guilty=False), level=0.05)
    report = check_evidence(lax.save(tmp_path / "lax"))
    assert report.ok
    assert any("laxer than the committed 0.001" in check.detail for check in report.checks)


def test_lies_in_the_commitment_are_found(own_copy):
    def other(document):
        document["opened"]["level"]["content"] = document["opened"]["statistic"]["content"]

    assert "commitment.json" in str(lie(own_copy("summary"), "commitment.json", other))


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("pool.jsonl", lambda rows: rows[3]["z"].__setitem__(0, rows[3]["z"][0] + 1e-9)),
        ("pool.jsonl", lambda rows: rows.reverse()),
        ("probes.jsonl", lambda rows: rows.pop()),
        ("probes.jsonl", lambda rows: [row.update(region=1) for row in rows[:40]]),
        ("transcript.jsonl", lambda rows: rows[0].update(response="cd" * 32)),
        ("verdict.json", lambda verdict: verdict.update(answers_digest="00" * 32)),
        ("verdict.json", lambda verdict: verdict["paper"].update(delta_cos=0.5)),
    ],
)
def test_lies_at_expert_level_are_found(own_copy, name, change):
    assert name in str(lie(own_copy("expert"), name, change))


def test_other_targets_are_found_at_expert_level(own_copy):
    def move(rows):
        """Name the text with the highest score the target: the forger's dream."""
        for row in rows:
            row["target_of"] = 1 if row["target_of"] is None and row["place"] < 1 else row["target_of"]

    assert "pool.jsonl" in str(lie(own_copy("expert"), "pool.jsonl", move))


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


def test_missing_answers(case_key, verdict_on, answer_as, tmp_path):
    targets = case_key.provider_targets()
    others = [text for place, text in enumerate(case_key.pool.texts) if place not in targets][:3]
    verdict = verdict_on(answer_as(silent=tuple(others)))
    place = save_evidence(verdict, tmp_path / "some", level="court")
    assert check_evidence(place).failure is None
    assert json.loads((place / "scores.json").read_bytes())["unanswered"] == 3
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


def test_a_salted_key_opens(case_key, answer_as, tmp_path):
    salted = case_key.with_salt(b"public randomness")
    found = judge(salted, answer_as(), power=False)
    report = check_evidence(found.save(tmp_path / "bundle", level="court"))
    assert report.failure is None
    assert np.isfinite(found.total)
    assert "regions and targets are drawn from the master secret and the salt" in [c.detail for c in report.checks]
