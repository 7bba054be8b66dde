"""A ledger beside the bundles that were made with it: what was removed since shows."""

from __future__ import annotations

import json

import pytest
from tests.support.evidence_case import lie

from regionmarker.errors import InputError
from regionmarker.evidence import check_evidence, check_ledger
from regionmarker.verification.ledger import START, chained, verdict_entries

pytestmark = pytest.mark.usefixtures("quick_report")


@pytest.fixture
def kept(verdict_on, answer_as, tmp_path):
    """A ledger of three looks, and the bundle of each."""
    ledger = tmp_path / "ledger.jsonl"
    suspects = (answer_as(guilty=False), answer_as(guilty=False, budget=480), answer_as())
    verdicts = [verdict_on(answers, ledger=ledger) for answers in suspects]
    return ledger, [one.save(tmp_path / f"bundle {number}") for number, one in enumerate(verdicts)]


def test_every_bundle_has_the_ledgers_head(kept):
    ledger, bundles = kept
    report = check_ledger(ledger, bundles)
    assert list(report.bundles.values()) == [1, 2, 3]
    assert (report.entries, list(report.looks.values())) == (3, [3])
    assert json.loads((bundles[2] / "verdict.json").read_bytes())["ledger"]["head"] == report.head
    details = {check.name: check.detail for check in check_evidence(bundles[2]).checks}
    assert "ends at line 3 of the ledger" in details["ledger"]
    assert check_evidence(bundles[2]).ok


def test_a_removed_look_shows(kept):
    ledger, bundles = kept
    lines = ledger.read_bytes().splitlines(keepends=True)
    ledger.write_bytes(b"".join(lines[:2]))  # the last line: the chain alone cannot tell
    assert check_ledger(ledger, bundles[:2]).entries == 2
    with pytest.raises(InputError, match=r"has 2 lines, but had 3 when .* was made: lines are missing"):
        check_ledger(ledger, bundles)


def test_a_ledger_that_was_written_anew_shows(kept, verdict_on, answer_as, tmp_path):
    _, bundles = kept
    other = tmp_path / "other.jsonl"
    for budget in (460, 440, 420):
        verdict_on(answer_as(budget=budget), ledger=other)
    with pytest.raises(InputError, match=r"the first 3 lines are not those that .* was made with"):
        check_ledger(other, bundles[2:])


def test_a_head_that_is_not_this_verdicts_is_found(kept):
    _, bundles = kept
    stated = json.loads((bundles[1] / "verdict.json").read_bytes())["ledger"]
    assert "the ledger's head does not follow from this verdict" in str(
        lie(bundles[2], "verdict.json", lambda verdict: verdict.update(ledger=stated))
    )


def _told_anew(verdict, **stated):
    """Say something else of the ledger, with a head that fits."""
    verdict["ledger"] |= stated
    verdict["ledger"]["head"] = chained(verdict["ledger"]["before"], verdict_entries(verdict))[1]


def _first_look_uncounted(verdict):
    verdict.update(look=1, judged_at=verdict["level"], outcome="infringement")
    _told_anew(verdict, entries=1, before=START)


LIES = {
    "left out": (lambda verdict: verdict.update(ledger=None), "looks are paid for where a ledger counts them"),
    "uncounted": (_first_look_uncounted, "looks are paid for where a ledger counts them"),
    "fewer lines": (lambda verdict: _told_anew(verdict, entries=2), "1 earlier lines, but 2 earlier looks"),
    "no line before": (lambda verdict: _told_anew(verdict, entries=1), "does not begin where ledgers begin"),
    "a beginning": (lambda verdict: _told_anew(verdict, before=START), "does not begin where ledgers begin"),
    "a look before the first": (lambda verdict: verdict.update(look=-3), "or the look -3 is impossible"),
}


@pytest.mark.parametrize("change", LIES)
def test_lies_about_the_ledger_are_found(kept, change):
    told, found = LIES[change]
    assert found in str(lie(kept[1][2], "verdict.json", told))


def test_what_the_ledger_held_before_is_named_as_the_claimants_word(kept):
    assert lie(kept[1][2], "verdict.json", lambda verdict: _told_anew(verdict, entries=40, before="ab" * 32)) is None
    words = check_evidence(kept[1][2]).words
    for field in ("ledger.entries", "ledger.before", "ledger.head"):
        assert any(word.covers("verdict.json", field) for word in words), field


def test_a_bundle_without_a_ledger_says_whose_word_the_looks_are(saved, kept):
    details = {check.name: check.detail for check in check_evidence(saved["summary"]).checks}
    assert details["ledger"] == "none: how often was looked before is the claimant's word"
    with pytest.raises(InputError, match="names no ledger"):
        check_ledger(kept[0], [saved["summary"]])
    with pytest.raises(InputError, match="a ledger lies beside its key"):
        check_ledger(kept[0].with_name("nothing"))
    key = kept[0].with_name("provider.rmkey")
    key.write_bytes(b"RMKY and more")
    with pytest.raises(InputError, match=r"provider\.rmkey is not a ledger: give KEY\.ledger\.jsonl"):
        check_ledger(key)  # nobody is told to remove a line of a key
