"""What stays the claimant's word: the list is complete, and shrinks with what whoever checks knows from elsewhere."""

from __future__ import annotations

import pytest
from tests.support.evidence_case import lie

from regionmarker.evidence import check_evidence
from regionmarker.evidence.bundle import read_bundle
from regionmarker.evidence.claimant import Word, claimants_words
from regionmarker.evidence.traces import TRACES

pytestmark = pytest.mark.usefixtures("quick_report")

KNOWN = {"signer": True, "authority": True, "log": True, "commitment": True}
NOTHING = dict.fromkeys(KNOWN, False)


def test_a_word_covers_a_field_what_is_within_it_and_nothing_beside_it():
    word = Word("the power", "verdict.json", ("power",))
    assert word.covers("verdict.json", "power")
    assert word.covers("verdict.json", "power.caught")
    assert word.covers("verdict.json", "power[0]")
    assert not word.covers("verdict.json", "powerful")
    assert not word.covers("verdict.json", "")  # the whole file
    assert not word.covers("scores.json", "power")
    assert Word("all", "answers.parquet").covers("answers.parquet", "")
    assert word.to_dict() == {"sentence": "the power", "file": "verdict.json", "fields": ("power",)}


@pytest.mark.parametrize("level", ["summary", "expert", "court"])
def test_what_decides_is_never_the_claimants_word(saved, graded_bundles, level):
    for bundle in (saved[level], graded_bundles[level]):
        words = claimants_words(read_bundle(bundle), **NOTHING)
        for field in ("outcome", "p_value", "level", "total", "floor", "statistic", "key_id", "notes"):
            assert not any(word.covers("verdict.json", field) for word in words), field


@pytest.mark.parametrize("level", ["summary", "expert", "court"])
def test_every_word_names_what_is_there(saved, graded_bundles, level):
    for place in (saved[level], graded_bundles[level]):
        bundle = read_bundle(place)
        for word in claimants_words(bundle, **KNOWN):
            if word.file == TRACES and TRACES not in bundle.files:
                continue  # that there is nothing is the word
            assert word.file in bundle.files, word
            for field in word.fields:
                if word.file.endswith(".json") and isinstance(bundle.json(word.file), dict):
                    assert field in bundle.json(word.file), (word.file, field)


def sentences(place, **known):
    return {word.sentence for word in claimants_words(read_bundle(place), **{**NOTHING, **known})}


def test_who_signed_is_believed_until_somebody_names_the_signer(saved):
    assert "who signed the bundle" in sentences(saved["summary"])
    assert "who signed the bundle" not in sentences(saved["summary"], signer=True)


def test_the_commitment_is_believed_until_somebody_knows_it(saved):
    published = "that this commitment is the one that was published, and was published early"
    assert published in sentences(saved["court"])
    assert published not in sentences(saved["court"], commitment=True)


def test_the_more_is_disclosed_the_less_has_to_be_believed(saved):
    def covered(level, file, field=""):
        return any(word.covers(file, field) for word in claimants_words(read_bundle(saved[level]), **KNOWN))

    scores = [covered(level, "scores.json", "paper_deciles") for level in ("summary", "expert", "court")]
    assert scores == [True, True, False]
    assert [covered(level, "verdict.json", "answers_digest") for level in ("summary", "expert", "court")] == [
        True, False, False,
    ]  # fmt: skip
    assert covered("expert", "pool.jsonl", "[0].z")
    assert not covered("court", "pool.jsonl", "[0].z")
    for level in ("summary", "expert", "court"):
        assert covered(level, "verdict.json", "suspect")  # for that there is evidence replay


def test_looks_that_nobody_counted_are_named(saved, verdict_on, answer_as, tmp_path):
    assert "how often the key was used before: looks were not counted at all" in sentences(saved["summary"])
    counted = verdict_on(answer_as(), ledger=tmp_path / "ledger.jsonl").save(tmp_path / "counted")
    assert "how often the key was used before" in sentences(counted)


def test_traces_that_were_left_out_are_the_claimants_word(saved):
    """Nothing else in a bundle would say that tenants were looked at, so leaving them out is named."""
    nothing = "that no tenant's mark was looked for: the bundle holds no traces"
    assert nothing in sentences(saved["summary"])
    assert nothing not in sentences(saved["court"])


def test_what_is_the_claimants_word_can_be_changed_and_is_in_the_output(own_copy):
    bundle = own_copy("summary")
    assert lie(bundle, "verdict.json", lambda verdict: verdict.update(suspect="somebody else")) is None
    report = check_evidence(bundle)
    assert [word.fields for word in report.words if word.covers("verdict.json", "suspect")] == [("suspect",)]
    assert report.to_dict()["words"][0]["file"] == "verdict.json"


def test_what_is_not_cannot(own_copy):
    bundle = own_copy("summary")
    assert lie(bundle, "verdict.json", lambda verdict: verdict.update(level=0.999)) is not None
    assert check_evidence(bundle).words == ()  # a refused bundle has no words to believe
